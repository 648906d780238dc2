"""People decide: the kill switch is checked before every effect, and a person is asked if the policy wants a person.

Without remedies, the wait for an answer dies with the process, and no answer in time counts as consent. With remedies, the
question outlives a crash and has a time limit, no answer in time counts as a denial, and the policy is asked again after an
approval."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner


async def human_in_the_loop(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do the ready steps one after another, with a gate that asks people."""
    runner = ProcedureRunner(task, workbench, form, gate="asks")
    async for ready in runner.rounds():
        await runner.work(ready[0])
