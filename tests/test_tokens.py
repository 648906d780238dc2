"""One ruler for all models, that counts any text and needs no network."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from bench.tokens import count_tokens


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
