"""A model, tools and a loop: the steps one after another, each as soon as it can begin. What people start with."""

from __future__ import annotations

from bench.architectures.parts.form import BARE, Form
from bench.architectures.parts.office import Office
from bench.runtime.workbench import Workbench
from bench.scenario import Task


async def bare_agent(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    office = Office(task, workbench, form)
    async for ready in office.rounds():
        await office.work(ready[0])
