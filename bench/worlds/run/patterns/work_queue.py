"""Several workers take steps from a queue, which is the durable row. A worker reads the row, claims a step that can begin, and
does it.

Without remedies, a claim is written without a check, so two workers that read the row at the same time both do the step. The
claim never ends, so nobody takes up the step of a dead worker. With remedies, a claim is a compare-and-swap, which the second
worker loses, and a lease: once it ends, another worker goes on with the step where it stopped."""

from __future__ import annotations

from collections.abc import Sequence

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Moment, ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.patterns.row import DurableRow
from bench.worlds.run.patterns.together import together
from bench.worlds.run.runtime.actions import WorldActions

LEASE_MINUTES = 15
"""Minutes of world time for which a claim holds, with remedies."""


async def work_queue(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Let workers take all free steps at the same time. If no step is free, wait for a notice or for the end of a claim."""
    runner = ProcedureRunner(task, workbench, form, keeps="steps")
    queue = WorkQueue(runner, workbench.world, leases=form.remedies)
    async for ready in runner.rounds():
        if free := [step for step in ready if queue.is_free(step)]:
            await together(queue.take(step) for step in free)
        elif not await runner.wait(queue.next_end(ready)):
            return


class WorkQueue:
    """The claims of steps by workers. With `leases`, a claim is a compare-and-swap, and ends."""

    def __init__(self, runner: ProcedureRunner, world: WorldActions, *, leases: bool):
        self._runner, self._world, self._leases = runner, world, leases
        self._row = DurableRow(world.store)

    def is_free(self, step: ProcedureStep) -> bool:
        """Return whether a step is not claimed, or its lease has ended."""
        end = self._end(step)
        return end is None or (self._leases and end <= self._world.now)

    def next_end(self, steps: Sequence[ProcedureStep]) -> Moment | None:
        """Return when the first of these steps is free again; None if no claim ever ends."""
        return min((end for step in steps if (end := self._end(step))), default=None) if self._leases else None

    def _end(self, step: ProcedureStep) -> Moment | None:
        """Return when the claim of a step ends; None if no worker has claimed it."""
        claim = self._row.state(step.name)
        return None if claim == "open" else Moment.of(int(claim))

    async def take(self, step: ProcedureStep) -> None:
        """Let the workers that read the step as free claim it and do it. A worker that dies leaves it claimed."""
        fate = await self._world.claim(step)
        seen, until = self._row.version, str(self._world.now.after(minutes=LEASE_MINUTES).total)
        for _ in range(2 if fate == "is shared" else 1):
            if self._row.swap(step.name, until, seen if self._leases else self._row.version) and fate != "dies":
                await self._runner.work(step)
