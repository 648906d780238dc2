"""A durable row is the truth: it holds each step's state, under a version. A worker that holds nothing itself reads the row,
does the step that can begin, and writes the transition. Timers and people are states of the row like any other.

Bare a transition is written as it comes, once its effects are made. With remedies it is a compare-and-swap: the step is claimed
before its effects, a stale worker's transition is rejected and its row read again, and a step that was claimed by a worker that
died is taken up where it stopped.
"""

from __future__ import annotations

from bench.architectures.form import BARE, Form
from bench.runtime.workbench import Workbench
from bench.scenario import Task
from bench.worlds.patterns.parts.procedure_runner import ProcedureRunner
from bench.worlds.patterns.parts.row import DurableRow
from bench.worlds.patterns.parts.transition import advance


async def state_machine(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    office, row = ProcedureRunner(task, workbench, form, keeps="steps"), DurableRow(workbench.world.store)
    async for ready in office.rounds():
        await advance(office, row, ready[0], office.attempt, claims=form.remedies)
