"""A planner lists the steps, an executor does them by the tools' contracts, and an evaluator checks whether each was done. A
checkpoint is stored after each step.

Without remedies, a step that the evaluator finds incomplete is executed again as a whole. With remedies, only those effects of
the step are made again that are not known to be done."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner

MAX_ATTEMPTS = 2
"""The most times that a step is executed."""


async def plan_execute_evaluate(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Execute the ready steps one after another, and record the end of each."""
    runner = ProcedureRunner(task, workbench, form, keeps="steps")
    async for plan in runner.rounds():
        await runner.settle(plan[0], await _execute(runner, plan[0]))


async def _execute(runner: ProcedureRunner, step: ProcedureStep) -> str:
    """Execute a step until the evaluator finds it complete. Return why it failed at last; "" if it did not."""
    for _ in range(MAX_ATTEMPTS):
        why = await runner.attempt(step)
        if why not in ("", "failed") or not (why or runner.has_unknown_effect(step)):
            break
    return why
