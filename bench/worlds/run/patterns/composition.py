"""The composition that the patterns' author proposes for contract renewal. A durable row holds the state. An orchestrator hands
all steps that can begin to peers, which work at the same time and log the undo of each effect. A supervisor restarts a peer
that failed. A gate before every effect asks the policy, and a person if the policy wants a person.

Without remedies, every part behaves as in its own pattern without remedies: a step's state outlives a crash, a step's work does
not, and no answer in time counts as consent. With remedies, every part has its remedy: claims by compare-and-swap, keys, undos
that are tried until they are answered, questions that outlive a crash.

Source: arXiv 2605.20173; its companion repository composes P1 and P2 around P5, gated by P4, with pauses for P6."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import ProcedureStep
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner
from bench.worlds.run.patterns.row import DurableRow
from bench.worlds.run.patterns.supervisor_gate import supervise
from bench.worlds.run.patterns.together import together
from bench.worlds.run.patterns.transition import advance


async def composition(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do all ready steps at the same time, each claimed in the row, supervised and gated."""
    runner = ProcedureRunner(task, workbench, form, keeps="steps", gate="asks", compensates=True)
    row = DurableRow(workbench.world.store)

    async def attempt(step: ProcedureStep) -> str:
        """Attempt a step under supervision. Return why it failed; "" if it did not."""
        return await supervise(runner, step, workbench)

    async for ready in runner.rounds():
        await together(advance(runner, row, step, attempt, claims=form.remedies) for step in ready)
