"""No architecture but an instrument: asks each judgment once in each state that the pack names, and does nothing in the world.

Its run is a bank of replies. A judgment's prompt depends on the case, the judgment and the state alone, so one bank serves all
architectures; its repetitions are the bank's seeds. What was asked, what was said and what is right stand in its store.
"""

from __future__ import annotations

from typing import Any

from bench.errors import GaveUp
from bench.runtime.proposal import Proposal
from bench.runtime.verification import Rejected
from bench.runtime.workbench import Workbench
from bench.scenario import Json, Subtask, Task
from bench.worlds.environment import Environment, JudgmentState

ASKED = "asked"
"""The log in the store: one entry a judgment, the fields of `bench.models.bank.BankedReply` but the trial's own."""


async def every_judgment(task: Task, workbench: Workbench) -> None:
    """Raises GaveUp where the pack names no states, or does not say what is right in them."""
    for state in states_to_ask_in(task, workbench):
        subtask = task.subtask(state.subtask)
        proposal = await workbench.propose(subtask, documents=state.documents)
        rejected = workbench.verify(proposal)
        if rejected:
            workbench.commit_unverified(proposal)
        else:
            workbench.commit(proposal)
        workbench.world.store.append(ASKED, asked(task, subtask, proposal, rejected, workbench.world.environment))


def states_to_ask_in(task: Task, workbench: Workbench) -> list[JudgmentState]:
    """One judgment after the other: their prompts begin alike, and a server's prompt cache holds that. Raises GaveUp where the
    pack names no states, or does not say what is right in them."""
    environment = workbench.world.environment
    if environment.states is None or environment.right is None:
        raise GaveUp(
            tuple(subtask.name for subtask in task.subtasks), "the pack's environment names no `states`, or no `right`"
        )
    order = [subtask.name for subtask in task.subtasks]
    return sorted(environment.states(environment), key=lambda state: order.index(state.subtask))


def asked(
    task: Task, subtask: Subtask, proposal: Proposal, rejected: Rejected | None, environment: Environment
) -> dict[str, Json]:
    """What is kept of one reply, as JSON."""
    assert environment.right  # who calls has looked
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
    """The output as JSON; None where there is none that fits its schema."""
    part = proposal.parts.get(subtask.name)
    try:
        return subtask.output.model_validate(part.value if part else None).model_dump(mode="json")
    except ValueError:
        return None
