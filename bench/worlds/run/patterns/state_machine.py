"""A durable, versioned row holds each step's state. A worker without state of its own reads the row, does a step that can
begin, and writes the transition. The row also holds the states of timers and of questions to people.

Without remedies, a transition is written without a check, after its effects. With remedies, it is a compare-and-swap: a worker
claims the step before its effects, the transition of a worker that read an old version is rejected and the row read again, and
a step that a dead worker had claimed goes on where it stopped."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.patterns.row import DurableRow
from bench.worlds.run.patterns.transition import advance


async def state_machine(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do the ready steps one after another, each as a transition of the row."""
    runner, row = ProcedureRunner(task, workbench, form, keeps="steps"), DurableRow(workbench.world.store)
    async for ready in runner.rounds():
        await advance(runner, row, ready[0], runner.attempt, claims=form.remedies)
