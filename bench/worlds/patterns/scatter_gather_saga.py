"""Peers work at the same time, and each logs how what it does is taken back; where one fails, what it did is undone in reverse.

Bare the log is in memory, and an undo that fails is not tried for long. With remedies the log outlives a crash, an undo is
made under a key until it is answered, and what cannot be undone is for a person.
"""

from __future__ import annotations

from bench.architectures.form import BARE, Form
from bench.runtime.workbench import Workbench
from bench.scenario import Task
from bench.worlds.patterns.parts.procedure_runner import ProcedureRunner
from bench.worlds.patterns.parts.together import together


async def scatter_gather_saga(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    office = ProcedureRunner(task, workbench, form, compensates=True)
    async for ready in office.rounds():
        await together(office.work(step) for step in ready)
