"""One rule finds the JSON in a reply, and what is not accepted is data with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import TINY

from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import LONG_REPLY_CHARS, draft_of
from bench.run.trial.verification import (
    MAX_OBJECTS_TRIED,
    Rejected,
    Unreadable,
    _extract,
    check,
    extract,
    finding,
    insufficient,
    judge,
    validate,
)
from bench.scenario import LARGEST_OUTPUT, Json, Output

TASK = TINY.task
GATHER, TOTAL, REVIEW = TASK.subtasks
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)
PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{"))


def value_in(text: str) -> Json:
    reading = extract(text)
    assert isinstance(reading, Extracted), reading
    return reading.value


def reason_of(text: str, finish: str = "stop") -> str:
    reading = extract(text, finish)
    assert isinstance(reading, Unreadable), reading
    return reading.reason


def accepted(name: str, **changed: Json) -> Any:
    output = validate(TASK.subtask(name), {**TINY.reference[name], **changed})
    assert isinstance(output, Output)
    return output


@given(st.text() | st.text(alphabet='{}[]":,\\ntu0-.eE`a '))
def test_reading_never_raises(text: str) -> None:
    extract(text)


@given(PROSE, OBJECTS, st.text(), st.sampled_from([None, 2]))
def test_an_object_is_found_in_whatever_stands_around_it(before: str, value: Json, after: str, indent: int | None) -> None:
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    reading = extract(f"{before}{written}{after}")
    assert isinstance(reading, Extracted)
    assert reading.value == value
    assert f"{before}{written}{after}"[reading.start : reading.end] == written


@given(OBJECTS, st.data())
def test_of_an_object_that_breaks_off_nothing_inside_is_taken_in_its_place(value: Json, data: st.DataObject) -> None:
    written = json.dumps({"outer": value})
    cut = data.draw(st.integers(1, len(written) - 1))
    assert reason_of(written[:cut]) == "cut_off"
    assert reason_of(f"```json\n{written[:cut]}\n```") == "cut_off"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, // so many\n "b": {"c": 2}}',
        '{"a": , "b": {"c": 2}}',
        '{"a": I cannot help with that., "b": {"c": 2}}',
        '{"a": NaN, "b": {"c": 2}}',
        '{"a": "\\ud800", "b": {"c": 2}}',
        "{'a': 1, 'b': {\"c\": 2}}",
    ],
)
def test_of_a_malformed_object_nothing_inside_is_taken_in_its_place(text: str) -> None:
    assert reason_of(text) == "not_json"
    assert value_in(f'{text}\nCorrected: {{"a": 3}}') == {"a": 3}


def test_what_is_malformed_is_said_with_its_place() -> None:
    assert extract('{\n "a": ,}') == Unreadable("not_json", "the JSON object is malformed: Expecting value at line 2, column 7")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('Fill in {name} and {}: {"a": 1}', {}),
        ('Fill in {name}: {"a": 1}', {"a": 1}),
        ('A stray { in prose. {"a": 1}', {"a": 1}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('[{"a": 1}, {"a": 2}]', {"a": 1}),
        ('I\'m sorry for the wait: {"a": 1}', {"a": 1}),
    ],
)
def test_the_first_object_that_can_be_read_is_the_reply(text: str, value: Json) -> None:
    assert value_in(text) == value


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("", "stop", "empty"),
        (" \n", "stop", "empty"),
        ("I'm sorry, but I can't help with that.", "stop", "refusal"),
        ("Nothing to see here.", "stop", "not_json"),
        ("[1, 2]", "stop", "not_json"),
        ("{" * 5000 + '"a": 1', "stop", "cut_off"),
        ('{"a":' * 5000 + "1", "stop", "not_json"),
        ('{"a": 1}', "content_filter", "refusal"),
    ],
)
def test_a_reply_without_an_object_says_why(text: str, finish: str, reason: str) -> None:
    assert reason_of(text, finish) == reason


@pytest.mark.parametrize(
    "rest", ['"unfinish', "12", "-", "1.", "1.5e", "2e-", "tr", "fals", "nul", '"\\u00', '"x\\', "[1, 2", ""]
)
def test_a_reply_may_break_off_anywhere(rest: str) -> None:
    assert reason_of(f'{{"a": {{"b": 1}}, "c": {rest}') == "cut_off"


@given(OBJECTS.filter(lambda value: "total" not in value))
def test_a_missing_field_is_rejected_by_name(value: Json) -> None:
    rejected = validate(TOTAL, {**value, "unit": "apples"})
    assert rejected == Rejected("total", "schema", "total: Field required", errors=("missing",))


def test_many_violations_are_counted_and_the_first_are_told() -> None:
    rejected = validate(GATHER, {"deliveries": [{}, {}, {}], "confidence": 2})
    assert isinstance(rejected, Rejected)
    assert rejected.detail.count(";") == 3
    assert rejected.detail.endswith("; and 4 more")


def test_a_check_objects_in_one_line() -> None:
    output = accepted("gather", deliveries=[{"day": "Sun\nday", "apples": 1}])
    rejected = check(GATHER, output, TASK.documents, {})
    assert rejected == Rejected("gather", "check", "the notes know no day 'Sun day'")


def test_a_check_is_not_run_where_what_it_reads_is_not_valid() -> None:
    assert check(TOTAL, accepted("total", total=1), TASK.documents, {}) is None
    assert check(TOTAL, accepted("total", total=1), TASK.documents, {"gather": accepted("gather")}) is not None


def test_a_valid_output_may_be_too_weak_to_build_on() -> None:
    assert insufficient(GATHER, accepted("gather")) is None
    assert insufficient(GATHER, accepted("gather", confidence=0.5)) == Rejected(
        "gather", "insufficient", "confidence 0.5 is below 0.6"
    )
    assert insufficient(TOTAL, accepted("total")) is None


def test_a_finding_is_about_the_subtask_that_was_found_wrong_and_in_one_line() -> None:
    violation = finding(REVIEW, accepted("review", approved=False, problems=["12 + 30\nis 42"]))
    assert violation == Rejected("total", "found_wrong", "12 + 30 is 42")
    assert finding(REVIEW, accepted("review")) is None


def test_in_one_reply_a_finding_rejects_the_part_that_it_is_about() -> None:
    values = {**TINY.reference, "review": {"approved": False, "problems": ["no"]}}
    verdicts = judge(TASK.subtasks, values, TASK.documents, {})
    assert verdicts["total"] == Rejected("total", "found_wrong", "no")
    assert isinstance(verdicts["review"], Output)


def test_a_rejected_part_finds_nothing_and_an_invalid_part_keeps_its_own_reason() -> None:
    broken = {**TINY.reference, "review": {"approved": False}}
    assert isinstance(judge(TASK.subtasks, broken, TASK.documents, {})["total"], Output)
    both = {**TINY.reference, "total": {"unit": "apples"}, "review": {"approved": False, "problems": []}}
    assert judge(TASK.subtasks, both, TASK.documents, {})["total"] == Rejected(
        "total", "schema", "total: Field required", errors=("missing",)
    )


def test_a_part_that_the_reply_lacks_is_a_missing_field() -> None:
    values = {name: TINY.reference[name] for name in ("gather", "review")}
    assert judge(TASK.subtasks, values, TASK.documents, {})["total"] == Rejected(
        "total", "schema", "total: Field required", errors=("missing",)
    )


def test_an_object_longer_than_the_largest_output_could_be_is_not_read() -> None:
    escaped = "\\u00e9" * LARGEST_OUTPUT
    assert value_in(f'{{"a": "{escaped}"}}') == {"a": "é" * LARGEST_OUTPUT}
    longer = f'{{"a": "{escaped * 2}", "b": {{"a": 2}}}}'
    reading = extract(longer)
    assert isinstance(reading, Unreadable) and reading.reason == "not_json"
    assert reading.detail == "the JSON object is malformed: it has more than 524,288 characters"
    assert value_in(f'{longer} {{"a": 1}}') == {"a": 1}


def test_of_many_beginnings_so_many_are_tried() -> None:
    reading = extract('{"' * MAX_OBJECTS_TRIED + '"} {"a": 1}')
    assert isinstance(reading, Unreadable) and reading.detail == "the reply begins 1,000 objects that are no JSON"
    assert value_in('{"' * (MAX_OBJECTS_TRIED - 1) + '"} {"a": 1}') == {"a": 1}


@given(st.text(alphabet='{}[]":,\\ntu0-.eE`a ', max_size=40), st.sampled_from([None, ((0, 9),)]))
def test_a_long_reply_reads_as_it_does_at_first(text: str, code: tuple[tuple[int, int], ...] | None) -> None:
    long = " " * LONG_REPLY_CHARS + text
    assert extract(long, code=code) == extract(long, code=code) == _extract(long, code, draft_of(long))
