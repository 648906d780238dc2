"""One call does the whole task, on AutoGen's AssistantAgent; verified at the end, a rejection means the whole call again."""

from __future__ import annotations

from bench.architectures.autogen import assistant
from bench.runtime.workbench import Workbench
from bench.scenario import Task


async def monolithic(task: Task, workbench: Workbench) -> None:
    proposal = await workbench.propose(*task.subtasks, by=assistant)
    while workbench.verify(proposal):
        proposal = await workbench.propose(*task.subtasks, by=assistant)
    workbench.commit(proposal)
