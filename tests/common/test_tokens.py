"""One ruler for all models, that counts any text and needs no network."""

from __future__ import annotations

import hashlib
import lzma
import tracemalloc
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from bench.common import tokens
from bench.common.errors import BenchError
from bench.common.tokens import TABLE, Counts, count_tokens, first_tokens, pieces, read_table, texts_to_count

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
"""Where tiktoken would fetch the table; it keeps what it fetched under this address's digest."""

PIECES = ["1000000", " the", "we'll", "Z", "é", "  ", "\t", "\r\n\n", "!?\n", "<|endoftext|>", "\U0001f600"]


@pytest.fixture(scope="module")
def of_tiktoken(tmp_path_factory: pytest.TempPathFactory) -> tiktoken.Encoding:
    """The encoding as tiktoken itself makes it, of a table that it takes for one that it has fetched."""
    fetched = tmp_path_factory.mktemp("fetched")
    (fetched / hashlib.sha1(ADDRESS.encode()).hexdigest()).write_bytes(lzma.decompress(TABLE.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(fetched))
        return tiktoken.Encoding(**openai_public.cl100k_base())


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_has_the_count_that_tiktoken_itself_gives_it(of_tiktoken: tiktoken.Encoding, text: str) -> None:
    tokens = of_tiktoken.encode_ordinary(text)
    assert count_tokens(text) == len(tokens)
    assert first_tokens(text, 3) == (text if len(tokens) <= 3 else of_tiktoken.decode(tokens[:3], errors="ignore"))


def test_the_files_of_this_repository_have_the_counts_that_tiktoken_itself_gives_them(of_tiktoken: tiktoken.Encoding) -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("*.py")]
    assert [count_tokens(text) for text in texts] == [len(of_tiktoken.encode_ordinary(text)) for text in texts]


def test_a_table_that_is_damaged_or_another_is_refused_in_one_line(tmp_path: Path) -> None:
    whole, damaged = TABLE.read_bytes(), tmp_path / "table.xz"
    for content in (b"", whole[:-9], whole[:5000] + b"\0" + whole[5001:], b"no archive", lzma.compress(b"IQ== 0\n")):
        damaged.write_bytes(content)
        with pytest.raises(BenchError, match=r"^[^\n]*table\.xz: [^\n]*; install recovery-bench again$"):
            read_table(damaged)


def test_known_texts_have_their_known_counts() -> None:
    assert count_tokens("") == 0
    assert count_tokens("hello world") == 2
    assert count_tokens("tiktoken is great!") == 6


def test_what_is_kept_of_a_text_does_not_grow_with_it() -> None:
    tracemalloc.start()
    try:
        count_tokens("warm " * 2**16)  # what the first long text loads stays, whatever its length
        before, _ = tracemalloc.get_traced_memory()
        for number in range(8):
            count_tokens(f"{number} " + "word " * 2**16)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2**16


def test_a_special_tokens_text_is_plain_text() -> None:
    assert count_tokens("<|endoftext|>") == 7


@given(st.text())
def test_any_text_can_be_counted_and_no_token_is_less_than_a_byte(text: str) -> None:
    assert count_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))


SIGNS = [*" \t\n\r\v\u3000\xa0\u2028x7!'sé漢\u0301\x1c\u200b", "  ", "   ", "\n\n", " !", "'s", "123", "<|endoftext|>"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(SIGNS), max_size=14).map("".join), st.integers(2, 4))
def test_a_text_that_is_cut_at_its_rows_of_blanks_has_the_tokens_of_the_whole(
    of_tiktoken: tiktoken.Encoding, text: str, shortest: int
) -> None:
    cut = list(pieces(text, shortest))
    assert "".join(cut) == text
    assert sum(len(of_tiktoken.encode_ordinary(piece)) for piece in cut) == len(of_tiktoken.encode_ordinary(text))


@given(st.lists(st.sampled_from(SIGNS), min_size=1, max_size=6).map("".join), st.integers(0, 2**16 - 1))
def test_a_long_text_has_the_count_of_the_whole(of_tiktoken: tiktoken.Encoding, repeated: str, length: int) -> None:
    text = (repeated * 2**17)[: 2**16 + 1 + length]
    assert Counts().of(text) == len(of_tiktoken.encode_ordinary(text))


def test_a_text_has_a_count_where_tiktoken_has_none(of_tiktoken: tiktoken.Encoding) -> None:
    row, before = " " * 1_200_000, "x\n\t \t\u3000"
    with pytest.raises(ValueError, match="Max stack size exceeded"):
        of_tiktoken.encode_to_numpy(f"{row}x")
    for cut in ((row[1:], " x"), (f"{before}{row[1:]}", " !")):
        assert count_tokens("".join(cut)) == sum(len(of_tiktoken.encode_ordinary(part)) for part in cut)


@pytest.mark.parametrize("text", ["a\ud800b", "\ud83d\ude00", "x\udc00\ud800y"])
def test_half_of_a_surrogate_pair_is_counted_the_same_in_a_long_text(of_tiktoken: tiktoken.Encoding, text: str) -> None:
    long = text + " word" * 2**16
    assert Counts().of(long) == len(of_tiktoken.encode_ordinary(long))


def test_what_is_long_and_was_not_counted_is_named_for_a_thread() -> None:
    long, other = "one " * 2**15, "two " * 2**15
    assert texts_to_count(["short", long, other]) == [long, other]
    count_tokens(long)
    assert texts_to_count(["short", long, other]) == [other]


def test_the_oldest_count_makes_room_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_CACHED_COUNTS", 2)
    counts = Counts()
    assert [counts.of(text) for text in ("a", "b b", "c c c")] == [1, 2, 3]
    assert [counts.knows(text) for text in ("a", "b b", "c c c")] == [False, True, True]
