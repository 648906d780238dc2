"""What goes back to a provider as it came, in one text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.record.extra_fields import STANDARD, extra_in, extra_text
from bench.record.tool_calls import OF_A_CALL, ToolCall, calls_in, counted_text_of, text_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name not in (*STANDARD, *OF_A_CALL, "name", "arguments")), JSON
)


@given(FIELDS)
def test_all_fields_that_say_something_come_back(fields: dict[str, Any]) -> None:
    given_fields = {name: value for name, value in fields.items() if value is not None and value not in ([], {})}
    assert extra_in(extra_text(fields)) == given_fields
    assert extra_text(extra_in(extra_text(fields))) == extra_text(fields)


@given(FIELDS, FIELDS, st.text(), st.text())
def test_calls_with_such_fields_are_kept_as_one_text_and_counted_without_them(
    beside: dict[str, Any], within: dict[str, Any], name: str, arguments: str
) -> None:
    extra = extra_text({**beside, "function": extra_in(extra_text(within))})
    calls = (ToolCall("a", name, arguments, extra), ToolCall("b", name, arguments))
    assert calls_in(text_of(calls)) == calls
    assert counted_text_of(calls) == text_of((ToolCall("a", name, arguments), ToolCall("b", name, arguments)))


def test_the_order_of_fields_makes_no_other_request() -> None:
    assert extra_text({"a": {"y": 1, "x": 2}, "b": 1}) == extra_text({"b": 1, "a": {"x": 2, "y": 1}})


def test_a_call_without_such_fields_is_written_as_before_there_were_any() -> None:
    assert (
        text_of([ToolCall("a", "f", "{}")]) == '[{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]'
    )


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), float("nan"), 10**5000, -(10**400)], ids=range(5))
def test_a_number_that_nobody_could_read_is_null_and_loses_nothing_else(number: float) -> None:
    assert extra_text({"a": [number, {"c": number}], "b": 1}) == '{"a": [null, {"c": null}], "b": 1}'


def test_a_nest_without_end_is_left_out_and_loses_no_reply() -> None:
    nest = json.loads("[" * 900 + "]" * 900)
    assert extra_text({"a": [nest]}) in ("", json.dumps({"a": [nest]}))


@pytest.mark.parametrize("text", ["[]", "3", "{", "no"])
def test_a_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        extra_in(text)
