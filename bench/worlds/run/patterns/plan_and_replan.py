"""A planner lists the steps with their success criteria, an executor does them in the plan's order, and an evaluator checks
each step against its criteria. If a step misses a criterion, the plan is revised: the step is tried once more after all others
that can begin, or it is given up. Each version of the plan is written to the store, with its reason.

Without remedies, a stored plan is followed, whoever made it, and of two contradictory reports of the executor the last is
believed. With remedies, a plan names its planner and its tools' contracts: a process with another planner or other tools plans
the remaining steps again and records the reason. Of two contradictory reports, the report that agrees with the recorded state
of the step is believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.runtime.actions import WorldActions

PLANS = "plans"
"""The log of the plan's versions in the store."""
MAX_TRIES = 2
"""The most times that a step is executed."""
ACCEPTED, IN_TIME, EFFECTS = "its judgment is accepted", "it is in time", "its effects are known to be made"


@dataclass(frozen=True)
class Planner:
    """A planner of a procedure's steps. `order` sorts the steps in the order in which they are done; `version` names the
    planner in its plans."""

    version: str
    order: Callable[[Sequence[ProcedureStep]], Iterable[ProcedureStep]]


def _by_deadline(steps: Sequence[ProcedureStep]) -> Iterable[ProcedureStep]:
    return sorted(steps, key=lambda step: (step.until is None, step.until.total if step.until else 0))


IN_ORDER = Planner("the procedure's order, 1", lambda steps: steps)
BY_DEADLINE = Planner("the earliest deadline first, 1", _by_deadline)


async def plan_and_replan(task: Task, workbench: Workbench, form: Form = BARE, planner: Planner = IN_ORDER) -> None:
    """Do the steps in the order of a plan, and revise the plan after each step that missed its criterion."""
    runner = ProcedureRunner(task, workbench, form, keeps="steps")
    plan = StoredPlan(workbench.world, planner)
    plan.start(compares_makers=form.remedies)
    async for ready in runner.rounds():
        step = plan.first_of(ready)
        report = runner.report(step, await runner.attempt(step))
        missed = missed_criterion(report.why, has_unknown_effect=report.wanting)
        again = missed == EFFECTS and report.why in ("", "failed") and plan.tries_of(step) < MAX_TRIES
        if missed:
            plan.revise(step, f"{missed}: {report.why or 'not known'}", again=again)
        if not again:
            await runner.settle(step, report.why)


def missed_criterion(why: str, *, has_unknown_effect: bool) -> str:
    """Return which success criterion a step has missed, as a text for the planner; "" if the step has succeeded.

    Args:
        why: Why the step failed (`ProcedureStep.otherwise`), or "".
        has_unknown_effect: Whether one of its effects is not known to have happened.
    """
    if why == "rejected":
        return ACCEPTED
    if why == "late":
        return IN_TIME
    return EFFECTS if why or has_unknown_effect else ""


class StoredPlan:
    """The plan in the store: a log of its versions, of which the last is followed."""

    def __init__(self, world: WorldActions, planner: Planner):
        self._world, self._planner = world, planner
        self._tools = world.environment.contracts

    def start(self, *, compares_makers: bool) -> None:
        """Start with the stored plan, or make the first plan.

        Args:
            compares_makers: Whether to plan again if the stored plan has another planner or other tools.
        """
        if not self._versions:
            self._make_plan("the work begins")
        elif compares_makers and (reason := self._changed_makers(self._versions[-1])):
            self._make_plan(reason)

    def first_of(self, ready: Sequence[ProcedureStep]) -> ProcedureStep:
        """Return the step that comes first in the plan."""
        order = [planned["step"] for planned in self._versions[-1]["steps"]]
        return min(ready, key=lambda step: order.index(step.name))

    def tries_of(self, step: ProcedureStep) -> int:
        """Return how often the step has been executed, including this time."""
        return 1 + [version["again"] for version in self._versions].count(step.name)

    def revise(self, step: ProcedureStep, reason: str, *, again: bool) -> None:
        """Write the plan's next version. The step that missed a criterion moves to the end, to be done `again` or given up."""
        previous = self._versions[-1]
        why = f"{step.name} {'is done again' if again else 'is given up'}: {reason}"
        steps = sorted(previous["steps"], key=lambda planned: planned["step"] == step.name)
        self._write(previous | {"steps": steps, "reason": why, "again": step.name if again else ""})

    @property
    def _versions(self) -> list[Any]:
        return self._world.store.log(PLANS)

    def _make_plan(self, reason: str) -> None:
        """Write a plan of all steps in the planner's order, with the reason for the plan."""
        steps = [
            {"step": step.name, "criteria": [*([ACCEPTED] if step.judgment else []), IN_TIME, EFFECTS]}
            for step in self._planner.order(self._world.procedure)
        ]
        made_by = {"planner": self._planner.version, "tools": self._tools}
        self._write({**made_by, "steps": steps, "reason": reason, "again": ""})

    def _changed_makers(self, previous: Any) -> str:
        """Return how this process's planner or tools differ from the plan's; "" if they do not."""
        if previous["planner"] != self._planner.version:
            return f"the planner was exchanged: {previous['planner']} by {self._planner.version}"
        return "the tools were exchanged" if previous["tools"] != self._tools else ""

    def _write(self, plan: dict[str, Any]) -> None:
        """Write the next version of the plan, and follow it."""
        version = len(self._versions) + 1
        self._world.follow_plan(version)
        self._world.store.append(PLANS, plan | {"version": version})
