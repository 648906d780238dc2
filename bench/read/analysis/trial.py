"""A recorded trial with all that metrics compute from its events."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from bench.common.values import dataclass, kept
from bench.read.analysis.faults import Receipt, impacts_by_control, receipts
from bench.read.analysis.recovery import Recovery, TrialFailures, seconds_of, tokens_of
from bench.record import ledger
from bench.record.booked import booking_gap
from bench.record.cost import Tariff
from bench.record.events import Answered, Called, Committed, Event, Judged, of_kind
from bench.record.ledger import Account, LedgerEntry
from bench.record.lineage import Lineage
from bench.record.record import TrialRecord

Value = TypeVar("Value")
CallMeasure = Callable[[Sequence[Called]], float]
"""A function from calls to their tokens, seconds or number."""


def _usage_of(calls: Iterable[Called]) -> float:
    """Return the provider's token count. NaN if the provider sent no count for some call."""
    counts = [(call.usage_in, call.usage_out) for call in calls]
    return math.fsum([math.nan if tokens is None else tokens for usage in counts for tokens in usage])


MEASURED: Mapping[str, CallMeasure] = {"tokens": tokens_of, "seconds": seconds_of, "calls": len, "usage": _usage_of}


@dataclass(frozen=True)
class TrialReading:
    """A recorded trial, as a metric reads it.

    record     the record: `tokens`, `outcome`, `events`, seconds by kind
    entries    the ledger: an entry for each call (`bench.record.ledger.LedgerEntry`), in the order of the calls; `entry.call`
               has the call's numbers (`bench.record.events.Called`)
    receipts   what became of each fault (`bench.read.analysis.faults.Receipt`), in the order of the plan
    recoveries   a recovery for each failure that revealed a fault (`bench.read.analysis.recovery.Recovery`)
    accounts   account -> its tokens
    tariff     the prices of calls
    task       the subtasks of its scenario
    control    the calls of the same trial without faults, if only these show the impact of its faults
    """

    record: TrialRecord
    tariff: Tariff
    task: tuple[str, ...] = ()
    control: tuple[LedgerEntry, ...] = ()

    @kept
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The ledger's entries, one for each call, in the order of the calls."""
        return ledger.book(self.record.events)

    @kept
    def receipts(self) -> tuple[Receipt, ...]:
        """What became of each fault. If the trial alone does not show a fault's impact, the control may show it."""
        faults = receipts(self.record)
        impacts = impacts_by_control(faults, self.entries, self.control) if self.control else {}
        return receipts(self.record, impacts) if impacts else faults

    @kept
    def failures(self) -> TrialFailures:
        """The trial's rejections and losses."""
        return TrialFailures(self.record.events)

    @kept
    def recoveries(self) -> tuple[Recovery, ...]:
        """A recovery for each failure that revealed a fault, in order."""
        return self.failures.recoveries(self.receipts)

    @kept
    def first_rounds(self) -> tuple[tuple[Called, ...], ...]:
        """The calls of the first round after each failure that revealed a fault. A failure without a round is left out."""
        return tuple(recovery.first for recovery in self.recoveries if recovery.first)

    @kept
    def calls_of_first_rounds(self) -> frozenset[int]:
        """The numbers of the calls of all first rounds."""
        return frozenset(call.call for calls in self.first_rounds for call in calls)

    @kept
    def effective(self) -> tuple[Recovery, ...]:
        """The recoveries of failures that revealed at least one effective fault."""
        return tuple(recovery for recovery in self.recoveries if recovery.count_impact("effective"))

    def first_round(self, measure: CallMeasure, only: Container[str] | None = None) -> float | None:
        """Return the mean of a measure over the first rounds of this trial; None if it has none. With `only`, calls for other
        subtasks are left out."""
        rounds: Sequence[Sequence[Called]] = self.first_rounds
        if only is not None:
            rounds = [[call for call in calls if all(name in only for name in call.subtasks)] for calls in rounds]
        return math.fsum(map(measure, rounds)) / len(rounds) if rounds else None

    def price(self, measure: CallMeasure) -> float | None:
        """Return the measure of the calls of all rounds after effective faults, divided by the number of these faults; None
        without an effective fault. Each call counts once."""
        if not self.effective:
            return None
        calls = {call.call: call for recovery in self.effective for call in recovery.calls}
        return measure(tuple(calls.values())) / sum(recovery.count_impact("effective") for recovery in self.effective)

    @kept
    def first_attempts(self) -> tuple[Called, ...] | None:
        """The calls that no failure caused. None if a subtask was never asked for, because the trial gave up before."""
        by_code = {commit.subtask for commit in of_kind(self.record.events, Committed) if not commit.calls}
        if not self.subtasks | by_code >= set(self.task):
            return None
        return tuple([entry.call for entry in self.entries if entry.call.caused_by is None])

    def first_pass(self, measure: CallMeasure) -> float | None:
        """Return the measure of the trial's first attempts; None if some subtask had no attempt."""
        return None if self.first_attempts is None else measure(self.first_attempts)

    @kept
    def accounts(self) -> dict[Account, int]:
        """Account -> its tokens."""
        return ledger.totals(self.entries)

    @kept
    def imbalance(self) -> str | None:
        """Why the trial's ledger does not add up, or lacks an entry for a request or a kill; None if neither is so. Such a
        trial counts as an error."""
        return ledger.imbalance(self.entries, self.record.tokens) or booking_gap(self.record.events)

    def once(self, make: Callable[[Sequence[Event]], Value]) -> Value:
        """Return what `make` returns for the events of this trial. `make` is called once, for all metrics that need its
        result."""
        if make not in self._results:
            self._results[make] = make(self.record.events)
        value: Value = self._results[make]
        return value

    @kept
    def _results(self) -> dict[Callable[[Sequence[Event]], Any], Any]:
        """What functions returned (`once`)."""
        return {}

    @kept
    def outcome(self) -> str:
        """The recorded outcome, or `error` if the ledger does not add up."""
        return "error" if self.imbalance else self.record.outcome

    @property
    def is_graded(self) -> bool:
        """Whether the trial is evidence about the architecture: it was graded, or it gave up and scores 0."""
        return self.outcome not in ("error", "ungraded")

    @property
    def solved(self) -> bool | None:
        """Whether the trial is solved; None if it is no evidence about the architecture."""
        return self.outcome == "solved" if self.is_graded else None

    @property
    def retry_tokens(self) -> int:
        """The tokens of retries, of reruns, and of judging after a rejection."""
        return sum([entry.tokens for entry in self.entries if entry.is_retry])

    @property
    def score(self) -> float | None:
        """The grader's score, 0 for a trial that gave up; None if the trial is no evidence."""
        if not self.is_graded:
            return None
        return self.record.grade.score if self.record.grade else 0.0

    @kept
    def passed_every_check(self) -> bool:
        """Whether the last verdict on each output that the answer uses accepted it. Outputs that code wrote are not judged.
        False if the answer uses no judged output."""
        events = self.record.events
        verdicts = [verdict for verdict in of_kind(events, Judged) if verdict.view != "undamaged"]
        accepted = {(verdict.subtask, verdict.calls): verdict.accepted for verdict in verdicts}
        answer = [output for answered in of_kind(events, Answered) for output in answered.versions]
        used = Lineage(events).ancestry(answer)
        outputs = [commit for commit in of_kind(events, Committed) if commit.calls and (commit.subtask, commit.version) in used]
        return bool(outputs) and all(accepted.get((commit.subtask, commit.calls)) for commit in outputs)

    @property
    def latency(self) -> float:
        """Seconds from beginning to end. A simulated or recorded trial has its own clock, which stops while our code runs:
        framework time depends on this machine, and is shown separately."""
        on_the_clock = self.record.api_seconds + self.record.waiting_seconds
        return on_the_clock + self.record.framework_seconds if self.record.timing == "live" else on_the_clock

    @kept
    def subtasks(self) -> frozenset[str]:
        """The subtasks for which a call asked."""
        return frozenset(name for entry in self.entries for name in entry.call.subtasks)

    def faults(self, stage: str) -> int:
        """Return how many faults have this stage in their receipt."""
        return sum([getattr(receipt, stage) for receipt in self.receipts])
