"""What a session at the measuring endpoint needs of the trial that it belongs to."""

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
    """What a session needs of the trial that it belongs to."""

    @property
    def answer_format(self) -> AnswerFormat:
        """In which form answers are asked for, and read."""
        ...

    def next_ask(self, subtasks: Sequence[Subtask], question: Hashable, under_way: bool, limit: CallLimit) -> CallPurpose:
        """The next call for outputs of these subtasks, which may be `under_way`: asked for and not there. Raises GaveUp where
        the limit is reached."""
        ...

    def attempts(self, subtasks: Sequence[Subtask]) -> int:
        """How many attempts there were at these subtasks, or at the one among them that had the most."""
        ...

    def judge_ask(self, subtasks: Sequence[Subtask]) -> CallPurpose:
        """A judge call about these subtasks, within their latest attempt."""
        ...

    def prompt(
        self, subtasks: Sequence[Subtask], documents_alone: bool, repair: Rejected | None
    ) -> tuple[Prompt, tuple[OpenReceipt, ...]]:
        """Our own prompt for these subtasks, and the receipts of faults in what they read."""
        ...

    async def foresee(self, proposals: Iterable[Proposal]) -> None:
        """Have the checks asked of proposals, off the event loop, where they may wait for the sandbox."""
        ...

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], ask: CallPurpose, call: int) -> Corrupted:
        """A reply, by the content faults due."""
        ...

    def lost(self, ask: CallPurpose, event: int) -> None:
        """A paid reply to this call was lost."""
        ...

    def recovered(self, event: int) -> None:
        """The reply that was lost then has come after all."""
        ...

    def settle(self, subtasks: Sequence[Subtask] | None = None) -> None:
        """The attempts at these subtasks, or at all, have ended."""
        ...
