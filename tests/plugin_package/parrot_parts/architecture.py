"""An architecture: each subtask is asked until its output is accepted, and asked once more, for a parrot says it twice."""

from __future__ import annotations

from bench.run.architectures.part import ArchitecturePart
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


async def parrot(task: Task, workbench: Workbench) -> None:
    for subtask in task.subtasks:
        while not workbench.done(subtask):
            first, second = await workbench.sample(subtask, count=2)
            accepted = [each for each in (first, second) if not workbench.verify(each)]
            if accepted:
                workbench.commit(accepted[0])


PART = ArchitecturePart("parrot", "parrot_parts.architecture:parrot", limits=("it asks everything twice",))
