"""The pattern that plans: criteria by step, a new version of the plan at each miss, and a planner that is exchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from trials import Fault
from trips import BARE, ONE, REMEDIED, Trip, effects, environment, harm, worked

from bench.record.form import Form
from bench.record.world_events import Stored, WorldBegan
from bench.run.experiment.trial import TrialResult
from bench.run.trial.workbench import Workbench
from bench.scenario import Json, Task
from bench.worlds.run.environment import Environment, Moment, ProcedureStep
from bench.worlds.run.patterns.plan_and_replan import (
    ACCEPTED,
    BY_DEADLINE,
    EFFECTS,
    IN_ORDER,
    IN_TIME,
    PLANS,
    StoredPlan,
    missed_criterion,
    plan_and_replan,
)

DIES: Fault = {"point": "process", "effect": "unacknowledged", "tool": "pay", "attempts": [1]}


def plans(result: TrialResult) -> list[dict[str, Any]]:
    """Each version of the plan, in order."""
    stored = (event for event in result.record.events if isinstance(event, Stored) and event.name == PLANS)
    return [json.loads(result.texts[event.value]) for event in stored]


def reasons(result: TrialResult) -> list[str]:
    return [plan["reason"] for plan in plans(result)]


def test_without_a_failure_there_is_a_single_plan_and_each_step_has_criteria() -> None:
    [plan] = plans(worked("plan_and_replan"))
    assert (plan["version"], plan["planner"], plan["reason"]) == (1, IN_ORDER.version, "the work begins")
    criteria = {planned["step"]: planned["criteria"] for planned in plan["steps"]}
    assert list(criteria) == [step.name for step in environment(ONE).procedure]
    for step in environment(ONE).procedure:
        assert criteria[step.name] == [*([ACCEPTED] if step.judgment else []), IN_TIME, EFFECTS]


@pytest.mark.parametrize("form", [BARE, REMEDIED])
def test_a_step_whose_effect_fails_is_planned_once_more_at_the_end_and_then_given_up(form: Form) -> None:
    first, again, given_up, *_ = plans(worked("plan_and_replan", form, trips=[Trip(1, 300, hotel="full")]))
    [failed] = [step["step"] for step in first["steps"] if step["step"] == again["again"]]
    assert again["steps"][-1]["step"] == failed and again["reason"].startswith(f"{failed} is done again: {EFFECTS}")
    assert given_up["reason"].startswith(f"{failed} is given up: {EFFECTS}") and given_up["again"] == ""


def test_what_a_person_denied_is_given_up_at_once() -> None:
    result = worked("plan_and_replan", trips=[Trip(1, 800, reason="private")])
    assert reasons(result)[1].endswith(f"is given up: {EFFECTS}: denied")
    assert not any(plan["again"] for plan in plans(result))


@pytest.mark.parametrize(
    ("why", "wanting", "missed"),
    [("", False, ""), ("", True, EFFECTS), ("failed", False, EFFECTS), ("late", False, IN_TIME), ("rejected", True, ACCEPTED)],
)
def test_a_step_succeeds_by_its_criteria_and_not_by_its_own_word(why: str, wanting: bool, missed: str) -> None:
    assert missed_criterion(why, has_unknown_effect=wanting) == missed


# An exchange in mid-flow


async def planners_exchanged(task: Task, workbench: Workbench, form: Form) -> None:
    """Another planner in the agent's second life."""
    await plan_and_replan(task, workbench, form, IN_ORDER if workbench.world.life == 1 else BY_DEADLINE)


def test_with_remedies_an_exchanged_planner_plans_anew_and_what_is_done_stands() -> None:
    result = worked(lambda task, workbench: planners_exchanged(task, workbench, REMEDIED), faults=[DIES])
    assert (result.record.outcome, harm(result)) == ("solved", {})
    assert [plan["planner"] for plan in plans(result)] == [IN_ORDER.version, BY_DEADLINE.version]
    assert reasons(result)[1] == f"the planner was exchanged: {IN_ORDER.version} by {BY_DEADLINE.version}"
    assert effects(result).count("book_flight") == 1


def test_bare_the_plan_of_an_exchanged_planner_is_followed_and_nobody_notices() -> None:
    result = worked(lambda task, workbench: planners_exchanged(task, workbench, BARE), BARE, faults=[DIES])
    assert [plan["planner"] for plan in plans(result)] == [IN_ORDER.version]


class LoggedWorld:
    """A world as a plan sees it."""

    def __init__(self, declared: Environment):
        self.procedure, self.environment, self.store = declared.procedure, declared, self
        self.written: list[Any] = []
        self.followed: list[int] = []

    def follow_plan(self, version: int) -> None:
        self.followed.append(version)

    def log(self, _: str) -> list[Any]:
        return self.written

    def append(self, _: str, value: Json) -> None:
        self.written.append(value)


def test_with_remedies_another_tool_makes_the_plan_anew_and_the_same_tools_do_not() -> None:
    world: Any = LoggedWorld(environment(ONE))
    for _ in range(2):
        StoredPlan(world, IN_ORDER).start(compares_makers=True)
    assert len(world.written) == 1
    world.environment = replace(world.environment, tools=world.environment.tools[1:])
    StoredPlan(world, IN_ORDER).start(compares_makers=True)
    assert [plan["reason"] for plan in world.written] == ["the work begins", "the tools were exchanged"]
    assert world.followed == [1, 2]


def test_each_record_of_a_world_names_the_contracts_of_its_tools_as_the_plan_does() -> None:
    result = worked("plan_and_replan")
    [began] = [event for event in result.record.events if isinstance(event, WorldBegan)]
    assert began.tools == plans(result)[0]["tools"] != replace(environment(ONE), tools=()).contracts


def test_the_earliest_deadline_comes_first_and_steps_without_any_come_last() -> None:
    steps = [ProcedureStep("open"), ProcedureStep("later", until=Moment(9)), ProcedureStep("soon", until=Moment(2))]
    assert [step.name for step in BY_DEADLINE.order(steps)] == ["soon", "later", "open"]
