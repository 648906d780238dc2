"""Worlds that do not work, and agents that call what is not there: a trial comes to a result, never to an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from little_worlds import ended, harm, lived
from trips import BARE, ONE, PATTERNS, REMEDIED, Trip, effects, environment, stored, worked
from worlds.trips.scenario import Done

from bench.record.world_events import ToolCalled
from bench.run.experiment.trial import TrialResult
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Db, Environment, Policy, PolicyVerdict
from bench.worlds.run.patterns.compensation import FOR_A_PERSON

PRIVATE = Trip(1, 800, reason="private")
"""Its payment is denied: what was booked for it is taken back."""


def with_tool(name: str, trips: tuple[Trip, ...] = ONE, **changes: Any) -> Environment:
    """The world of the trips, one of whose tools is another."""
    world = environment(trips)
    tools = tuple(replace(tool, **changes) if tool.name == name else tool for tool in world.tools)
    return replace(world, tools=tools)


def raises(*_: Any) -> Any:
    raise KeyError("a bug of the pack")


def hangs(*_: Any) -> Any:
    while True:
        pass


def another_type(*_: Any) -> Any:
    return {"number": 1}


def writes(db: Db, *_: Any) -> Done:
    db.write("INSERT INTO letters VALUES (1, 'x')")
    return Done(number=1)


def called(result: TrialResult, tool: str) -> list[ToolCalled]:
    return [event for event in result.record.events if isinstance(event, ToolCalled) and event.tool == tool]


def assert_has_a_result(result: TrialResult) -> None:
    assert (result.record.outcome, result.record.traceback) == ("wrong", None), result.record.reason
    damage, recount = ended(result).damage, ended(result).recount
    assert {kind: damage[kind] for kind, count in recount.items() if count is not None} == {
        kind: count for kind, count in recount.items() if count is not None
    }


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        ("book_hotel", {"run": raises}, "broke"),
        ("book_hotel", {"run": another_type}, "wrong_type"),
        ("read_trip", {"run": writes}, "wrote"),
    ],
)
def test_a_tool_that_breaks_costs_each_pattern_its_step_and_not_its_trial(name: str, changes: Any, code: str) -> None:
    for pattern in PATTERNS:
        for form in (BARE, REMEDIED):
            result = worked(pattern, form, world=with_tool(name, **changes))
            assert_has_a_result(result)
            ends = {(event.code, event.reason.count("\n")) for event in called(result, name)}
            assert ends - {("stale", 0)} == {(code, 0)}, f"{pattern}: a second try may meet a world that has moved"
            if form == REMEDIED:
                assert set(harm(result)) <= {"lost"}, pattern


def test_a_tool_that_hangs_costs_its_step_and_not_the_trial() -> None:
    result = worked("state_machine", REMEDIED, world=replace(with_tool("book_hotel", run=hangs), patience=0.05))
    assert_has_a_result(result)
    assert {event.code for event in called(result, "book_hotel")} == {"hung"} and set(harm(result)) == {"lost"}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_undo_that_fails_for_good_is_for_a_person_and_the_others_are_undone(pattern: str) -> None:
    result = worked(pattern, REMEDIED, world=with_tool("cancel_hotel", (PRIVATE,), run=raises))
    assert_has_a_result(result)
    assert (stored(result, FOR_A_PERSON), harm(result)) == (1, {"uncompensated": 1})
    assert [tool for tool in effects(result) if tool.startswith("cancel")] == ["cancel_car", "cancel_flight"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_under_a_policy_that_forbids_what_is_right_nothing_is_done_with_remedies(pattern: str) -> None:
    forbids = replace(environment(ONE), policy=Policy("never", lambda *_: PolicyVerdict("deny", "never")))
    result = worked(pattern, REMEDIED, world=forbids)
    assert_has_a_result(result)
    assert (effects(result), set(harm(result))) == ([], {"lost"})


def working(work: Callable[[Workbench], Awaitable[None]]) -> Callable[[Task, Workbench], Any]:
    async def architecture(_: Task, workbench: Workbench) -> None:
        await work(workbench)

    return architecture


def test_an_agent_that_calls_what_is_not_there_or_one_tool_a_thousand_times_is_told_so() -> None:
    async def calls(workbench: Workbench) -> None:
        unknown = await workbench.world.act("refnd", {"order": 1})
        assert (unknown.code, "did you mean 'refund'" in unknown.reason) == ("unknown_tool", True)
        codes = [(await workbench.world.act("read_order", {"order": 1})).code for _ in range(1_000)]
        assert codes.count("throttled") == 940

    result = lived(working(calls))
    assert result.record.outcome == "wrong" and [event.access for event in called(result, "refnd")] == [""]
    assert len(called(result, "read_order")) == 1_000
