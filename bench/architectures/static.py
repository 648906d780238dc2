"""The subtasks one after another, handed on unverified; verified at the pack's checkpoints. At a rejection everything from the
first rejected subtask to the checkpoint runs again, with the same prompts."""

from __future__ import annotations

from bench.runtime.workbench import Workbench
from bench.scenario import Task


async def static(task: Task, workbench: Workbench) -> None:
    for stage in task.stages:
        names = [subtask.name for subtask in stage]
        rest = stage
        while rest:
            for subtask in rest:
                workbench.commit_unverified(await workbench.propose(subtask))
            rejected = workbench.checkpoint(stage)
            rest = stage[names.index(rejected.subtask) :] if rejected else ()
