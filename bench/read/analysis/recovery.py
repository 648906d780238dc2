"""The recoveries of a trial: the calls that were made again because a fault was noticed.

A **failure** is a rejection or the loss of a paid reply. Outputs that are judged together (the parts of a reply, a stage at
its checkpoint) are one failure. A **round** is one attempt at recovery: the calls that a failure caused, up to the next
verdict on a struck subtask. Each call has one cause, so no call is in the rounds of two failures.

A record names the cause that was inferred when the call was made. That cause can be a verdict in shadow, which the agent was
not told. Then the last failure of which the agent was told is taken as the cause, because an unknown verdict causes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from bench.common.values import dataclass, kept
from bench.read.analysis.faults import Receipt
from bench.record.events import Called, Committed, Event, Faulted, Judged, of_kind
from bench.record.intervals import covered_time, in_nanoseconds, in_seconds


@dataclass(frozen=True)
class Recovery:
    """The calls that followed one failure which revealed at least one delivered fault.

    faults      the faults that no earlier failure had revealed
    first       the calls of the first round; empty if no call followed because the attempts were used up
    calls       the calls of all rounds, until the struck subtasks and all that were invalidated with them were accepted again,
                or the trial ended
    accepted_again   whether they were all accepted again
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
    return in_seconds(covered_time(spans))


@dataclass(frozen=True)
class Failure:
    """A rejection, or the loss of a reply: the numbers of its events, and the subtasks that it left without an output."""

    events: tuple[int, ...]
    subtasks: frozenset[str]


class TrialFailures:
    """The failures of a trial, and the recoveries from them.

    rejections   the number of rejections by verification; outputs that are judged together count once
    """

    def __init__(self, events: Sequence[Event]):
        self._events = events
        rejected, lost = list[Failure](), list[Failure]()
        if not all(verdict.accepted for verdict in of_kind(events, Judged)):
            for verdicts in _joint_verdicts(events):  # outputs that are judged together are one rejection
                if refused := {number: verdict.subtask for number, verdict in verdicts if not verdict.accepted}:
                    rejected.append(Failure(tuple(refused), frozenset(refused.values())))
        if any(call.failure for call in of_kind(events, Called)):
            paid = ((number, call) for number, call in self._calls.items() if call.failure and tokens_of([call]))
            lost = [Failure((number,), frozenset(call.subtasks)) for number, call in paid]
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
        """The number of a call's event -> the call."""
        return {number: event for number, event in enumerate(self._events) if isinstance(event, Called)}

    @kept
    def _numbers(self) -> Mapping[int, int]:
        """The number of a call -> the number of its event."""
        return {call.call: number for number, call in self._calls.items()}

    def recoveries(self, receipts: Iterable[Receipt]) -> tuple[Recovery, ...]:
        """Return a recovery for each failure that revealed a fault, in the order of the failures."""
        revealed: dict[Failure, list[Receipt]] = {}
        for receipt in receipts:
            failure = self._failure_that_revealed(receipt)
            if failure:
                revealed.setdefault(failure, []).append(receipt)
        return tuple(self._recovery(failure, tuple(revealed[failure])) for failure in self.failures if failure in revealed)

    def _failure_that_revealed(self, receipt: Receipt) -> Failure | None:
        """Return the failure that revealed a fault: the loss of the struck call, else the rejection just before the fault's
        entry `detected`; None if there is none. A call that was refused before it was paid is not a failure: no work was lost.
        """
        struck = self._numbers.get(receipt.call) if receipt.call is not None else None
        if receipt.first.point == "call" and struck is not None and self._calls[struck].failure is not None:
            return self._failure_at.get(struck)
        before = self._detected.get(receipt.number, 0) - 1
        while before >= 0 and isinstance(self._events[before], Faulted):
            before -= 1
        return self._failure_at.get(before)

    def _recovery(self, failure: Failure, faults: tuple[Receipt, ...]) -> Recovery:
        """Return the recovery from a failure that revealed these faults."""
        struck, since = {receipt.first.subtask for receipt in faults}, failure.events[-1]
        later = enumerate(self._events[since + 1 :], since + 1)
        verdicts = ((number, event) for number, event in later if _is_verdict(event) and event.subtask in struck)
        end = next((number for number, verdict in verdicts if self._is_newer(verdict, since)), len(self._events))
        first = tuple(call for number, call in self._caused_by(failure).items() if number < end)
        return Recovery(faults, first, *self._until_accepted(failure, struck))

    def _until_accepted(self, failure: Failure, struck: set[str]) -> tuple[tuple[Called, ...], bool]:
        """Return all calls that the failure caused, with the calls of further failures before the struck outputs are accepted
        again, and whether all outputs that these failures took away were accepted in the end."""
        calls: dict[int, Called] = {}
        pending: dict[str, int] = dict.fromkeys(struck, failure.events[-1])  # subtask -> the event that took its output away

        def follow(failure: Failure) -> None:
            """Add the calls that a failure caused, and the subtasks whose outputs it took away."""
            caused = self._caused_by(failure)
            calls.update(caused)
            names = {name for call in caused.values() for name in call.subtasks}
            pending.update(dict.fromkeys(failure.subtasks | names, failure.events[-1]))

        follow(failure)
        for number, event in enumerate(self._events[failure.events[-1] + 1 :], failure.events[-1] + 1):
            further = self._failure_at.get(number)
            if further and (number in calls or not further.subtasks.isdisjoint(pending)):
                follow(further)
            elif _is_verdict(event) and event.accepted and self._is_newer(event, pending.get(event.subtask, number)):
                del pending[event.subtask]
            if not pending:
                break
        return tuple(call for _, call in sorted(calls.items())), not pending

    def _caused_by(self, failure: Failure) -> dict[int, Called]:
        """Return the calls that a failure caused, by the numbers of their events."""
        return {number: call for number, call in self._calls.items() if self._causes.get(number) in failure.events}

    @kept
    def _causes(self) -> Mapping[int, int]:
        """The number of a call's event -> the number of the event that caused the call. In place of a verdict in shadow, of
        which the agent was not told, this is the last failure of which it was told since its previous call for the subtask."""
        causes = {number: call.caused_by for number, call in self._calls.items() if call.caused_by is not None}
        in_shadow = {number for number, item in enumerate(self._events) if isinstance(item, Judged) and item.view == "shadow"}
        if not in_shadow:
            return causes
        known = [number for failure in self.failures for number in failure.events if number not in in_shadow]
        last_call: dict[str, int] = {}
        for number, call in self._calls.items():
            since = max((last_call.get(name, -1) for name in call.subtasks), default=-1)
            if causes.get(number) in in_shadow:
                causes[number] = max((event for event in known if since < event < number), default=causes[number])
            last_call.update(dict.fromkeys(call.subtasks, number))
        return causes

    def _is_newer(self, verdict: Judged, since: int) -> bool:
        """Whether the judged output was made after this event. A call that the record does not have is not newer."""
        return any(self._numbers.get(call, -1) > since for call in verdict.calls)


def _joint_verdicts(events: Sequence[Event]) -> Iterator[list[tuple[int, Judged]]]:
    """Yield groups of verdicts that were given together, with their numbers: the verdicts on the parts of one reply, or a
    checkpoint's verdicts on all outputs that were unverified."""
    unverified: set[tuple[str, tuple[int, ...]]] = set()
    verdicts: list[tuple[int, Judged]] = []
    group: object = None
    for number, event in enumerate(events):
        if isinstance(event, Judged):
            if event.view == "undamaged":
                continue  # such a verdict can come between verdicts that were given together
            group_of_event = "checkpoint" if (event.subtask, event.calls) in unverified else event.calls
            if verdicts and group_of_event != group:
                yield verdicts
                verdicts = []
            group = group_of_event
            verdicts.append((number, event))
        elif not isinstance(event, Faulted):  # an entry of a fault can come between them too
            if isinstance(event, Committed):
                change = unverified.discard if event.verified else unverified.add
                change((event.subtask, event.calls))
            if verdicts:
                yield verdicts
                verdicts = []
    if verdicts:
        yield verdicts


def _is_verdict(event: Event) -> TypeGuard[Judged]:
    """Whether the event is a verdict on an output as the agent got it, and not on the reply without the fault."""
    return isinstance(event, Judged) and event.view != "undamaged"
