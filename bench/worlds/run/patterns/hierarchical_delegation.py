"""An orchestrator owns the work and hands each step to a specialist. Results are merged in the procedure's order.

Without remedies, a specialist that fails is sent again from its beginning, and its own retries are hidden from the
orchestrator, so the numbers of retries multiply. Of two contradictory reports the orchestrator believes the last. With
remedies, there is one retry budget, and a specialist that has used it up is not sent again. A specialist that stalls is given
up at its deadline, and the results of the others are kept. Of two contradictory reports the orchestrator believes the report
that agrees with the recorded state of the step."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.patterns.together import together

MAX_ATTEMPTS = 2
"""The most times that one specialist is sent, without remedies."""


async def hierarchical_delegation(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Send a specialist to each ready step, all at the same time."""
    runner = ProcedureRunner(task, workbench, form)
    async for ready in runner.rounds():
        await together(_delegate(runner, step, 1 if form.remedies else MAX_ATTEMPTS) for step in ready)


async def _delegate(runner: ProcedureRunner, step: ProcedureStep, times: int) -> None:
    """Send a specialist to do a step, up to this many times, and record the end of the step."""
    for _ in range(times):
        report = runner.report(step, await runner.attempt(step))
        if report.why != "failed":
            break
    await runner.settle(step, report.why)
