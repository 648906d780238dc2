"""The contract that acts first: what a monitor behind the effects can repair, and what it cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trials import Fault
from trips import BARE, Trip, effects, harm, worked

from bench.record.form import Form
from bench.record.world_events import Stored
from bench.run.experiment.trial import TrialResult
from bench.worlds.run.patterns.parts.compensation import FOR_A_PERSON

FULL = Form(strength="business_rule", approval="risky", commit="compare_and_swap", signal="typed")
BOOKED = ["book_flight", "book_hotel", "book_car"]
LOST: Fault = {"point": "tool", "effect": "lost_ack", "tool": "*", "attempts": [1]}
DEAR, PRIVATE = Trip(1, 900), Trip(1, 800, reason="private")


def left_for_a_person(result: TrialResult) -> list[Any]:
    stored = (event for event in result.record.events if isinstance(event, Stored) and event.name == FOR_A_PERSON)
    return [json.loads(result.texts[event.value]) for event in stored]


@pytest.mark.parametrize("form", [BARE, FULL, Form(remedies=True)])
def test_where_nothing_is_objected_to_both_contracts_do_the_same(form: Form) -> None:
    first, second = (worked(pattern, form) for pattern in ("state_machine", "repair_afterwards"))
    assert effects(first) == effects(second) == [*BOOKED, "pay", "send"]
    assert (second.record.outcome, harm(second)) == ("solved", {})


def test_an_effect_that_a_person_must_approve_is_made_before_anybody_is_asked() -> None:
    before, after = (worked(pattern, FULL, trips=[DEAR]) for pattern in ("state_machine", "repair_afterwards"))
    assert (before.record.outcome, harm(before)) == ("solved", {})
    assert (after.record.outcome, harm(after)) == ("solved", {"unauthorised": 1})


def test_a_final_effect_that_a_person_refuses_stands_and_is_left_for_a_person() -> None:
    result = worked("repair_afterwards", FULL, trips=[PRIVATE])
    assert result.record.outcome == "wrong" and effects(result) == [*BOOKED, "pay", "send"]
    assert left_for_a_person(result) == [{"step": "pay 1", "not repaired": ["payment for trip 1"]}]


def test_a_monitor_that_may_ask_nobody_lets_the_payment_stand_and_notes_nothing() -> None:
    never = Form(strength="business_rule", approval="never", commit="compare_and_swap", signal="typed")
    assert left_for_a_person(worked("repair_afterwards", never, trips=[PRIVATE])) == []


def test_under_a_key_a_lost_answer_doubles_nothing_and_without_it_does() -> None:
    kept, plain = (worked("repair_afterwards", Form(commit=commit), [LOST]) for commit in ("idempotent", "plain"))
    assert harm(kept) == {} and harm(plain)["doubled"] == 5
