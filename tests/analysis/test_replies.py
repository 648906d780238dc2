"""A reply is one row, whatever it held; why it was rejected is told by its verdicts, in pydantic's own words."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from records import accepted, called, committed, fault, rejected, run_of, trial

from bench.analysis.replies import Kind, kind_of
from bench.runtime.events import Event, Stage
from bench.runtime.verification import Rejected, validate
from bench.scenario import Output, Subtask


class Colour(Enum):
    RED = "red"
    BLUE = "it's blue; so: there"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Reading(Output):
    word: Literal["a: Field required", "b; c", 'say "x"'] = "b; c"
    number: Literal[1, -2] = 1
    colour: Colour = Colour.RED
    count: int = 0
    needed: str = ""
    pets: tuple[Annotated[Cat | Dog, Field(discriminator="kind")], ...] = ()


class Strict(Reading):
    needed: str


def kind_of_value(output: type[Output], value: Any) -> Kind:
    verdict = validate(Subtask("a", "", (), output), value)
    assert isinstance(verdict, Rejected)
    return kind_of(verdict.reason, verdict.detail)


@pytest.mark.parametrize(
    "value",
    [
        {"word": "d"},
        {"number": 3},
        {"colour": "green"},
        {"pets": [{"kind": "fish"}]},
        {"word": "d", "number": 3, "colour": "green", "pets": [{"kind": "fish"}]},
    ],
)
def test_a_word_outside_a_closed_list_is_of_the_vocabulary(value: Any) -> None:
    assert kind_of_value(Reading, value) == "vocabulary"


@pytest.mark.parametrize("value", [{"count": "many"}, {"count": "many", "word": "d"}, [], {"pets": {}}, {"pets": [{}]}])
def test_any_other_violation_is_of_the_form(value: Any) -> None:
    assert kind_of_value(Reading, value) == "form"


@pytest.mark.parametrize("value", [{}, {"word": "d"}, {"count": "many"}])
def test_a_missing_field_comes_before_whatever_else_is_wrong(value: Any) -> None:
    assert kind_of_value(Strict, value) == "missing_field"


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5, unique=True))
def test_whatever_the_words_of_a_closed_list_are_they_are_told_from_a_missing_field(words: list[str]) -> None:
    class Closed(Output):
        word: Literal[tuple(words)]  # type: ignore[valid-type]

    assert kind_of_value(Closed, {"word": 5.5}) == "vocabulary"
    assert kind_of_value(Closed, {}) == "missing_field"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        *((one, "form") for one in ("empty", "refusal", "not_json")),
        *(("cut_off", "cut_off"), ("check", "content"), ("found_wrong", "content"), ("insufficient", "insufficient")),
    ],
)
def test_every_other_reason_has_its_kind(reason: str, kind: Kind) -> None:
    assert kind_of(reason, "") == kind


def test_a_reply_with_several_outputs_is_one_row_of_the_first_kind_there_was(tmp_path: Path) -> None:
    events: list[Event] = [
        called(1, "a", "b", "c"),
        *(rejected(1, "a", "check"), rejected(1, "b", "schema", "type: Input should be 'x' or 'y'"), accepted(1, "c")),
        called(2, "a", "b", "c"),
        *(accepted(2, name) for name in "abc"),
    ]
    run = run_of(tmp_path / "run", [trial(outcome="gave_up", events=events)])
    assert run.replies[["call", "subtask", "kind"]].values.tolist() == [[1, "all", "vocabulary"], [2, "all", ""]]


def test_replies_of_a_struck_call_and_what_was_made_from_them_are_exposed(tmp_path: Path) -> None:
    events: list[Event] = [
        *(*fault("planned", "delivered", call=1, subtask="a"), called(1, "a"), committed(1, "a")),
        *(called(2, "b"), committed(2, "b", made_from=[("a", 1)]), called(3, "c"), committed(3, "c")),
        *(rejected(1, "a"), rejected(2, "b"), accepted(3, "c"), *fault("gave_up", call=1, subtask="a")),
    ]
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome="gave_up", events=events)])
    assert dict(zip(run.replies["subtask"], run.replies["exposed"], strict=True)) == {"a": True, "b": True, "c": False}


def test_a_struck_reply_is_what_was_said_of_it_as_it_stood(tmp_path: Path) -> None:
    undamaged = replace(rejected(2, "b", "check"), view="undamaged", fault=1)
    events: list[Event] = [*fault("planned", "delivered"), called(2, "b"), undamaged, rejected(2, "b", "insufficient")]
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome="gave_up", events=[*events, *fault("gave_up")])])
    assert run.replies[["exposed", "kind"]].values.tolist() == [[True, "insufficient"]]


def test_an_inapplicable_fault_exposes_nothing(tmp_path: Path) -> None:
    stages: tuple[Stage, ...] = ("planned", "not_applicable")
    events: list[Event] = [*fault(*stages, call=1, subtask="a"), called(1, "a"), accepted(1, "a")]
    run = run_of(tmp_path / "run", [trial(plan="paper", events=events)])
    assert run.replies["exposed"].tolist() == [False]
