"""The patterns in a world: what each does without a fault, what a crash makes of it bare, and that with its author's remedies
nothing of that is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trips import BARE, ONE, PATTERNS, REMEDIED, Trip, effects, environment, harm, stored, worked

from bench.record.world_events import ToolCalled
from bench.worlds.run.environment import Person
from bench.worlds.run.patterns.calling import LASTING_TRIES
from bench.worlds.run.runtime.lives import MAX_LIVES

POINTS = ("before", "unacknowledged", "unrecorded", "recorded")
BOOKED = ["book_flight", "book_hotel", "book_car"]
FULL, PRIVATE, DEAR = Trip(1, 300, hotel="full"), Trip(1, 800, reason="private"), Trip(1, 900)
TOOLS = (*BOOKED, "cancel_flight", "pay", "send", "*")


def spread(patterns: Sequence[str]) -> pytest.MarkDecorator:
    """Each of these patterns at each point; the short form has each pattern at one and each point by some."""
    every = [
        pytest.param(pattern, point, marks=[pytest.mark.endurance] if (place + index) % len(POINTS) else [])
        for place, pattern in enumerate(patterns)
        for index, point in enumerate(POINTS)
    ]
    return pytest.mark.parametrize(("pattern", "point"), every)


FORGETFUL = ("bare_agent", "hierarchical_delegation", "scatter_gather_saga", "supervisor_gate", "human_in_the_loop")
"""Those that keep nothing over a crash, bare."""
REMEMBERING = ("event_driven", "state_machine", "plan_execute_evaluate", "composition", "plan_and_replan")


@pytest.mark.parametrize("form", [BARE, REMEDIED])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_without_a_fault_a_plain_trip_is_booked_once_in_either_form(pattern: str, form: object) -> None:
    result = worked(pattern, BARE if form == BARE else REMEDIED)
    assert (result.record.outcome, harm(result)) == ("solved", {})
    assert effects(result) == [*BOOKED, "pay", "send"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_with_remedies_a_saga_that_fails_is_undone_and_bare_only_those_with_a_saga_undo_it(pattern: str) -> None:
    kept = worked(pattern, trips=[FULL])
    assert (kept.record.outcome, harm(kept)) == ("solved", {})
    assert bool(harm(worked(pattern, BARE, trips=[FULL]))) is (pattern not in ("scatter_gather_saga", "composition"))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_a_person_denied_is_not_done_and_what_was_booked_for_it_is_given_back_in_reverse(pattern: str) -> None:
    result = worked(pattern, trips=[PRIVATE])
    assert (result.record.outcome, harm(result)) == ("solved", {})
    assert effects(result) == [*BOOKED, "cancel_car", "cancel_hotel", "cancel_flight", "send"]


def test_bare_only_who_has_people_in_the_loop_asks_one() -> None:
    patterns = ("bare_agent", "supervisor_gate", "human_in_the_loop", "composition")
    asked = ["pay" not in effects(worked(pattern, BARE, trips=[PRIVATE])) for pattern in patterns]
    assert asked == [False, False, True, True]


@spread(FORGETFUL)
def test_bare_one_that_forgets_does_again_what_it_had_done_before_it_died(pattern: str, point: str) -> None:
    result = worked(pattern, BARE, [{"point": "process", "effect": point, "tool": "pay", "attempts": [1]}])
    again = [] if point == "before" else ["pay"]
    assert harm(result)["doubled"] == len(BOOKED) + len(again)
    assert effects(result).count("book_flight") == 2


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("pattern", REMEMBERING)
def test_bare_one_that_keeps_its_steps_does_the_step_again_in_which_it_died(pattern: str, point: str) -> None:
    """With an event's place in the log unkept, its consumer begins anew all that the event had begun."""
    result = worked(pattern, BARE, [{"point": "process", "effect": point, "tool": "pay", "attempts": [1]}])
    doubled = harm(result).get("doubled", 0)
    if pattern == "event_driven":
        assert doubled >= len(BOOKED)
    else:
        assert doubled == (point in ("unacknowledged", "unrecorded"))


@spread(PATTERNS)
def test_with_remedies_each_effect_may_die_at_its_first_try_and_nothing_is_damaged(pattern: str, point: str) -> None:
    fault = {"point": "process", "effect": point, "tool": "*", "attempts": [1]}
    result = worked(pattern, REMEDIED, [fault], [DEAR], [1])
    assert (result.record.outcome, harm(result)) == ("solved", {})


CRASHES = st.lists(st.tuples(st.sampled_from(POINTS), st.sampled_from(TOOLS), st.floats(0.1, 0.5)), min_size=1, max_size=3)
TRIPS = st.sampled_from((ONE, (FULL,), (PRIVATE,), (DEAR,)))


def undamaged(pattern: str, crashes: list[tuple[str, str, float]], trips: tuple[Trip, ...], repetition: int) -> None:
    """Assert that a trial with these crashes does no damage. A trial that was cut off after the most lives shows nothing:
    no remedy mends that."""
    faults = [{"point": "process", "effect": point, "tool": tool, "probability": chance} for point, tool, chance in crashes]
    result = worked(pattern, REMEDIED, faults, trips, [1], repetition=repetition)
    if result.record.reason != f"the agent: died {MAX_LIVES} times":
        assert (result.record.outcome, harm(result)) == ("solved", {}), result.record.reason


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(PATTERNS), CRASHES, TRIPS, st.integers(1, 3))
def test_with_remedies_and_a_right_proposer_no_crash_anywhere_does_damage(
    pattern: str, crashes: list[tuple[str, str, float]], trips: tuple[Trip, ...], repetition: int
) -> None:
    undamaged(pattern, crashes, trips, repetition)


@pytest.mark.endurance
@settings(max_examples=1_000, deadline=None)
@given(st.sampled_from(PATTERNS), CRASHES, TRIPS, st.integers(1, 3))
def test_with_remedies_and_a_right_proposer_no_crash_of_a_thousand_does_damage(
    pattern: str, crashes: list[tuple[str, str, float]], trips: tuple[Trip, ...], repetition: int
) -> None:
    undamaged(pattern, crashes, trips, repetition)


def test_with_remedies_a_queue_cancels_a_flight_whose_booking_a_crash_kept_from_being_recorded() -> None:
    undamaged("work_queue", [("before", "book_flight", 0.25), ("unrecorded", "book_flight", 0.5)], (FULL,), 1)


def test_with_remedies_a_booking_that_was_tried_in_vain_is_not_tried_again_to_be_undone() -> None:
    down = {"point": "tool", "effect": "error", "tool": "book_hotel", "attempts": "every"}
    result = worked("state_machine", REMEDIED, [down])
    tried = [event for event in result.record.events if isinstance(event, ToolCalled) and event.tool == "book_hotel"]
    assert len(tried) == LASTING_TRIES and stored(result, "for a person")
    assert effects(result) == ["book_flight", "cancel_flight", "send"]


@pytest.mark.parametrize("effect", ["error", "slow", "duplicate", "lost_ack", "stale_read"])
def test_with_remedies_no_fault_of_a_tool_does_damage(effect: str) -> None:
    for pattern in ("state_machine", "scatter_gather_saga"):
        result = worked(pattern, REMEDIED, [{"point": "tool", "effect": effect, "attempts": [1]}], strikes=[1])
        assert (result.record.outcome, harm(result)) == ("solved", {})


def test_a_notice_that_comes_twice_is_worked_twice_by_a_bare_consumer_and_once_with_remedies() -> None:
    twice = [{"point": "event", "effect": "doubled", "event": "requested", "attempts": [1]}]
    assert harm(worked("event_driven", BARE, twice))["doubled"] > 0
    assert harm(worked("event_driven", REMEDIED, twice)) == {}


def test_a_step_that_was_taken_back_is_done_again_under_another_key() -> None:
    result = worked("state_machine", strikes=[1])
    assert effects(result).count("book_flight") == 2
    assert harm(result) == {}


def test_a_person_who_never_answers_has_agreed_for_the_bare_one_alone() -> None:
    world = environment([DEAR])
    silent = replace(world, people={"manager": replace(world.people["manager"], silent=1.0)})
    assert isinstance(silent.people["manager"], Person)
    assert "pay" in effects(worked("human_in_the_loop", BARE, world=silent))
    assert "pay" not in effects(worked("human_in_the_loop", REMEDIED, world=silent))


def test_with_remedies_every_decision_of_the_gate_is_kept() -> None:
    result = worked("supervisor_gate")
    assert stored(result, "audit") == len(effects(result))
    assert stored(worked("supervisor_gate", BARE), "audit") == 0
