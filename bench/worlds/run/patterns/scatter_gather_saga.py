"""Peers do the ready steps at the same time, and each logs the undo of its effects. If one step of a saga fails, the effects of
the saga are undone in reverse order.

Without remedies, the log is in memory, and an undo that fails is retried only briefly. With remedies, the log outlives a crash,
an undo is made under a key until it is answered, and effects that cannot be undone are left for a person."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.patterns.together import together


async def scatter_gather_saga(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do all ready steps at the same time, and undo the effects of a saga that fails."""
    runner = ProcedureRunner(task, workbench, form, compensates=True)
    async for ready in runner.rounds():
        await together(runner.work(step) for step in ready)
