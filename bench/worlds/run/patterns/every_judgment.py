"""An instrument, not an architecture: it asks each judgment once in each state that the pack names, and does nothing in the
world.

Its run is a bank of replies. A judgment's prompt depends only on the case, the judgment and the state, so one bank serves all
architectures. Its repetitions are the bank's seeds. Its store holds each question, each reply and the right output.
"""

from __future__ import annotations

from typing import Any

from bench.common.errors import GaveUp
from bench.record.world_events import ASKED
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Json, Subtask, Task
from bench.worlds.run.environment import Environment, JudgmentState


async def every_judgment(task: Task, workbench: Workbench) -> None:
    """Ask each judgment in each state. Raises GaveUp if the pack names no states, or no right outputs."""
    for state in states_to_ask_in(task, workbench):
        subtask = task.subtask(state.subtask)
        proposal = await workbench.propose(subtask, documents=state.documents)
        rejected = workbench.verify(proposal)
        if rejected:
            workbench.commit_unverified(proposal)
        else:
            workbench.commit(proposal)
        workbench.world.store.append(ASKED, log_entry(task, subtask, proposal, rejected, workbench.world.environment))


def states_to_ask_in(task: Task, workbench: Workbench) -> list[JudgmentState]:
    """Return the states, sorted by judgment: prompts with the same beginning stay in a server's prompt cache.

    Raises GaveUp if the pack names no states, or no right outputs.
    """
    environment = workbench.world.environment
    if environment.states is None or environment.right is None:
        raise GaveUp(
            tuple(subtask.name for subtask in task.subtasks), "the pack's environment names no `states`, or no `right`"
        )
    order = [subtask.name for subtask in task.subtasks]
    return sorted(environment.states(environment), key=lambda state: order.index(state.subtask))


def log_entry(
    task: Task, subtask: Subtask, proposal: Proposal, rejected: Rejected | None, environment: Environment
) -> dict[str, Json]:
    """Return the log entry of one reply, as JSON."""
    assert environment.right  # the caller has checked it
    return {
        "judgment": subtask.name,
        "state": proposal.case,
        "right": environment.right(subtask.name, {**task.documents, **proposal.documents}),
        "said": _answer_of(subtask, proposal),
        "rejected": rejected.reason if rejected else "",
        "text": proposal.text,
        "notes": list(environment.notes),
    }


def _answer_of(subtask: Subtask, proposal: Proposal) -> Any:
    """Return the output as JSON; None if the reply has no output that fits its schema."""
    part = proposal.parts.get(subtask.name)
    try:
        return subtask.output.model_validate(part.value if part else None).model_dump(mode="json")
    except ValueError:
        return None
