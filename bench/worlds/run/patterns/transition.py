"""One transition of a durable row: a step is done, and the row records it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.patterns.row import DurableRow

Attempt = Callable[[ProcedureStep], Awaitable[str]]


async def advance(runner: ProcedureRunner, row: DurableRow, step: ProcedureStep, attempt: Attempt, *, claims: bool) -> None:
    """Do a step by this attempt, and write its transition. With `claims`, the step is claimed before its effects; a worker that
    finds the row changed leaves the step to another worker."""
    if claims and not row.swap(step.name, "claimed", row.version):
        return
    why = await attempt(step)
    if claims and row.state(step.name) != "claimed":
        return
    await runner.settle(step, why)
    row.swap(step.name, why or "done", row.version)
