"""No form of the key that a server might write is left of it."""

from __future__ import annotations

import base64
from time import process_time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.wire.blotting import SEARCH_STEP, blot

KEY = "sk-Very/secret+0123456789abcdef"
keys = st.text(st.sampled_from("abcXYZ019-_/+="), min_size=16, max_size=60)


@given(keys, st.binary(max_size=7), st.binary(max_size=7))
def test_an_encoded_key_is_found_wherever_it_stands_in_what_was_encoded(key: str, before: bytes, after: bytes) -> None:
    whole = before + key.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = blot(encode(whole).decode(), key)
        assert "***" in text and len(text) <= len(encode(before + after)) + 3 + 8
    for form in (key, key.upper(), key[::-1], quote(key, safe=""), key.encode().hex()):
        assert blot(f"say {form}!", key) == "say ***!"


@pytest.mark.parametrize(
    "masked",
    [f"{KEY[:8]}****{KEY[-4:]}", f"{KEY[:4]}...{KEY[-4:]}", f"{KEY[:6]}…", f"*****{KEY[-4:]}", f"{KEY[:7]}xxxxxx{KEY[-2:]}"],
)
def test_a_masked_key_is_blotted_out_with_what_it_shows(masked: str) -> None:
    text = blot(f"Incorrect API key provided: {masked}.", KEY)
    assert KEY[4:8] not in text and KEY[-4:] not in text and "provided: ***" in text


@given(st.integers(0, 70), st.sampled_from([KEY, f"{KEY[:4]}...{KEY[-4:]}", f"****{KEY[-4:]}", KEY.encode().hex()]))
def test_a_long_text_is_searched_step_by_step_and_no_form_is_lost_between_two(place: int, form: str) -> None:
    before, behind = ", " * (SEARCH_STEP // 2 - 35) + "," * place, " " + ", " * SEARCH_STEP
    assert blot(before + form + behind + form, KEY) == before + "***" + behind + "***"


def test_a_long_text_of_beginnings_of_the_key_is_searched_in_good_time() -> None:
    text = KEY[:4] * 2_000_000
    began = process_time()
    assert blot(text, KEY) == text
    assert process_time() - began < 1  # some 50 ms


def test_what_is_no_key_stays() -> None:
    code = "a = x ** 2  # sk-learn is no key...\n"
    assert blot(code, KEY) == code
    assert blot('{"change": "none"}', "none") == '{"change": "none"}', (
        "a key as short as a local server's is a word, and no secret"
    )
    assert blot("text", "") == "text"
