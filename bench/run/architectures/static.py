"""The architecture `static`: the subtasks run one after another, and later subtasks read their outputs unverified. The outputs
are verified at the pack's checkpoints. After a rejection everything from the first rejected subtask to the checkpoint runs
again, with the same prompts.

With `parallel`, independent subtasks of a stage are asked for at the same time. Repeats run one after another, in the listed
order.
"""

from __future__ import annotations

import asyncio

from bench.run.architectures.waves import by_reads, one_by_one
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


async def static(task: Task, workbench: Workbench, parallel: bool = False) -> None:
    """Ask for all subtasks of a stage without verification, verify them at its end, and repeat from the first rejected one."""
    for stage in task.stages:
        names = [subtask.name for subtask in stage]
        waves = by_reads(stage) if parallel else one_by_one(stage)
        while waves:
            for wave in waves:
                for proposal in await asyncio.gather(*map(workbench.propose, wave)):
                    workbench.commit_unverified(proposal)
            rejected = workbench.checkpoint(stage)
            waves = one_by_one(stage[names.index(rejected.subtask) :]) if rejected else ()
