"""A text is parsed in the sandbox, so that whatever it holds costs this process nothing."""

from __future__ import annotations

import ast
import warnings

import pytest
from cost import processor_time
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.run.sandbox.syntax import unparsable


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", ""),
        ("return 1", ""),
        ("x = '\\d'", ""),
        ("def double(x: return x", "line 1: invalid syntax"),
        ("x = (\n", "line 1: '(' was never closed"),
        ("x = '\ud800'", "UnicodeEncodeError"),
        ("-" * 60_000 + "1", "MemoryError"),
        ("x" + ".a" * 30_000, "RecursionError"),
    ],
)
def test_a_text_is_python_or_it_is_said_why_not(text: str, why: str) -> None:
    assert unparsable(text) == why


def test_a_text_that_takes_too_long_to_parse_is_none_and_takes_nothing_of_this_process() -> None:
    with processor_time(at_most=1):
        assert unparsable("a" + "\u0301\u0316" * 32_000).startswith("ended by signal")


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["x", "=", "(", ")", "\n", " ", "def f():", "'", "1", ":", "\\", "é", "\0"]), max_size=8))
def test_the_sandbox_says_what_the_parser_says(pieces: list[str]) -> None:
    text = "".join(pieces)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            assert unparsable(text)
        else:
            assert unparsable(text) == ""
