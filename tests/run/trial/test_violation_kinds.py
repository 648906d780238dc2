"""A rejection has a kind as data, taken from what was violated and never from the words that tell of it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from bench.record.events import ViolationKind
from bench.run.trial.verification import Reason, Rejected, judge, validate
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


def kind_of(output: type[Output], value: Any) -> ViolationKind:
    verdict = validate(Subtask("a", "", (), output), value)
    assert isinstance(verdict, Rejected)
    return verdict.kind


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
    assert kind_of(Reading, value) == "vocabulary"


@pytest.mark.parametrize("value", [{"count": "many"}, {"count": "many", "word": "d"}, [], {"pets": {}}, {"pets": [{}]}])
def test_any_other_violation_is_of_the_form(value: Any) -> None:
    assert kind_of(Reading, value) == "form"


@pytest.mark.parametrize("value", [{}, {"word": "d"}, {"count": "many"}])
def test_a_missing_field_comes_before_whatever_else_is_wrong(value: Any) -> None:
    assert kind_of(Strict, value) == "missing_field"


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5, unique=True))
def test_whatever_the_words_of_a_closed_list_are_they_are_told_from_a_missing_field(words: list[str]) -> None:
    class Closed(Output):
        word: Literal[tuple(words)]  # type: ignore[valid-type]

    assert kind_of(Closed, {"word": 5.5}) == "vocabulary"
    assert kind_of(Closed, {}) == "missing_field"


def test_a_part_that_a_reply_lacks_is_a_missing_field() -> None:
    verdict = judge([Subtask("a", "", (), Reading)], {}, {}, {})["a"]
    assert isinstance(verdict, Rejected) and verdict.kind == "missing_field"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        *((kind, "form") for kind in ("empty", "refusal", "not_json")),
        *(("cut_off", "cut_off"), ("check", "content"), ("found_wrong", "content"), ("insufficient", "insufficient")),
    ],
)
def test_every_other_reason_has_its_kind(reason: Reason, kind: ViolationKind) -> None:
    assert Rejected("a", reason, "b: Field required").kind == kind
