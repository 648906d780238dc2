"""A model that leads: what its mistakes do where its word holds, and where a rule judges it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import Fault
from trips import BARE, REMEDIED, Trip, effects, harm, stored, worked

from bench.record.form import Form
from bench.worlds.run.patterns.compensation import FOR_A_PERSON
from bench.worlds.run.patterns.delegation_by_model import MAX_TRIES, TASKS, UNANSWERED, decision_by_rule

BOOKED = ["book_flight", "book_hotel", "book_car"]
PATTERN = "delegation_by_model"


def message(effect: str) -> Fault:
    return {"point": "process", "effect": effect, "tool": "pay 1", "attempts": [1]}


def misjudged(first: str) -> Fault:
    """The evaluator's decision on the first report of this number is another one."""
    return {"point": "output", "effect": "wrong_value", "subtask": first, "attempts": [1]}


@pytest.mark.parametrize("form", [BARE, REMEDIED])
def test_a_model_that_leads_rightly_has_each_step_done_once(form: Form) -> None:
    result = worked(PATTERN, form)
    assert (result.record.outcome, harm(result)) == ("solved", {})
    assert effects(result) == [*BOOKED, "pay", "send"]
    assert stored(result, TASKS) == 6 and stored(result, FOR_A_PERSON) == 0


@pytest.mark.parametrize("form", [BARE, REMEDIED])
def test_a_lost_message_is_sent_again(form: Form) -> None:
    result = worked(PATTERN, form, [message("worker_dies")])
    assert (result.record.outcome, harm(result), effects(result).count("pay")) == ("solved", {}, 1)


def test_a_message_that_comes_twice_is_worked_on_twice_bare_and_once_with_remedies() -> None:
    assert harm(worked(PATTERN, BARE, [message("claimed_twice")])) == {"doubled": 1}
    assert harm(worked(PATTERN, REMEDIED, [message("claimed_twice")])) == {}


def test_a_step_that_fails_for_good_is_tried_again_and_handed_to_a_person() -> None:
    result = worked(PATTERN, BARE, trips=[Trip(1, 300, hotel="full")])
    assert stored(result, FOR_A_PERSON) >= 1 and effects(result).count("book_flight") == 1


@given(
    st.sampled_from(["", "failed", "late", "denied", "rejected", UNANSWERED]), st.booleans(), st.integers(1, 5), st.booleans()
)
def test_a_rule_accepts_only_what_has_succeeded_and_ends(why: str, wanting: bool, tries: int, others: bool) -> None:
    decision = decision_by_rule(why, has_unknown_effect=wanting, tries=tries, others=others)
    assert (decision == "accept") is (why == "" and not wanting)
    assert decision not in ("retry", "replan") or tries < MAX_TRIES
