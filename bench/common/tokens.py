"""One tokenizer for all models: tiktoken's cl100k_base. OpenAI's table for it is in this folder, so no network is needed.

Every text has a count. A long text takes a while, so code that shares an event loop counts it in a thread (`texts_to_count`
names such texts): tiktoken releases the interpreter's lock.
"""

from __future__ import annotations

import hashlib
import lzma
import threading
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import tiktoken

from bench.common.digests import digest_of
from bench.common.errors import BenchError, whole_text

TOKENIZER = "cl100k_base"
TABLE = Path(__file__).with_name(TOKENIZER) / f"{TOKENIZER}.tiktoken.xz"
TABLE_SHA_256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""The digest of the unpacked table that tiktoken requires."""
PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
"""The pattern that cuts a text before its tokens are looked up, as `tiktoken_ext.openai_public` has it."""


def read_table(table: Path) -> dict[bytes, int]:
    """Return the rank of each token. Raises BenchError if the file is not OpenAI's table."""
    try:
        content = lzma.decompress(table.read_bytes())
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise BenchError(f"{table}: cannot be read ({error}); install recovery-bench again") from error
    if hashlib.sha256(content).hexdigest() != TABLE_SHA_256:
        raise BenchError(f"{table}: is not OpenAI's table of {TOKENIZER}; install recovery-bench again")
    words = content.split()
    return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


@cache
def _encoding() -> tiktoken.Encoding:
    """Return the tokenizer cl100k_base, with the table of this package."""
    return tiktoken.Encoding(TOKENIZER, pat_str=PATTERN, mergeable_ranks=read_table(TABLE), special_tokens={})


MAX_CACHED_COUNTS = 4096
"""The most counts in the cache. Repetitions send many of the same prompts."""
LONG_TEXT_CHARS = 2**16
"""A text with more characters is counted in a thread. A text of this length takes up to 30 ms, and a million characters take
seconds."""
LONGEST_BLANK = 2**18
"""A text is split at a row of this many blanks: on a somewhat longer row, tiktoken's pattern overflows its stack."""
BLANKS = "\t\v\f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""What the pattern's `\\s` matches, except line ends."""
SCAN_CHARS = 2**16
"""How many characters one step scans for blanks. The interpreter's lock is held during a step."""


class Counts:
    """A cache of token counts. The key is the digest of the text, so that the entry of a long text takes as little memory as
    the entry of a word."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._cache_lock, self._count_lock = threading.Lock(), threading.Lock()

    def knows(self, text: str) -> bool:
        """Whether the count of this text is stored."""
        return digest_of(text) in self._counts

    def of(self, text: str) -> int:
        """Return the number of tokens in a text."""
        digest = digest_of(text)
        if (known := self._counts.get(digest)) is not None:
            return known
        count = self._of_long(text) if len(text) > LONG_TEXT_CHARS else len(_encoding().encode_ordinary(text))
        with self._cache_lock:
            if len(self._counts) >= MAX_CACHED_COUNTS:
                del self._counts[next(iter(self._counts))]
            self._counts[digest] = count
        return count

    def _of_long(self, text: str) -> int:
        """Count the tokens of a long text, one text at a time, because counting takes about fifty times the size of the text
        in memory."""
        with self._count_lock:
            return sum(len(_encoding().encode_to_numpy(piece, disallowed_special=())) for piece in pieces(whole_text(text)))


@cache
def counts() -> Counts:
    """Return the cache of token counts of this process."""
    return Counts()


def count_tokens(text: str) -> int:
    """Return the number of tokens in `text`. Special tokens such as <|endoftext|> count as plain text."""
    return counts().of(text)


def texts_to_count(texts: Iterable[str]) -> list[str]:
    """Return the texts with more than LONG_TEXT_CHARS whose counts are not in the cache."""
    return [text for text in texts if len(text) > LONG_TEXT_CHARS and not counts().knows(text)]


def pieces(text: str, longest_blank: int = LONGEST_BLANK) -> Iterator[str]:
    r"""Split a text around its long rows of blanks, at places where cl100k_base splits it too. The sum of the pieces' tokens
    is the count of the text.

    cl100k_base cuts a text by a pattern and tokenizes each part on its own. If a sign, and not a line end, follows a row of
    blanks, `\s+(?!\S)` takes all blanks but the last. The part before the row ends at the row: no part continues from a sign
    or a line end into two blanks. On its own, the row without its last blank is again one part, by `\s++$`; and no part looks
    back.
    """
    start = 0
    for begin, end in _rows(text, longest_blank):
        if end < len(text) and text[end] not in "\r\n":
            yield from filter(None, (text[start:begin], text[begin : end - 1]))
            start = end - 1
    if start < len(text):
        yield text[start:]


def _rows(text: str, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each row of blanks: at least `shortest` blanks one after the other. Only each
    `shortest`-th character is looked at, because each row contains one of these characters."""
    position = shortest - 1
    while position < len(text):
        if text[position] not in BLANKS:
            position += shortest
            continue
        begin, end = position, position
        while blanks := _count_blanks(text[max(0, begin - SCAN_CHARS) : begin][::-1]):
            begin -= blanks
        while blanks := _count_blanks(text[end : end + SCAN_CHARS]):
            end += blanks
        if end - begin >= shortest:
            yield begin, end
        position = end + shortest


def _count_blanks(text: str) -> int:
    """Return the number of blanks at the beginning of a text."""
    return len(text) - len(text.lstrip(BLANKS))


def first_tokens(text: str, most: int) -> str:
    """Return the first `most` tokens of the text, or the whole text if it has no more. A character that would be split is
    left out."""
    tokens = _encoding().encode_ordinary(text)
    return text if len(tokens) <= most else _encoding().decode(tokens[:most], errors="ignore")
