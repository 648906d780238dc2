"""Why an agent in a separate process makes a call, over all its restarts.

first    its first call
retry    the next call after a paid reply was lost
rerun    it repeats a question from before its last crash: the reply is paid a second time, because of the crash
sample   it repeats a question of this life
step     any other call

Each question is a separate attempt, counted over all lives, so that faults and seeds are drawn anew for each call. A repetition
in the same life asks for a further sample of the question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from bench.record.events import Cause
from bench.run.trial.causes import CallPurpose, Causes
from bench.run.trial.log import TrialLog


class AgentCauses:
    """The account of the calls of an agent in a separate process. `causes` makes the purpose of a request. The number of calls
    has no limit here."""

    def __init__(self, causes: Causes, log: TrialLog):
        self._causes, self._log = causes, log
        self.attempts = 0
        self._attempt_of: dict[Hashable, int] = {}
        self._asked: Counter[Hashable] = Counter()
        self._asked_before: Counter[Hashable] = Counter()
        self._crash = 0
        self._loss: int | None = None

    def next_purpose(self, name: str, question: Hashable) -> CallPurpose:
        """Return the purpose of the next call, which asks this question."""
        cause, caused_by = self._cause(question)
        if not self._asked[question]:
            self.attempts += 1
            self._attempt_of[question] = self.attempts
        self._asked[question] += 1
        self._loss = None
        inferred = cause in ("step", "sample")
        purpose = self._causes.known_purpose(name, self._attempt_of[question], self._asked[question], cause, caused_by)
        return replace(purpose, inferred=inferred)

    def _cause(self, question: Hashable) -> tuple[Cause, int | None]:
        if not self.attempts:
            return "first", None
        if self._loss is not None:
            return "retry", self._loss
        if self._asked[question] < self._asked_before[question]:
            return "rerun", self._crash
        return ("sample" if self._asked[question] else "step"), None

    def note_loss(self, event: int) -> None:
        """Note that the event of this number lost a paid reply."""
        self._loss = event

    def note_late_reply(self, event: int) -> None:
        """Note that the reply that this event lost has arrived."""
        if self._loss == event:
            self._loss = None

    def note_crash(self, event: int) -> None:
        """Note that the agent's process died at this event."""
        self._asked_before |= self._asked
        self._asked.clear()
        self._crash, self._loss = event, None
