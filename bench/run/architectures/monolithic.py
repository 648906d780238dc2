"""One call, on AutoGen's AssistantAgent, does the whole task; if its answer is rejected, the whole call is made again."""

from __future__ import annotations

from bench.run.architectures.autogen import assistant
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


async def monolithic(task: Task, workbench: Workbench) -> None:
    proposal = await workbench.propose(*task.subtasks, by=assistant)
    while workbench.verify(proposal):
        proposal = await workbench.propose(*task.subtasks, by=assistant)
    workbench.commit(proposal)
