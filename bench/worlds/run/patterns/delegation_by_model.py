"""A model leads the work. It picks the next step, writes the worker's task and the criterion by which the step succeeds, and
judges the worker's report: accept the step, repeat it, do other steps first, or leave the step to a person.

The workers' judgments are the subtasks of the pack, so a bank of replies serves this pattern like any other. The text of a task
is stored, and changes no judgment. The message to a worker can be lost (`worker_dies`) or come twice (`claimed_twice`), and a
second report can contradict the worker's own report (`report_contradicted`).

Without remedies, the model decides: a step that it accepts counts as done, whatever the report says. A message that comes twice
is worked on twice, and the last report is believed. With remedies, the model's judgment must agree with the report, or it is
rejected with the reason; if it never agrees, a fixed rule decides. A worker works on a message once. Of two contradictory
reports, the report that agrees with the recorded state of the step is believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field, create_model

from bench.common.errors import GaveUp
from bench.record.form import BARE, Form
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Check, Context, Json, Output, Subtask, Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.compensation import leave_for_a_person
from bench.worlds.run.patterns.plan_and_replan import ACCEPTED, EFFECTS, IN_TIME, missed_criterion
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.runtime.actions import WorldActions
from bench.worlds.run.runtime.effects import StepReport

MESSAGES, TASKS = "messages", "tasks"
"""Logs in the store: what the orchestrator asked for, and the tasks that it wrote."""
MAX_TRIES = 3
"""The most times that a step is worked on."""
UNANSWERED = "no report came"
StepCriterion = Literal["its judgment is accepted", "it is in time", "its effects are known to be made"]
LeadDecision = Literal["accept", "retry", "replan", "escalate"]
Asked = TypeVar("Asked", bound=Output)

ASSIGN = """You lead the work of `{name}`. Pick the step that a worker does next, write the worker's task in a sentence, and \
name the criterion by which the step has succeeded. The steps that can begin now, in the usual order:

{ready}"""
EVALUATE = """You lead the work of `{name}`. A worker was sent to do the step `{step}`, {tries} time(s) by now. Its report: \
{report}. Other steps that can begin now: {others}.

Decide: `accept` if the step has succeeded; `retry` if an effect is not known to be made and it was the first time; `replan` \
if that was so again and other steps can be done before it; `escalate` in every other case, so that a person takes it."""


class Assignment(Output):
    step: str  # one of the steps that can begin
    task: str = Field(max_length=500)
    criterion: StepCriterion


class Evaluation(Output):
    model_config = ConfigDict(json_schema_extra={"description": "What is done about a report."})  # models are sent it

    decision: LeadDecision


async def delegation_by_model(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Let the model delegate one of the ready steps, until no step is left."""
    runner = ProcedureRunner(task, workbench, form, keeps="steps")
    lead = ModelLead(task, workbench, runner, form)
    async for ready in runner.rounds():
        await lead.delegate(ready)


class ModelLead:
    """Sends workers, and follows the model's decisions about their reports."""

    def __init__(self, task: Task, workbench: Workbench, runner: ProcedureRunner, form: Form):
        self._task, self._workbench, self._runner, self._form = task, workbench, runner, form
        self._world: WorldActions = workbench.world
        self._postponed: list[str] = []
        self._tries: dict[str, int] = {}

    async def delegate(self, ready: Sequence[ProcedureStep]) -> None:
        """Have one step worked on until the model accepts it, postpones it or leaves it to a person."""
        step = await self._assign(sorted(ready, key=lambda each: each.name in self._postponed))
        others = [each.name for each in ready if each is not step and each.name not in self._postponed]
        decision: LeadDecision = "retry"
        while decision == "retry":
            self._tries[step.name] = tries = self._tries.get(step.name, 0) + 1
            report = await self._work(step)
            decision = await self._decision(step, report, tries, others)
            if decision in ("retry", "replan") and tries >= MAX_TRIES:
                decision = "escalate"
        if decision == "replan":
            self._postponed.append(step.name)
            return
        if decision == "escalate":
            leave_for_a_person(self._world, step.name, "report", report.why or "done")
        await self._runner.settle(step, "" if decision == "accept" else report.why or "failed")

    async def _work(self, step: ProcedureStep) -> StepReport:
        """Let a worker do a step; two workers do it if a fault makes them share the claim. Return the report that the lead
        gets: UNANSWERED if the worker dies."""
        fate = await self._world.claim(step)
        if fate == "dies":
            return StepReport(UNANSWERED, self._runner.has_unknown_effect(step))
        why = await self._runner.attempt(step)
        if fate == "is shared" and not self._form.remedies:
            why = await self._runner.attempt(step)
        return self._runner.report(step, why)

    async def _assign(self, ready: Sequence[ProcedureStep]) -> ProcedureStep:
        """Ask the model which of the ready steps to assign next; without an accepted answer, take the first."""
        names = tuple(step.name for step in ready)
        steps: Any = Literal[names]
        form = create_model("Assignment", __base__=Assignment, step=(steps, ...))
        listed = "\n".join(f"- `{step.name}`" + (f": asks `{step.judgment}`" if step.judgment else "") for step in ready)
        first = ready[0]
        criterion = IN_TIME if first.until is not None else EFFECTS
        reference = {
            "step": first.name,
            "task": f"Do the step {first.name}, and report what came of it.",
            "criterion": ACCEPTED if first.judgment else criterion,
        }
        instructions = ASSIGN.format(name=self._task.name, ready=listed)
        assigned = await self._ask_model("assign", instructions, form, reference)
        if assigned is None:
            return first
        self._world.store.append(TASKS, assigned.model_dump(mode="json"))
        return next(step for step in ready if step.name == assigned.step)

    async def _decision(self, step: ProcedureStep, report: StepReport, tries: int, others: Sequence[str]) -> LeadDecision:
        """Ask the model how to go on after a report; without an accepted answer, decide by the rule."""
        rule = decision_by_rule(report.why, has_unknown_effect=report.wanting, tries=tries, others=bool(others))

        def agrees(output: Evaluation, _: Context) -> str | None:
            return None if output.decision == rule else f"the report is: {report}; that calls for {rule}"

        instructions = EVALUATE.format(
            name=self._task.name, step=step.name, tries=tries, report=report, others=", ".join(others) or "none"
        )
        checks = (agrees,) if self._form.remedies else ()
        evaluated = await self._ask_model("evaluate", instructions, Evaluation, {"decision": rule}, checks)
        return rule if evaluated is None else evaluated.decision

    async def _ask_model(
        self, what: str, instructions: str, form: type[Asked], reference: Json, checks: tuple[Check, ...] = ()
    ) -> Asked | None:
        """Ask the model until an output is accepted. If no output is accepted, return None with remedies; without remedies,
        give the work up."""
        self._world.store.append(MESSAGES, what)
        subtask = Subtask(f"{what} {len(self._world.store.log(MESSAGES))}", instructions, (), form, checks)
        self._workbench.add(subtask, reference)
        repair: Rejected | None = None
        while True:
            try:
                proposal = await self._workbench.propose(subtask, repair=repair)
            except GaveUp:
                if not self._form.remedies:
                    raise
                return None
            repair = self._workbench.verify(proposal)
            if repair is None:
                self._workbench.commit(proposal)
                output = self._workbench.output(subtask)
                assert isinstance(output, form)
                return output


def decision_by_rule(why: str, *, has_unknown_effect: bool, tries: int, others: bool) -> LeadDecision:
    """Return the decision that a report calls for.

    Args:
        why: Why the step failed, or "".
        has_unknown_effect: Whether one of its effects is not known to have happened.
        tries: How often the step was worked on.
        others: Whether other steps can be done before this step.
    """
    missed = EFFECTS if why == UNANSWERED else missed_criterion(why, has_unknown_effect=has_unknown_effect)
    if not missed:
        return "accept"
    if missed != EFFECTS or why not in ("", "failed", UNANSWERED) or tries >= MAX_TRIES:
        return "escalate"
    if tries == 1:
        return "retry"
    return "replan" if others else "escalate"
