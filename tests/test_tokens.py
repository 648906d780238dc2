"""One ruler for all models, that counts any text and needs no network."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from bench.errors import BenchError
from bench.tokens import TABLE, count_tokens, first_tokens, read_table

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
"""Where tiktoken would fetch the table; it keeps what it fetched under this address's digest."""

PIECES = ["1000000", " the", "we'll", "Z", "é", "  ", "\t", "\r\n\n", "!?\n", "<|endoftext|>", "\U0001f600"]


@pytest.fixture(scope="module")
def of_tiktoken(tmp_path_factory: pytest.TempPathFactory) -> tiktoken.Encoding:
    """The encoding as tiktoken itself makes it, of a table that it takes for one that it has fetched."""
    fetched = tmp_path_factory.mktemp("fetched")
    (fetched / hashlib.sha1(ADDRESS.encode()).hexdigest()).write_bytes(gzip.decompress(TABLE.read_bytes()))
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
    whole, damaged = TABLE.read_bytes(), tmp_path / "table.gz"
    for content in (b"", whole[:-9], whole[:5000] + b"\0" + whole[5001:], b"no archive", gzip.compress(b"IQ== 0\n")):
        damaged.write_bytes(content)
        with pytest.raises(BenchError, match=r"^[^\n]*table\.gz: [^\n]*; install recovery-bench again$"):
            read_table(damaged)


def test_known_texts_have_their_known_counts() -> None:
    assert count_tokens("") == 0
    assert count_tokens("hello world") == 2
    assert count_tokens("tiktoken is great!") == 6


def test_what_is_kept_of_a_text_does_not_grow_with_it() -> None:
    tracemalloc.start()
    try:
        count_tokens("warm")
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
