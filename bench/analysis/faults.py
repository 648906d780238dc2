"""Receipts: what became of each planned fault, and which outputs no fault had touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.analysis.ledger import Output
from bench.experiment.record import TrialRecord
from bench.runtime.events import Called, Committed, Event, Faulted, Judged

CONTENT_POINTS = ("output", "input", "state")
ENDINGS = ("recovered", "gave_up", "unnoticed")
FORM = ("schema", "empty", "refusal", "not_json", "cut_off")
"""Reasons that concern the form of an output alone: what the paper calls a schema validation failure."""


@dataclass(frozen=True)
class Receipt:
    """One planned fault, followed. `first` is an entry of it; `ended` is '' where it was never delivered."""

    number: int
    first: Faulted
    call: int | None
    planned: bool
    delivered: bool
    moot: bool
    seen: bool
    ended: str

    @property
    def adds_up(self) -> bool:
        return self.delivered == (self.planned and not self.moot)


def receipts(record: TrialRecord) -> tuple[Receipt, ...]:
    """The receipts of a trial, in order. In a trial that ended in an error a fault ended in that too."""
    entries: dict[int, list[Faulted]] = {}
    for event in record.events:
        if isinstance(event, Faulted):
            entries.setdefault(event.fault, []).append(event)
    return tuple(_receipt(number, found, record.outcome == "error") for number, found in entries.items())


def _receipt(number: int, entries: Sequence[Faulted], error: bool) -> Receipt:
    stages = [entry.stage for entry in entries]
    ended = next((stage for stage in stages if stage in ENDINGS), "")
    call = next((entry.call for entry in entries if entry.call is not None), None)
    return Receipt(
        number=number,
        first=entries[0],
        call=call,
        planned="planned" in stages,
        delivered="delivered" in stages,
        moot="moot" in stages,
        seen="seen" in stages,
        ended="error" if error and "delivered" in stages else ended,
    )


def silently_corrupted(record: TrialRecord, found: Iterable[Receipt]) -> bool:
    """Whether the answer is wrong and a fault in its content had passed every verification."""
    return record.outcome == "wrong" and any(
        one.delivered and one.ended == "unnoticed" and one.first.point in CONTENT_POINTS for one in found
    )


@dataclass(frozen=True)
class JudgedOutput:
    """One subtask's output in the reply to one call, and all that the verifier ever said of it.

    exposed       its call carried a delivered fault, or it was made from an output of such a call
    malformed     it was rejected for its form
    objected      it was rejected, though its form was right
    """

    call: int
    subtask: str
    attempt: int
    exposed: bool
    malformed: bool
    objected: bool


def judged_outputs(events: Sequence[Event], found: Iterable[Receipt]) -> tuple[JudgedOutput, ...]:
    """Each output that was judged, once however often it was."""
    attempts = {event.call: event.attempt for event in events if isinstance(event, Called)}
    reasons: dict[tuple[int, str], list[str]] = {}
    for event in events:
        if isinstance(event, Judged) and event.call is not None:
            reasons.setdefault((event.call, event.subtask), []).append("" if event.accepted else event.reason)
    touched = _touched_calls(events, {one.call for one in found if one.delivered and one.call is not None})
    return tuple(
        JudgedOutput(
            call=call,
            subtask=subtask,
            attempt=attempts.get(call, 0),
            exposed=call in touched,
            malformed=any(reason in FORM for reason in said),
            objected=any(said) and not any(reason in FORM for reason in said),
        )
        for (call, subtask), said in reasons.items()
    )


def _touched_calls(events: Iterable[Event], faulted: set[int]) -> set[int]:
    """These calls, and those whose outputs were made from theirs; a version is written after what it was made from."""
    touched, written = set(faulted), dict[Output, int | None]()
    for event in events:
        if isinstance(event, Committed):
            written[event.subtask, event.version] = event.call
            if event.call is not None and any(written.get((name, version)) in touched for name, version, _ in event.made_from):
                touched.add(event.call)
    return touched
