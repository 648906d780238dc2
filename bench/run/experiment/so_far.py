"""The results of a run so far: its outcomes, tokens and cost, and its failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bench.common.errors import NotRecorded, UnknownFinish
from bench.record.cost import Tariff
from bench.record.events import Called
from bench.record.record import TrialRecord
from bench.run.experiment.endings import Endings, outcomes_text
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.trial import TrialResult

MAX_CLIENT_SHARE = 0.25
"""If this process adds more than this share to its calls' seconds in flight, then it limits the calls in flight, and not the
endpoint."""


class SoFar:
    """Sums over the records so far: calls, tokens, cost, the number of each outcome, and the first error's reason."""

    def __init__(self, matrix: Matrix):
        self._tariff = Tariff.of(matrix.models)
        self._cost: float | None = 0.0
        self.calls = self.tokens = 0
        self.outcomes: Counter[str] = Counter()
        self.endings = Endings()
        self._first_error = ""
        self._in_flight = self._client = 0.0
        self._unknown: Counter[str] = Counter()

    def add(self, result: TrialResult) -> None:
        """Add the record of a trial to the sums."""
        record = result.record
        cost = self._tariff.cost(record)
        self._cost = None if self._cost is None or cost is None else self._cost + cost
        self.calls += calls_of(record)
        self.tokens += record.tokens
        for call in (event for event in record.events if isinstance(event, Called)):
            self._in_flight += call.seconds
            self._client += call.client
            if call.failure == UnknownFinish.kind:
                self._unknown[call.detail] += 1
        self.outcomes[record.outcome] += 1
        self.endings.add(record)
        if record.outcome == "error":
            self._first_error = self._first_error or record.reason

    @property
    def trials(self) -> int:
        """The number of trials that have ended."""
        return self.outcomes.total()

    @property
    def account(self) -> str:
        """The tokens and the cost in words. The cost is unknown if a model has no prices."""
        return f"{self.tokens:,} tokens, {'cost unknown' if self._cost is None else f'{self._cost:,.2f} $'}"

    @property
    def outcomes_text(self) -> str:
        """The outcomes of the trials in words: `solved 3, wrong 1`; empty if no trial has ended."""
        return outcomes_text(self.outcomes)

    def client_bound(self) -> Iterator[str]:
        """Yield a line if this process, and not the endpoint, limited the calls in flight."""
        if self._client > MAX_CLIENT_SHARE * self._in_flight:
            share = f"{self._client / self._in_flight:.0%}"
            line = f"client-bound: this process was busy for {share} of its calls' seconds while they stood ready"
            yield f"{line}; those are in no call's seconds, and a lower concurrency is no slower"

    def unknown_words(self) -> Iterator[str]:
        """Yield a line for each unknown finish reason, with the number of replies that had it."""
        for reason, count in self._unknown.most_common():
            yield f"{count} paid replies were not used: {reason}; docs/providers.md has the words that are known"

    def errors(self) -> Iterator[str]:
        """Yield lines on the trials that ended in an error, and on what to do about them."""
        if self.outcomes["error"]:
            yield f"{self.outcomes['error']} trials ended in an error, the first: {self._first_error}"
            if NotRecorded.kind not in self._first_error:
                yield "the same command runs them again"


def calls_of(record: TrialRecord) -> int:
    """Return the number of calls in a trial."""
    return sum(isinstance(event, Called) for event in record.events)
