"""One trial, and all that is worked out from its events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from bench.analysis import ledger
from bench.analysis.faults import Receipt, receipts
from bench.analysis.impact import impacts_by_control
from bench.analysis.ledger import Account, LedgerEntry
from bench.analysis.recovery import Recovery, TrialFailures, seconds_of, tokens_of
from bench.experiment.cost import Tariff
from bench.experiment.record import TrialRecord
from bench.packs.environments import ENVIRONMENTS
from bench.registry import attribute_at
from bench.runtime.events import Answered, Called, Committed, Event, Judged, of_kind
from bench.runtime.lineage import Lineage
from bench.values import dataclass, kept

Made = TypeVar("Made")
CallMeasure = Callable[[Sequence[Called]], float]
"""What is measured of some calls."""


def _usage_of(calls: Iterable[Called]) -> float:
    """Tokens as the provider counts them; NaN where it counts of a call none."""
    counts = [(call.usage_in, call.usage_out) for call in calls]
    return math.fsum([math.nan if tokens is None else tokens for usage in counts for tokens in usage])


MEASURED: Mapping[str, CallMeasure] = {"tokens": tokens_of, "seconds": seconds_of, "calls": len, "usage": _usage_of}


@dataclass(frozen=True)
class TrialReading:
    """A recorded trial, and what is read off it: what a metric is given.

    record     as it was recorded: `tokens`, `outcome`, `events`, seconds by kind
    entries    the ledger: each call once (`bench.analysis.ledger.LedgerEntry`), in the order of the calls; `entry.call` has the
               call's own numbers (`bench.runtime.events.Called`)
    receipts   the faults, followed (`bench.analysis.faults.Receipt`), in the order of the plan
    recoveries   one for each failure that told of a fault (`bench.analysis.recovery.Recovery`)
    accounts   account -> its tokens
    tariff     prices its calls
    task       the subtasks of its scenario
    control    the calls of the same trial without faults, where they are to tell what its faults mattered
    """

    record: TrialRecord
    tariff: Tariff
    task: tuple[str, ...] = ()
    control: tuple[LedgerEntry, ...] = ()

    @kept
    def entries(self) -> tuple[LedgerEntry, ...]:
        return ledger.book(self.record.events)

    @kept
    def receipts(self) -> tuple[Receipt, ...]:
        faults = receipts(self.record)
        impacts = impacts_by_control(faults, self.entries, self.control) if self.control else {}
        return receipts(self.record, impacts) if impacts else faults

    @kept
    def course(self) -> TrialFailures:
        return TrialFailures(self.record.events)

    @kept
    def recoveries(self) -> tuple[Recovery, ...]:
        return self.course.recoveries(self.receipts)

    @kept
    def first_rounds(self) -> tuple[tuple[Called, ...], ...]:
        """The first round after each failure that told of a fault, where there was one."""
        return tuple(recovery.first for recovery in self.recoveries if recovery.first)

    @kept
    def effective(self) -> tuple[Recovery, ...]:
        """The recoveries from faults of which one at least was effective."""
        return tuple(recovery for recovery in self.recoveries if recovery.having("effective"))

    def first_round(self, measured: CallMeasure) -> float | None:
        """The mean over its first rounds; None where it has none."""
        if not self.first_rounds:
            return None
        return math.fsum([measured(calls) for calls in self.first_rounds]) / len(self.first_rounds)

    def price(self, measured: CallMeasure) -> float | None:
        """All rounds after its effective faults, each call once, by the number of these faults; None where there are none."""
        if not self.effective:
            return None
        calls = {call.call: call for recovery in self.effective for call in recovery.calls}
        return measured(tuple(calls.values())) / sum(recovery.having("effective") for recovery in self.effective)

    @kept
    def first_attempts(self) -> tuple[Called, ...] | None:
        """The calls that no failure caused; None where a subtask was never asked for, since the trial gave up before."""
        by_code = {commit.subtask for commit in of_kind(self.record.events, Committed) if not commit.calls}
        if not self.subtasks | by_code >= set(self.task):
            return None
        return tuple([entry.call for entry in self.entries if entry.call.caused_by is None])

    def first_pass(self, measured: CallMeasure) -> float | None:
        """Its first attempts; None where it has not all of them."""
        return None if self.first_attempts is None else measured(self.first_attempts)

    @kept
    def accounts(self) -> dict[Account, int]:
        return ledger.totals(self.entries)

    @kept
    def imbalance(self) -> str | None:
        """A ledger that does not add up makes the trial an error, and so do requests or kills that are not booked."""
        problems = (_at(part.booked)(self.record.events) for part in ENVIRONMENTS)
        return ledger.imbalance(self.entries, self.record.tokens) or next(filter(None, problems), None)

    def once(self, make: Callable[[Sequence[Event]], Made]) -> Made:
        """Return what a function makes of the trial's events; it is called once, however many columns are read off that."""
        if make not in self._made:
            self._made[make] = make(self.record.events)
        made: Made = self._made[make]
        return made

    @kept
    def _made(self) -> dict[Callable[[Sequence[Event]], Any], Any]:
        return {}

    @property
    def outcome(self) -> str:
        return "error" if self.imbalance else self.record.outcome

    @property
    def is_graded(self) -> bool:
        """Whether it says something about the architecture: a trial that gave up does, with a score of 0."""
        return self.outcome not in ("error", "ungraded")

    @property
    def solved(self) -> bool | None:
        """None where nothing is said about the architecture."""
        return self.outcome == "solved" if self.is_graded else None

    @property
    def retry_tokens(self) -> int:
        return sum([entry.tokens for entry in self.entries if entry.is_retry])

    @property
    def score(self) -> float | None:
        if not self.is_graded:
            return None
        return self.record.grade.score if self.record.grade else 0.0

    @kept
    def passed_every_check(self) -> bool:
        """Whether all that the answer stands on was judged at last, and accepted; what code wrote is not judged."""
        events = self.record.events
        judged = [verdict for verdict in of_kind(events, Judged) if verdict.view != "undamaged"]
        accepted = {(verdict.subtask, verdict.calls): verdict.accepted for verdict in judged}
        answer = [output for answered in of_kind(events, Answered) for output in answered.versions]
        behind = Lineage(events).ancestry(answer)
        made = [commit for commit in of_kind(events, Committed) if commit.calls and (commit.subtask, commit.version) in behind]
        return bool(made) and all(accepted.get((commit.subtask, commit.calls)) for commit in made)

    @property
    def latency(self) -> float:
        """Seconds from beginning to end. On a trial's own clock (simulated, recorded) no time passes while our code runs: what
        it really took is this machine's alone and is shown beside it."""
        on_the_clock = self.record.api_seconds + self.record.waiting_seconds
        return on_the_clock + self.record.framework_seconds if self.record.timing == "live" else on_the_clock

    @kept
    def subtasks(self) -> frozenset[str]:
        return frozenset(name for entry in self.entries for name in entry.call.subtasks)

    def faults(self, stage: str) -> int:
        """How many planned faults came to this stage."""
        return sum([getattr(receipt, stage) for receipt in self.receipts])


@cache  # a run of 10,000 trials asks as often
def _at(path: str) -> Callable[[Sequence[Event]], str | None]:
    check: Callable[[Sequence[Event]], str | None] = attribute_at(path)
    return check
