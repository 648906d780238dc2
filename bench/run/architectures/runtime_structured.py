"""The architecture `runtime_structured` verifies each output before it commits the output. After a rejection it asks for the
rejected output alone, with the reason appended.

What it does next depends on three signals: which subtasks are done, whether an output is valid, and whether an output is
sufficient. So it skips unneeded subtasks, asks again for weak outputs, and reopens a subtask that a validating subtask found
wrong.

With `parallel` it sends the requests of all ready subtasks at the same time, and with them the repairs of rejected outputs.
"""

from __future__ import annotations

import asyncio

from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


async def runtime_structured(_: Task, workbench: Workbench, parallel: bool = False) -> None:
    """Ask for each subtask that is ready, verify its output and repair it before later subtasks read it."""
    repairs: dict[str, Rejected] = {}
    while ready := workbench.ready():
        wave = [subtask for subtask in (ready if parallel else ready[:1]) if not workbench.skip(subtask)]
        requests = [workbench.propose(subtask, repair=repairs.pop(subtask.name, None)) for subtask in wave]
        for proposal in await asyncio.gather(*requests) if parallel else [await request for request in requests]:
            if rejected := workbench.verify(proposal, sufficiency=True):
                repairs[rejected.subtask] = rejected
            else:
                workbench.commit(proposal)
        for rejection in filter(None, map(workbench.finding, wave)):
            workbench.invalidate(rejection)
            repairs[rejection.subtask] = rejection
