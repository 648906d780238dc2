"""One tokenizer for all models: tiktoken's cl100k_base. OpenAI's table of it lies beside this file, so no network is needed."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from binascii import a2b_base64
from functools import cache
from pathlib import Path

import tiktoken

from bench.errors import BenchError

TOKENIZER = "cl100k_base"
TABLE = Path(__file__).with_name(TOKENIZER) / f"{TOKENIZER}.tiktoken.gz"
TABLE_SHA_256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""The digest of the unpacked table, as tiktoken itself asks for it."""
PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
"""How a text is cut before its tokens are looked up, as `tiktoken_ext.openai_public` has it."""


def read_table(table: Path) -> dict[bytes, int]:
    """Return the rank of each token. Raises BenchError where the file is not OpenAI's table."""
    try:
        content = gzip.decompress(table.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise BenchError(f"{table}: cannot be read ({error}); install recovery-bench again") from error
    if hashlib.sha256(content).hexdigest() != TABLE_SHA_256:
        raise BenchError(f"{table}: is not OpenAI's table of {TOKENIZER}; install recovery-bench again")
    words = content.split()
    return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.Encoding(TOKENIZER, pat_str=PATTERN, mergeable_ranks=read_table(TABLE), special_tokens={})


KEPT = 4096
"""Counts. Repetitions send many of the same prompts."""


class Counts:
    """Counts by the text's digest: one of a reply of megabytes takes as much memory as one of a word."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, text: str) -> int:
        """That of a text."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (known := self._known.get(digest)) is not None:
            return known
        if len(self._known) >= KEPT:
            self._known = {}
        count = self._known[digest] = len(_encoding().encode_ordinary(text))
        return count


@cache
def counts() -> Counts:
    """Those that are kept."""
    return Counts()


def count_tokens(text: str) -> int:
    """Tokens of `text`. Special-token texts such as <|endoftext|> are counted as the plain text that they are."""
    return counts().of(text)


def first_tokens(text: str, most: int) -> str:
    """The text's first so many tokens, and all of it where it has no more. A character that they cut through is left out."""
    tokens = _encoding().encode_ordinary(text)
    return text if len(tokens) <= most else _encoding().decode(tokens[:most], errors="ignore")
