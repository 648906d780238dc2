"""Recovery: the calls that were made again because a fault was noticed.

A **failure** is a rejection or the loss of a paid reply. Outputs that are judged together (the parts of a reply, a stage at its
checkpoint) fail as one. A **round** is one attempt at recovery: the calls that a failure caused, up to the next verdict on what
was struck. Each call has one cause, so no call is in the rounds of two failures.

A record names the cause that was inferred when the call came. A verdict in shadow, which its proposer was not told, can stand
there beside a failure of which it was told. Then that failure is the cause: what nobody heard of causes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from bench.common.values import dataclass, kept
from bench.read.analysis.faults import Receipt
from bench.record.events import Called, Committed, Event, Faulted, Judged, of_kind
from bench.record.intervals import in_nanoseconds, in_seconds, total, union


@dataclass(frozen=True)
class Recovery:
    """The calls that followed one failure which revealed at least one delivered fault.

    faults      the faults that this failure revealed first
    first       the calls of its first round; empty if nothing was asked again because the attempts were used up
    calls       the calls of all rounds, until what was struck and all that was invalidated with it was accepted again, or the
                trial ended
    accepted_again   whether that was reached
    """

    faults: tuple[Receipt, ...]
    first: tuple[Called, ...]
    calls: tuple[Called, ...]
    accepted_again: bool

    @property
    def subtasks(self) -> tuple[str, ...]:
        """The subtasks that were struck, each once."""
        return tuple(dict.fromkeys(receipt.first.subtask for receipt in self.faults))

    def count_impact(self, impact: str) -> int:
        """Return how many of the recovery's faults had this impact."""
        return sum(receipt.impact == impact for receipt in self.faults)


def tokens_of(calls: Iterable[Called]) -> int:
    """Return the tokens of these calls, sent and received."""
    return sum([call.tokens_in + call.tokens_out for call in calls])


def seconds_of(calls: Iterable[Called]) -> float:
    """Return the seconds in which at least one of these calls was in flight."""
    spans = [(begun := in_nanoseconds(call.started), begun + in_nanoseconds(call.seconds)) for call in calls]
    return in_seconds(total(union(spans)))


@dataclass(frozen=True)
class Failure:
    """The numbers of a failure's events, and the subtasks that it left without an output."""

    events: tuple[int, ...]
    subtasks: frozenset[str]


class TrialFailures:
    """The events of a trial, grouped by the failures in it.

    rejections   how often verification turned something away; outputs judged together count once
    """

    def __init__(self, events: Sequence[Event]):
        self._events = events
        failed = any(call.failure for call in of_kind(events, Called))
        paid = [(number, call) for number, call in self._calls.items() if call.failure and tokens_of([call])] if failed else []
        rejected, lost = list(_rejections(events)), [Failure((number,), frozenset(call.subtasks)) for number, call in paid]
        self.rejections = len(rejected)
        self.failures = tuple(sorted([*rejected, *lost], key=lambda failure: failure.events[-1]))
        self._failure_at = {number: failure for failure in self.failures for number in failure.events}
        self._detected: dict[int, int] = {}
        """Fault -> the number of its entry `detected`."""
        if of_kind(events, Faulted):
            for number, event in enumerate(events):
                if isinstance(event, Faulted) and event.stage == "detected":
                    self._detected.setdefault(event.fault, number)

    @kept
    def _calls(self) -> Mapping[int, Called]:
        """The number of an event -> the call that the event is."""
        return {number: event for number, event in enumerate(self._events) if isinstance(event, Called)}

    @kept
    def _numbers(self) -> Mapping[int, int]:
        """Call -> the number of its event."""
        return {call.call: number for number, call in self._calls.items()}

    def recoveries(self, receipts: Iterable[Receipt]) -> tuple[Recovery, ...]:
        """Return a recovery for each failure that revealed a fault, in the order of the failures."""
        noticed: dict[Failure, list[Receipt]] = {}
        for receipt in receipts:
            failure = self._failure_that_told_of(receipt)
            if failure:
                noticed.setdefault(failure, []).append(receipt)
        return tuple(self._recovery(failure, tuple(noticed[failure])) for failure in self.failures if failure in noticed)

    def _failure_that_told_of(self, receipt: Receipt) -> Failure | None:
        """Return the loss of the call that the fault struck, else the rejection just before its entry `detected`. A call
        refused unpaid is no failure: nothing was run again for it."""
        carrier = self._numbers.get(receipt.call) if receipt.call is not None else None
        if receipt.first.point == "call" and carrier is not None and self._calls[carrier].failure is not None:
            return self._failure_at.get(carrier)
        before = self._detected.get(receipt.number, 0) - 1
        while before >= 0 and isinstance(self._events[before], Faulted):
            before -= 1
        return self._failure_at.get(before)

    def _recovery(self, failure: Failure, faults: tuple[Receipt, ...]) -> Recovery:
        struck, since = {receipt.first.subtask for receipt in faults}, failure.events[-1]
        later = enumerate(self._events[since + 1 :], since + 1)
        of_struck = ((number, event) for number, event in later if _is_verdict(event) and event.subtask in struck)
        end = next((number for number, event in of_struck if self._is_made_since(event, since)), len(self._events))
        first = tuple(call for number, call in self._caused_by(failure).items() if number < end)
        return Recovery(faults, first, *self._until_accepted(failure, struck))

    def _until_accepted(self, failure: Failure, struck: set[str]) -> tuple[tuple[Called, ...], bool]:
        """Return all calls that the failure caused, including the calls of further failures before the damaged outputs are
        accepted again. Also return whether all outputs were accepted in the end."""
        calls: dict[int, Called] = {}
        lacking: dict[str, int] = dict.fromkeys(struck, failure.events[-1])

        def follow(each: Failure) -> None:
            caused = self._caused_by(each)
            calls.update(caused)
            names = {name for call in caused.values() for name in call.subtasks}
            lacking.update(dict.fromkeys(each.subtasks | names, each.events[-1]))

        follow(failure)
        for number, event in enumerate(self._events[failure.events[-1] + 1 :], failure.events[-1] + 1):
            further = self._failure_at.get(number)
            if further and (number in calls or not further.subtasks.isdisjoint(lacking)):
                follow(further)
            elif _is_verdict(event) and event.accepted and self._is_made_since(event, lacking.get(event.subtask, number)):
                del lacking[event.subtask]
            if not lacking:
                break
        return tuple(call for _, call in sorted(calls.items())), not lacking

    def _caused_by(self, failure: Failure) -> dict[int, Called]:
        return {number: call for number, call in self._calls.items() if self._causes.get(number) in failure.events}

    @kept
    def _causes(self) -> Mapping[int, int]:
        """Number of a call's event -> the number of the event that caused it."""
        causes = {number: call.caused_by for number, call in self._calls.items() if call.caused_by is not None}
        unheard = {number for number, event in enumerate(self._events) if isinstance(event, Judged) and event.view == "shadow"}
        if not unheard:
            return causes
        heard = [number for failure in self.failures for number in failure.events if number not in unheard]
        asked: dict[str, int] = {}
        for number, call in self._calls.items():
            since = max((asked.get(name, -1) for name in call.subtasks), default=-1)
            if causes.get(number) in unheard:
                causes[number] = max((event for event in heard if since < event < number), default=causes[number])
            asked.update(dict.fromkeys(call.subtasks, number))
        return causes

    def _is_made_since(self, verdict: Judged, since: int) -> bool:
        """Return whether the judged output is newer than this event. A call that the file names and does not hold is not
        newer."""
        return any(self._numbers.get(call, -1) > since for call in verdict.calls)


def _rejections(events: Sequence[Event]) -> Iterator[Failure]:
    if all(verdict.accepted for verdict in of_kind(events, Judged)):
        return
    for verdicts in _given_together(events):
        if rejected := {number: verdict.subtask for number, verdict in verdicts if not verdict.accepted}:
            yield Failure(tuple(rejected), frozenset(rejected.values()))


def _given_together(events: Sequence[Event]) -> Iterator[list[tuple[int, Judged]]]:
    """Yield verdicts that belong together, with their numbers: verdicts on the parts of one reply, or a checkpoint's verdicts
    on the outputs that were unverified."""
    unverified: set[tuple[str, tuple[int, ...]]] = set()
    verdicts: list[tuple[int, Judged]] = []
    together: object = None
    for number, event in enumerate(events):
        if isinstance(event, Judged):
            if event.view == "undamaged":
                continue  # this can stand between verdicts that belong together
            what = "checkpoint" if (event.subtask, event.calls) in unverified else event.calls
            if verdicts and what != together:
                yield verdicts
                verdicts = []
            together = what
            verdicts.append((number, event))
        elif not isinstance(event, Faulted):  # so can this
            if isinstance(event, Committed):
                (unverified.discard if event.verified else unverified.add)((event.subtask, event.calls))
            if verdicts:
                yield verdicts
                verdicts = []
    if verdicts:
        yield verdicts


def _is_verdict(event: Event) -> TypeGuard[Judged]:
    """Return whether the event is a verdict on an output in the state in which its reader got it."""
    return isinstance(event, Judged) and event.view != "undamaged"
