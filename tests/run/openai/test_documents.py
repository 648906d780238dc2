"""A document within bounds: whatever is in eight megabytes, it is told in a second and within two hundred."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest
from cost import processor_time
from hypothesis import example, given
from hypothesis import strategies as st

from bench.common.errors import CallFailed
from bench.run.openai.bodies import MAX_REPLY_BYTES, text_in
from bench.run.openai.documents import MAX_VALUES, MAX_VALUES_WITH_LOCK, UnreadableDocument, document_of
from bench.run.openai.replies import reply_of

Record = Callable[[str, object], None]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def filled(unit: str, opening: str = '{"choices":[', end: str = "0]}") -> str:
    """As many of these as a reply may have bytes."""
    return opening + unit * ((MAX_REPLY_BYTES - len(opening) - len(end)) // len(unit.encode())) + end


BOMBS = {
    "numbers": partial(filled, "0,"),
    "objects": partial(filled, "{},"),
    "lists": partial(filled, "[],"),
    "choices that are none": partial(filled, '{"index":1},'),
    "tool calls": partial(filled, "0,", '{"choices":[{"message":{"tool_calls":['),
    "fields": partial(filled, '{"":0},'),
    "texts": partial(filled, '"",'),
    "letters": partial(filled, '"日",'),
    "texts in lists": partial(filled, '[""],'),
    "brackets in texts": partial(filled, '"[",'),
    "quotes in a text": partial(filled, '\\"', '{"choices":[{"message":{"content":"', ""),
    "one long number": partial(filled, "9", end="]}"),
    "depth": partial(filled, "[", end=""),
    "parts": partial(filled, '"x",', '{"choices":[{"message":{"content":[', '"x"]}}]}'),
    "halves of pairs": partial(filled, "\\ud83d", '{"choices":[{"message":{"content":"', '"}}]}'),
    "errors in an error": partial(filled, '{"error":', end=""),
}


@pytest.mark.parametrize("what", BOMBS)
def test_the_worst_body_is_told_in_a_second_of_processor_and_within_200_megabytes(what: str, record_property: Record) -> None:
    body = BOMBS[what]()
    with processor_time(at_most=1.0) as took:
        tried(body)
    tracemalloc.start()
    try:
        tried(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    for name, value in (("place", "an endpoint's reply"), ("processor", took.seconds), ("peak", peak / 2**20)):
        record_property(name, value)
    assert peak < 200e6


def tried(body: str) -> None:
    try:
        reply_of(body)
    except CallFailed as failure:
        assert failure.detail and len(failure.detail) < 300


@pytest.mark.parametrize("unit", ["0,", "1e0,", "null,", "1234567,"])
def test_more_numbers_than_any_reply_has_are_not_decoded(unit: str) -> None:
    with pytest.raises(UnreadableDocument) as caught:
        document_of(filled(unit))
    assert caught.value.why == "too_many"


def test_a_text_full_of_brackets_and_commas_is_a_text() -> None:
    text = '{"[,,,\\' * MAX_VALUES
    assert document_of(json.dumps({"a": text, text[:9]: ["b"]})) == {"a": text, text[:9]: ["b"]}


def test_a_document_has_so_many_values_and_not_one_more() -> None:
    most = {"values": list(range(MAX_VALUES - 1))}
    assert document_of(json.dumps(most)) == most
    with pytest.raises(UnreadableDocument) as caught:
        document_of(json.dumps({"values": list(range(MAX_VALUES + 1))}))
    assert caught.value.why == "too_many"


@given(st.dictionaries(st.text(max_size=5), ANY_JSON, max_size=4), st.sampled_from(["", "\ufeff", "\n "]), st.text())
@example({"many": [[], {"a": [1.5, None, True, "ü\n"]}] * MAX_VALUES_WITH_LOCK, "b": -1}, "", ",]}")
@example({"many": [int("9" * 4000), *range(MAX_VALUES_WITH_LOCK)]}, "", "")
def test_an_object_is_read_as_it_is_whatever_follows_it(document: dict[str, object], before: str, after: str) -> None:
    assert document_of(before + json.dumps(document) + " " + after) == document


@given(st.dictionaries(st.text(max_size=5), ANY_JSON, min_size=1, max_size=4), st.data())
def test_the_beginning_of_an_object_breaks_off(document: dict[str, object], data: st.DataObject) -> None:
    whole = json.dumps(document)
    with pytest.raises(UnreadableDocument) as caught:
        document_of(whole[: data.draw(st.integers(1, len(whole) - 1))])
    assert caught.value.why == "broke_off"


@given(st.text())
@example("[" * 100_000)
@example('{"a": ' * 100_000)
@example('{"a": ' + "9" * 5000 + "}")
def test_any_text_is_a_document_or_is_none(text: str) -> None:
    try:
        assert isinstance(document_of(text), dict)
    except UnreadableDocument as error:
        assert error.why in ("broke_off", "too_many", "none")


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_a_body_is_text_in_whatever_unicode_it_is_written(coding: str) -> None:
    assert document_of(text_in('{"a": "Grüße 日"}'.encode(coding))) == {"a": "Grüße 日"}


def test_what_is_no_unicode_loses_nothing_else() -> None:
    assert document_of(text_in(b'{"a": "\xff\xfe", "b": "\xed\xa0\x80", "c": 1}'))["c"] == 1
