"""An instrument, not an architecture: it asks each judgment once in each state that the pack names. If the reply is rejected,
it asks three more times: with the reason, with the message that the reply was not accepted, and with the message that the task
is completed.

It does nothing in the world. The first replies can come from a recorded bank (`cache_from`) and then cost no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bench.common.errors import GaveUp
from bench.record.world_events import REPAIRED
from bench.run.models.erring import RepairSignal
from bench.run.models.rejections import NOT_ACCEPTED
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Json, Subtask, Task
from bench.worlds.run.patterns.every_judgment import log_entry, states_to_ask_in


def repairs_by_signal(rejected: Rejected) -> Mapping[RepairSignal, Rejected]:
    """Return the rejection in the form of each signal to the model."""
    return {
        "typed": rejected,
        "untyped": replace(rejected, detail=NOT_ACCEPTED),
        "completed": replace(rejected, reads_as_success=True),
    }


async def every_repair(task: Task, workbench: Workbench) -> None:
    """Ask for each judgment, and after a rejection for each kind of repair. Raises GaveUp if the pack names no states or no
    right outputs, or if too few attempts are allowed."""
    for state in states_to_ask_in(task, workbench):
        subtask = task.subtask(state.subtask)
        first = await workbench.propose(subtask, documents=state.documents)
        rejected = workbench.verify(first)
        if rejected is None:
            workbench.commit(first)
            continue
        for signal, repair in repairs_by_signal(rejected).items():
            try:
                proposal = await workbench.propose(subtask, repair=repair, documents=state.documents)
            except GaveUp as error:
                raise GaveUp((subtask.name,), "it asks four times of one judgment; set max_attempts = 4") from error
            _record_repair(task, workbench, subtask, proposal, signal)
        workbench.commit_unverified(first)


def _record_repair(task: Task, workbench: Workbench, subtask: Subtask, proposal: Proposal, signal: RepairSignal) -> None:
    """Write a repaired proposal and its verdict to the store."""
    rejected = workbench.verify(proposal)
    entry: dict[str, Json] = log_entry(task, subtask, proposal, rejected, workbench.world.environment)
    workbench.world.store.append(REPAIRED, {**entry, "signal": signal})
