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
        self._ask_counts: Counter[Hashable] = Counter()
        self._ask_counts_before_crash: Counter[Hashable] = Counter()
        self._last_crash = 0
        self._last_loss: int | None = None

    def next_purpose(self, name: str, question: Hashable) -> CallPurpose:
        """Return the purpose of the next call, which asks this question."""
        cause, caused_by = self._cause(question)
        if not self._ask_counts[question]:
            self.attempts += 1
            self._attempt_of[question] = self.attempts
        self._ask_counts[question] += 1
        self._last_loss = None
        inferred = cause in ("step", "sample")
        purpose = self._causes.known_purpose(name, self._attempt_of[question], self._ask_counts[question], cause, caused_by)
        return replace(purpose, inferred=inferred)

    def _cause(self, question: Hashable) -> tuple[Cause, int | None]:
        """Return the cause of a call that asks this question, and the number of the event that caused the call."""
        if not self.attempts:
            return "first", None
        if self._last_loss is not None:
            return "retry", self._last_loss
        if self._ask_counts[question] < self._ask_counts_before_crash[question]:
            return "rerun", self._last_crash
        return ("sample" if self._ask_counts[question] else "step"), None

    def note_loss(self, event: int) -> None:
        """Note that the event of this number lost a paid reply."""
        self._last_loss = event

    def note_late_reply(self, event: int) -> None:
        """Note that the reply that this event lost has arrived."""
        if self._last_loss == event:
            self._last_loss = None

    def note_crash(self, event: int) -> None:
        """Note that the agent's process died at this event. From now on, a question counts as a repetition until it was asked
        as often as before the crash."""
        self._ask_counts_before_crash |= self._ask_counts  # the larger count of each question
        self._ask_counts.clear()
        self._last_crash, self._last_loss = event, None
