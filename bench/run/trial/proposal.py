"""Proposals: what an architecture gets when it asks for outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bench.common.digests import case_of
from bench.common.values import dataclass
from bench.run.trial.faults import OpenReceipt
from bench.run.trial.reply import ReplyPart
from bench.run.trial.state import Source
from bench.scenario import Subtask
from bench.task import names_of


@dataclass(frozen=True, eq=False)
class Proposal:
    """Outputs of some subtasks, not yet verified.

    subtasks    the subtasks that were asked for together
    attempt     their attempt, from 1
    calls       the calls that made them, in order: one call, or an agent's turns
    text        the reply that holds them
    parts       subtask -> its part of the reply; a subtask that the reply does not mention is missing
    made_from   what the subtasks read, with versions
    receipts    the faults that these calls carried
    undamaged   the parts of the reply before a fault struck it; empty if none did
    documents   the documents given with the call: the state of the world in which it was asked
    """

    subtasks: tuple[Subtask, ...]
    attempt: int
    calls: tuple[int, ...]
    text: str
    parts: Mapping[str, ReplyPart]
    made_from: tuple[Source, ...]
    receipts: tuple[OpenReceipt, ...]
    undamaged: Mapping[str, ReplyPart] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)

    @property
    def case(self) -> str:
        """Return the name of the world's state in which the outputs were asked for; "" without a world."""
        return case_of(self.documents)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the subtasks."""
        return names_of(self.subtasks)
