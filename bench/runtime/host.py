"""The interface of a trial for its session at the measuring endpoint."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from bench.answers.formats import AnswerFormat
from bench.models.base import Reply
from bench.runtime.causes import CallLimit, CallPurpose
from bench.runtime.faults import OpenReceipt
from bench.runtime.injection import Corrupted
from bench.runtime.prompt import Prompt
from bench.runtime.proposal import Proposal
from bench.runtime.verification import Rejected
from bench.scenario import Subtask


class Host(Protocol):
    """What a session needs from its trial."""

    @property
    def answer_format(self) -> AnswerFormat:
        """The format in which answers are asked for and read."""
        ...

    def next_ask(self, subtasks: Sequence[Subtask], question: Hashable, under_way: bool, limit: CallLimit) -> CallPurpose:
        """Return the next call for outputs of these subtasks, which can be `under_way`: asked for and not there. Raises GaveUp
        if the limit is reached."""
        ...

    def attempts(self, subtasks: Sequence[Subtask]) -> int:
        """Return the number of attempts at these subtasks; the greatest, if they differ."""
        ...

    def judge_ask(self, subtasks: Sequence[Subtask]) -> CallPurpose:
        """Return a judge call about these subtasks, within their latest attempt."""
        ...

    def prompt(
        self, subtasks: Sequence[Subtask], documents_alone: bool, repair: Rejected | None
    ) -> tuple[Prompt, tuple[OpenReceipt, ...]]:
        """Return our prompt for these subtasks, and the receipts of faults in their inputs."""
        ...

    async def foresee(self, proposals: Iterable[Proposal]) -> None:
        """Run the checks of proposals off the event loop, if they can take long."""
        ...

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], ask: CallPurpose, call: int) -> Corrupted:
        """Return a reply after the due content faults."""
        ...

    def lost(self, ask: CallPurpose, event: int) -> None:
        """Note that a paid reply to this call was lost."""
        ...

    def recovered(self, event: int) -> None:
        """Note that the reply that this event lost has come after all."""
        ...

    def settle(self, subtasks: Sequence[Subtask] | None = None) -> None:
        """End the attempts at these subtasks, or at all for None."""
        ...
