"""`monolithic`, with the whole task in the system message of the AssistantAgent: its instructions and the form of the answer.

arXiv 2605.15425 describes its monolithic configuration this way. The user message holds only the inputs.
"""

from __future__ import annotations

from bench.run.architectures.autogen import assistant
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


async def monolithic_system_message(task: Task, workbench: Workbench) -> None:
    proposal = await workbench.propose(*task.subtasks, by=assistant, task_in_system=True)
    while workbench.verify(proposal):
        proposal = await workbench.propose(*task.subtasks, by=assistant, task_in_system=True)
    workbench.commit(proposal)
