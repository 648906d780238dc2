"""Before every effect a gate asks the policy. A worker that fails is restarted alone, after a wait that doubles each time.

Bare, the gate accepts the model's word if a person is needed, a worker restarts from its beginning, and a crash of the
supervisor loses everything. With remedies, the gate asks the person, each decision is audited with the policy's version, and
supervisor and worker go on where they died.
"""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.parts.procedure_runner import ProcedureRunner

RESTARTS = 2


async def supervisor_gate(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    office = ProcedureRunner(task, workbench, form, gate="stamps")
    async for ready in office.rounds():
        await office.settle(ready[0], await supervise(office, ready[0], workbench))


async def supervise(office: ProcedureRunner, step: ProcedureStep, workbench: Workbench) -> str:
    for restart in range(RESTARTS + 1):
        if restart:
            await workbench.world.wait(minutes=5 * 2**restart)
        if (why := await office.attempt(step)) != "failed":
            break
    return why
