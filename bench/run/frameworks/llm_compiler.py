"""LLMCompiler: a model plans which subtasks wait for which. Subtasks that need not wait are asked at the same time. After a
failure everything is planned again.

After Kim et al., "An LLM Compiler for Parallel Function Calling" (arXiv 2312.04511). Its joiner, which decides whether to plan
again, is our verifier here, after the whole plan. Its task fetching unit starts each task as soon as it can; here tasks go in
waves, as in the parallel forms of the other architectures, so that seconds do not differ by that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import shorten

from pydantic import Field

from bench.run.architectures.waves import Waves, by_needs
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Context, Output, Subtask, Task

PLAN = "Plan"
"""The planner's name. No subtask of a pack can have it: their names begin with a small letter."""
INSTRUCTIONS = (
    "Plan the subtasks below; they are carried out later. Say of each which others must be done before it: those whose outputs"
    " it reads. Subtasks that do not wait for each other are done at the same time. Name every subtask once."
)
MOST_SAID = 200
"""Characters of a subtask's instructions that the planner is shown."""


class Step(Output):
    subtask: str = Field(description="its name")
    needs: list[str] = Field(description="names of the subtasks that must be done before it")


class Plan(Output):
    steps: list[Step] = Field(description="one for each subtask")

    @property
    def needs(self) -> Mapping[str, Sequence[str]]:
        return {step.subtask: step.needs for step in self.steps}


async def llm_compiler(task: Task, workbench: Workbench) -> None:
    planner = planner_of(task)
    workbench.add(planner, reference=plan_of(task).model_dump(mode="json"))
    rejected = await _attempt(task, workbench, planner, None)
    while rejected:
        rejected = await _attempt(task, workbench, planner, rejected)


async def _attempt(task: Task, workbench: Workbench, planner: Subtask, repair: Rejected | None) -> Rejected | None:
    """Make a plan and carry it out. Return why that failed; None if it succeeded."""
    workbench.commit_unverified(await workbench.propose(planner, repair=repair))
    if rejected := workbench.checkpoint([planner]):
        return rejected
    plan = workbench.output(planner)
    assert isinstance(plan, Plan)  # as the checkpoint found
    for wave in by_needs(task.subtasks, plan.needs):
        for proposal in await asyncio.gather(*(workbench.propose(subtask, planned_by=planner) for subtask in wave)):
            workbench.commit_unverified(proposal)
    rejected = workbench.checkpoint(task.subtasks)
    return rejected and replace(rejected, detail=f"carried out, it failed at '{rejected.subtask}': {rejected.detail}")


def planner_of(task: Task) -> Subtask:
    """Return the subtask that asks for a plan of this task."""

    def can_be_carried_out(plan: Plan, _: Context) -> str | None:
        return _wrong_names(task, plan) or _wrong_needs(task, plan)

    lines = [
        f"- {subtask.name}: reads {', '.join(subtask.reads)}. {shorten(subtask.instructions, MOST_SAID)}"
        for subtask in task.subtasks
    ]
    return Subtask(PLAN, "\n".join((INSTRUCTIONS, *lines)), (), Plan, checks=(can_be_carried_out,))


def plan_of(task: Task) -> Plan:
    """Return the plan in which each subtask waits only for the subtasks that it reads."""
    names = {subtask.name for subtask in task.subtasks}
    return Plan(
        steps=[Step(subtask=subtask.name, needs=[read for read in subtask.reads if read in names]) for subtask in task.subtasks]
    )


def _wrong_names(task: Task, plan: Plan) -> str | None:
    """Return what is wrong with a plan's names; None if they are right. Needs can name documents, as models do: documents
    always exist."""
    names, planned = [subtask.name for subtask in task.subtasks], [step.subtask for step in plan.steps]
    for name in (*planned, *(need for step in plan.steps for need in step.needs if need not in task.documents)):
        if name not in names:
            return f"there is no subtask '{name}'; the subtasks are {', '.join(names)}"
    for name in names:
        if planned.count(name) != 1:
            return f"'{name}' must be planned once, and is planned {planned.count(name)} times"
    return None


def _wrong_needs(task: Task, plan: Plan) -> str | None:
    try:
        done_before = _done_before(by_needs(task.subtasks, plan.needs), plan.needs)
    except ValueError as error:
        return str(error)
    for step in plan_of(task).steps:
        for read in step.needs:
            if read not in done_before[step.subtask]:
                return f"'{step.subtask}' reads the output of '{read}', and must need it"
    return None


def _done_before(waves: Waves, needs: Mapping[str, Sequence[str]]) -> Mapping[str, set[str]]:
    """Return, for each subtask, the subtasks that are surely done before it: those that it needs, directly or not."""
    done: dict[str, set[str]] = {}
    for wave in waves:
        for subtask in wave:
            reads = needs[subtask.name]
            done[subtask.name] = {*reads, *(name for name_read in reads for name in done.get(name_read, ()))}
    return done
