"""A trial in a world as a workflow: its steps, its waiting for people, its retries, on whole trials of the patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trips import BARE, ONE, Trip, effects, environment, harm, waited, worked

from bench.run.experiment.trial import TrialResult
from bench.worlds.read.workflow import (
    StepTaken,
    completion_minutes,
    count_refused,
    minutes_at_work,
    steps_of,
    tool_retries,
)
from bench.worlds.run.environment import Environment, Moment, Quota, Role

DEAR = Trip(1, 900)
ANSWER = 60
"""Minutes that the manager takes."""


def in_role(world: Environment, role: str, contract: Role) -> Environment:
    """This world, whose steps are all done in this role."""
    steps = tuple(replace(step, role=role) for step in world.procedure)
    return replace(world, procedure=steps, roles={role: contract})


def ended(result: TrialResult) -> dict[str, str]:
    return {step.name: step.why for step in steps_of(result.record.events) if step.ended}


def test_every_step_that_was_done_is_told_and_one_that_came_to_nothing_says_why() -> None:
    plain = worked("plan_execute_evaluate")
    assert set(ended(plain).values()) == {""}
    assert all(step.done and step.attempts == 1 for step in steps_of(plain.record.events))
    full = worked("plan_execute_evaluate", trips=[Trip(1, 300, hotel="full")])
    assert "failed" in ended(full).values() or "fallen" in ended(full).values()


def test_a_step_that_is_executed_again_has_two_attempts_and_one_end() -> None:
    fault = {"point": "tool", "effect": "lost_ack", "tool": "pay", "attempts": [1, 2, 3]}
    result = worked("plan_execute_evaluate", BARE, [fault])
    assert max(step.attempts for step in steps_of(result.record.events)) == 2


def test_the_wait_for_a_person_is_measured_from_the_question_to_the_answer_and_once_over_a_crash() -> None:
    assert waited(worked("human_in_the_loop")) == 0
    assert waited(worked("human_in_the_loop", trips=[DEAR])) == ANSWER
    crash = {"point": "process", "effect": "before", "tool": "pay", "attempts": [1]}
    assert waited(worked("human_in_the_loop", trips=[DEAR], faults=[crash])) == ANSWER


def test_the_time_to_completion_ends_with_the_last_step_and_not_with_the_world() -> None:
    events = worked("human_in_the_loop", trips=[DEAR]).record.events
    took = completion_minutes(events, steps_of(events))
    assert took is not None and ANSWER <= took < 10 * 24 * 60


def test_the_time_at_work_leaves_out_the_calendar_and_counts_steps_at_the_same_time_once() -> None:
    """The person takes an hour, and the letter is sent on the third day."""
    events = worked("human_in_the_loop", trips=[DEAR]).record.events
    assert (minutes_at_work(steps_of(events)), completion_minutes(events, steps_of(events))) == (ANSWER, 3 * 24 * 60)
    spans = [(0, 60), (30, 90), (1440, 1450)]
    taken = [StepTaken(str(begins), 1, Moment.of(begins), Moment.of(ends), "") for begins, ends in spans]
    assert minutes_at_work([*taken, StepTaken("never ended", 1, Moment(2), None, "")]) == 100


def test_a_call_after_a_failed_one_is_a_retry_and_a_first_call_is_none() -> None:
    assert tool_retries(worked("bare_agent").record.events) == 0
    fault = {"point": "tool", "effect": "error", "tool": "pay", "attempts": [1, 2]}
    assert tool_retries(worked("bare_agent", BARE, [fault]).record.events) == 2


def test_a_step_calls_in_its_role_and_what_the_role_may_not_call_is_refused_and_counted() -> None:
    result = worked("state_machine", world=in_role(environment(ONE), "clerk", Role(denies=("pay",))))
    assert "pay" not in effects(result)
    assert count_refused(result.record.events, "forbidden") == 1
    assert count_refused(worked("state_machine").record.events, "forbidden") == 0


def test_with_remedies_what_a_day_refuses_is_done_the_day_after_and_a_bare_one_gives_it_up() -> None:
    world = replace(environment(ONE), quotas=(Quota(1, "book_hotel", per="day"), Quota(2, "pay")), throttle=0)
    assert harm(worked("state_machine", world=world)) == {}
    tight = replace(environment(ONE), quotas=(Quota(4, per="day"),), throttle=0)
    kept, bare = worked("state_machine", world=tight), worked("state_machine", BARE, world=tight)
    assert (harm(kept), kept.record.outcome) == ({}, "solved")
    assert count_refused(kept.record.events, "throttled") > 0
    assert bare.record.outcome == "wrong"


def test_a_step_that_outlasts_its_time_box_begins_no_effect_and_what_its_saga_did_is_taken_back() -> None:
    """Its person answers after an hour."""
    long, short = (worked("state_machine", world=boxed([DEAR], minutes)) for minutes in (90, 30))
    assert ("pay" in effects(long), "late" in ended(long).values()) == (True, False)
    assert ("pay" in effects(short), "late" in ended(short).values()) == (False, True)
    assert harm(short).get("uncompensated", 0) == 0


def boxed(trips: Sequence[Trip], minutes: int) -> Environment:
    world = environment(trips)
    return replace(world, procedure=tuple(replace(step, box=minutes) for step in world.procedure))
