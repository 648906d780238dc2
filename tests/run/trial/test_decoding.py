"""Hostile texts are read in time that grows as they do, and what is too deep for one reader is too deep for all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.common.bounds import MAX_LEVELS
from bench.run.trial import decoding
from bench.run.trial.decoding import Extracted
from bench.run.trial.verification import Unreadable, extract

HOSTILE = [
    '{"a": x' + '\\"' * 320_000,
    "{'a': x \\\"}" * 30_000,
    "{'a': x}" * 40_000,
    '{"' * 40_000,
    '{"a":' * 130_000,
    '{"a":' * 100_000 + "1" + "}" * 100_000,
    '{"a":' + "[" * 640_000,
]


class Counted:
    """A pattern that counts the characters between where it is asked to look and where it finds."""

    def __init__(self, pattern: re.Pattern[str]):
        self._pattern = pattern
        self.passed = 0

    def search(self, text: str, at: int) -> re.Match[str] | None:
        match = self._pattern.search(text, at)
        self.passed += (match.end() if match else len(text)) - at
        return match


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_read_in_time_that_grows_as_it_does(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, decode = list[int](), decoding._decoder.raw_decode

    def counted(text: str) -> Any:
        shown.append(len(text))
        return decode(text)

    patterns = Counted(decoding._brace), Counted(decoding._brace_or_string)
    monkeypatch.setattr(decoding._decoder, "raw_decode", counted)
    monkeypatch.setattr(decoding, "_brace", patterns[0])
    monkeypatch.setattr(decoding, "_brace_or_string", patterns[1])
    assert isinstance(extract(text), Unreadable)
    assert sum(shown) <= 4 * decoding.FIRST_WINDOW_CHARS * (text.count("{") + 1)
    assert sum(pattern.passed for pattern in patterns) <= 2 * len(text)


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * levels + "1" + closing * levels


@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 700, 3_000])
def test_what_is_nested_too_deeply_is_malformed_for_every_reader(levels: int) -> None:
    for text in (
        nested(levels),
        '{"b":' + nested(levels - 1, "[", "]") + "}",
        '{"b": "\\u00e9", "c":' + nested(levels - 1) + "}",
    ):
        assert extract(text) == Unreadable("not_json", "the JSON object is malformed: it is nested too deeply")


def test_as_deep_as_may_be_is_read() -> None:
    assert isinstance(extract(nested(MAX_LEVELS)), Extracted)
    assert isinstance(extract(json.dumps({"a": [{"b": [1]}] * 500})), Extracted), "wide is not deep"


pieces = st.sampled_from(
    ['{"a": ', "{", "}", '"', "\\", '\\"', "{'a':", " ", "\n", "1", "tru", "x", "[", "]", ",", "NaN", "\\ud800", "é"]
)


@given(st.lists(pieces, max_size=40).map("".join), st.integers(17, 40))
def test_how_much_the_decoder_is_shown_at_a_time_changes_nothing(text: str, window: int) -> None:
    whole = extract(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decoding, "FIRST_WINDOW_CHARS", window)
        assert extract(text) == whole
