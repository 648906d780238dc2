"""A model, tools and a loop: the steps one after another, each as soon as it can begin. The usual first design."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner


async def bare_agent(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do the ready steps one after another, each in the procedure's order."""
    runner = ProcedureRunner(task, workbench, form)
    async for ready in runner.rounds():
        await runner.work(ready[0])
