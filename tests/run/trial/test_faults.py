"""The schedule is the same for everyone, and every planned fault has a receipt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bench.record.events import Faulted
from bench.record.plan_entries import Point
from bench.run.trial.faults import DueFault, Fault, FaultPlan, FaultSchedule, Strike
from bench.run.trial.key import TrialKey

SUBTASKS = ("a", "b", "c")
CONTENT: tuple[Point, ...] = ("output", "input", "state")
PLAN = FaultPlan(
    "p",
    (
        Fault("output", "missing_field", probability=0.3),
        Fault("output", "wrong_value", "b", probability=0.5),
        Fault("call", "rate_limit", probability=0.4),
        Fault("call", "timeout", probability=0.4),
        Fault("state", "stale", attempts=(1, 3)),
    ),
)


def schedule_of(
    plan: FaultPlan = PLAN, seed: int = 1, repetition: int = 1, log: list[Faulted] | None = None, instance: str = ""
) -> FaultSchedule:
    return FaultSchedule(plan, TrialKey(seed, "pack", repetition, instance=instance), (log if log is not None else []).append)


def listed(dues: Iterable[DueFault]) -> list[tuple[str, int, str, float]]:
    return [(due.subtask, due.attempt, due.fault.effect, due.draw.random()) for due in dues]


@given(
    st.integers(),
    st.sampled_from(["output", "call", "state"]),
    st.integers(1, 5),
    st.permutations(SUBTASKS),
    st.lists(st.tuples(st.sampled_from(["output", "call", "state"]), st.sampled_from(SUBTASKS), st.integers(1, 5))),
)
def test_what_is_due_depends_on_no_order_and_on_nothing_asked_before(
    seed: int, point: Point, attempt: int, order: list[str], before: list[tuple[Point, str, int]]
) -> None:
    busy = schedule_of(seed=seed)
    for earlier, subtask, number in before:
        for due in busy.due(earlier, [subtask], number):
            busy.plan(due, 1)
    together = listed(busy.due(point, order, attempt))
    alone = [due for subtask in order for due in listed(schedule_of(seed=seed).due(point, [subtask], attempt))]
    assert together == alone


@given(st.integers(), st.sets(st.tuples(st.integers(0, 4), st.sampled_from(SUBTASKS), st.integers(1, 3))))
def test_a_plan_held_to_some_strikes_makes_those_and_draws_as_before(seed: int, kept: set[tuple[int, str, int]]) -> None:
    def strikes(plan: FaultPlan) -> dict[tuple[int, str, int], float]:
        schedule = schedule_of(plan, seed)
        points: list[Point] = ["call", "state"]
        every = [due for point in points for attempt in (1, 2, 3) for due in schedule.due(point, SUBTASKS, attempt)]
        return {(due.number, due.subtask, due.attempt): due.draw.random() for due in every}

    held = [
        replace(fault, only=tuple(Strike(subtask, attempt) for at, subtask, attempt in kept if at == number))
        for number, fault in enumerate(PLAN.faults)
    ]
    every = strikes(PLAN)
    assert strikes(FaultPlan("p", tuple(held))) == {strike: draw for strike, draw in every.items() if strike in kept}


def test_every_part_of_a_trials_place_changes_the_draws() -> None:
    def drawn(seed: int = 1, repetition: int = 1, instance: str = "") -> list[object]:
        schedule = schedule_of(seed=seed, repetition=repetition, instance=instance)
        return [listed(schedule.due("output", SUBTASKS, attempt)) for attempt in range(1, 20)]

    assert drawn() == drawn()
    assert drawn() != drawn(seed=2)
    assert drawn() != drawn(repetition=2)
    assert drawn() != drawn(instance="second")


def test_a_probability_is_met_in_the_long_run() -> None:
    due = sum(bool(schedule_of(repetition=number).due("output", ["a"], 1)) for number in range(4000))
    assert abs(due / 4000 - 0.3) < 0.03


def test_chosen_attempts_are_struck_and_no_others() -> None:
    assert [attempt for attempt in range(1, 6) if schedule_of().due("state", ["a"], attempt)] == [1, 3]


def test_a_persistent_fault_strikes_the_first_sample_of_every_attempt_by_the_draws_of_chosen_ones() -> None:
    chosen, every = (
        schedule_of(FaultPlan("p", (Fault("output", "truncated", attempts=attempts),))) for attempts in ((1, 2, 3, 4), "every")
    )
    for attempt in range(1, 5):
        assert listed(every.due("output", SUBTASKS, attempt)) == listed(chosen.due("output", SUBTASKS, attempt))
    assert len(every.due("output", SUBTASKS, 99)) == len(SUBTASKS)
    assert not every.due("output", SUBTASKS, 1, sample=2)


def test_one_text_carries_one_fault_the_plans_first_and_a_call_may_fail_more_than_once() -> None:
    plan = FaultPlan(
        "both",
        tuple(Fault(point, effect, attempts=(1,)) for point in (*CONTENT, "call") for effect in ("empty", "stale")),
    )
    for point in CONTENT:
        assert [(due.subtask, due.fault.effect) for due in schedule_of(plan).due(point, ["b", "a"], 1)] == [
            ("b", "empty"),
            ("a", "empty"),
        ]
    assert [due.fault.effect for due in schedule_of(plan).due("call", ["a"], 1)] == ["empty", "stale"]


def endings(answered: bool, in_lineage: bool, detected: bool) -> list[str]:
    log: list[Faulted] = []
    schedule = schedule_of(FaultPlan("p", (Fault("output", "empty", "a", (1,)),)), log=log)
    [due] = schedule.due("output", ["a", "b"], 1)
    receipt = schedule.plan(due, 4)
    receipt.detect()
    receipt.enter("delivered")
    if detected:
        receipt.detect()
        receipt.detect()
    schedule.close(answered, lambda candidate: in_lineage and candidate is receipt)
    assert {event.call for event in log} == {4}
    return [event.stage for event in log]


def test_a_receipt_follows_a_fault_to_its_end() -> None:
    assert endings(True, False, True) == ["planned", "delivered", "detected", "recovered"]
    assert endings(True, True, True) == ["planned", "delivered", "detected", "recovered"]
    assert endings(True, False, False) == ["planned", "delivered", "recovered"]
    assert endings(True, True, False) == ["planned", "delivered", "undetected"]
    assert endings(False, True, True) == ["planned", "delivered", "detected", "gave_up"]


def test_a_fault_that_was_not_applicable_has_no_end() -> None:
    log: list[Faulted] = []
    schedule = schedule_of(FaultPlan("p", (Fault("output", "empty", "a", (1,)),)), log=log)
    receipt = schedule.plan(schedule.due("output", ["a"], 1)[0], 1)
    receipt.enter("not_applicable")
    receipt.detect()
    schedule.close(True, lambda _: True)
    assert [event.stage for event in log] == ["planned", "not_applicable"]
