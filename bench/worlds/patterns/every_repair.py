"""No architecture but an instrument: asks each judgment once in each state that the pack names, and where the reply is rejected
three times more: with the reason, with the word that it was not accepted, and with the word that it is completed.

It does nothing in the world. The first replies can come from a bank that was recorded before (`cache_from`), and cost no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.answers.rejections import NOT_ACCEPTED
from bench.errors import GaveUp
from bench.models.erring import RepairSignal
from bench.runtime.proposal import Proposal
from bench.runtime.verification import Rejected
from bench.runtime.workbench import Workbench
from bench.scenario import Json, Subtask, Task
from bench.worlds.patterns.every_judgment import asked, states_to_ask_in

REPAIRED = "repaired"
"""The log in the store: one entry for each signal; what was said, as `every_judgment` keeps it, and the `signal`."""


def told(rejected: Rejected) -> Mapping[RepairSignal, Rejected]:
    """What each signal tells of a rejection."""
    return {
        "typed": rejected,
        "untyped": replace(rejected, detail=NOT_ACCEPTED),
        "completed": replace(rejected, reads_as_success=True),
    }


async def every_repair(task: Task, workbench: Workbench) -> None:
    """Raises GaveUp where the pack names no states, or does not say what is right in them."""
    for state in states_to_ask_in(task, workbench):
        subtask = task.subtask(state.subtask)
        first = await workbench.propose(subtask, documents=state.documents)
        rejected = workbench.verify(first)
        if rejected is None:
            workbench.commit(first)
            continue
        for signal, repair in told(rejected).items():
            try:
                proposal = await workbench.propose(subtask, repair=repair, documents=state.documents)
            except GaveUp as error:
                raise GaveUp((subtask.name,), "it asks four times of one judgment; set max_attempts = 4") from error
            _keep(task, workbench, subtask, proposal, signal)
        workbench.commit_unverified(first)


def _keep(task: Task, workbench: Workbench, subtask: Subtask, proposal: Proposal, signal: RepairSignal) -> None:
    rejected = workbench.verify(proposal)
    entry: dict[str, Json] = asked(task, subtask, proposal, rejected, workbench.world.environment)
    workbench.world.store.append(REPAIRED, {**entry, "signal": signal})
