"""Before every effect a gate asks the policy. A worker that fails is restarted alone, after a wait that doubles each time.

Without remedies, the gate lets an effect pass if the policy wants a person, a worker restarts from its beginning, and a crash
of the supervisor loses everything. With remedies, the gate asks the person, each decision is recorded with the policy's
version, and supervisor and worker go on where they died."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner

MAX_RESTARTS = 2
"""The most restarts of a worker that fails."""


async def supervisor_gate(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do the ready steps one after another, each by a supervised worker."""
    runner = ProcedureRunner(task, workbench, form, gate="stamps")
    async for ready in runner.rounds():
        await runner.settle(ready[0], await supervise(runner, ready[0], workbench))


async def supervise(runner: ProcedureRunner, step: ProcedureStep, workbench: Workbench) -> str:
    """Attempt a step, and restart it after a doubled wait each time that it fails. Return why it failed at last; "" if it did
    not."""
    for restart in range(MAX_RESTARTS + 1):
        if restart:
            await workbench.world.wait(minutes=5 * 2**restart)
        if (why := await runner.attempt(step)) != "failed":
            break
    return why
