"""Each output is verified before it is committed; a rejected one is asked for again alone, with the reason appended.

It branches on three signals: which subtasks are done; whether an output is valid; whether it is sufficient. So it skips what is
not needed, asks again for what is too weak, and reopens the subtask that a validating subtask found wrong.
"""

from __future__ import annotations

from bench.runtime.verification import Rejected
from bench.runtime.workbench import Workbench
from bench.scenario import Task


async def runtime_structured(task: Task, workbench: Workbench) -> None:
    repairs: dict[str, Rejected] = {}
    while subtask := next((one for one in task.subtasks if not workbench.done(one)), None):
        if workbench.skip(subtask):
            continue
        proposal = await workbench.propose(subtask, repair=repairs.pop(subtask.name, None))
        if rejected := workbench.verify(proposal, sufficiency=True):
            repairs[subtask.name] = rejected
            continue
        workbench.commit(proposal)
        if found := workbench.finding(subtask):
            workbench.invalidate(found)
            repairs[found.subtask] = found
