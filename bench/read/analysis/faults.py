"""Receipts: what became of each planned fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from bench.common.values import dataclass
from bench.record.events import Faulted, Judged, of_kind
from bench.record.ledger import LedgerEntry
from bench.record.record import Outcome, TrialRecord

CONTENT_POINTS = ("output", "input", "state")
ANSWERED = "recovered"
"""The stage recorded for a fault if an answer followed, before anybody knows whether it is right."""
ENDINGS = (ANSWERED, "gave_up", "undetected")
NEVER_MASKED = ("call", "tool", "event", "process")
IMPACTS = ("effective", "masked", "undetermined")
TOLD_BY_CONTROL = ("input", "state")
"""Points at which no undamaged reply exists to be judged."""
_exchange_of = attrgetter("subtasks", "attempt", "seed", "messages", "reply", "delivered", "failure", "tool_calls", "options")
"""Returns what a call asked and what it got: all that the next call can depend on."""


@dataclass(frozen=True)
class Receipt:
    """What became of one planned fault. `first` is its first entry.

    impact   `effective` if what it struck would have been accepted without it, `masked` if that would have been rejected
             anyway, `undetermined` if neither the trial nor its control tells; '' if it was not delivered
    finish   `recovered` if the trial's answer is right; else `restarted` for a process that went on, `answered_wrong`,
             `gave_up`, `undetected` if the answer uses what was struck and nobody noticed, `answered` if nothing graded the
             answer, or `error`; '' if it was not delivered
    """

    number: int
    first: Faulted
    call: int | None
    planned: bool
    delivered: bool
    not_applicable: bool
    detected: bool
    impact: str
    finish: str

    @property
    def adds_up(self) -> bool:
        """Whether the fault was delivered if it was planned and applicable, and not delivered otherwise."""
        return self.delivered == (self.planned and not self.not_applicable)


def receipts(record: TrialRecord, told_by_control: Mapping[int, str] = MappingProxyType({})) -> tuple[Receipt, ...]:
    """Return the receipts of a trial, in order.

    told_by_control   fault -> its impact, for faults whose impact the trial alone does not tell (`impacts_by_control`)
    """
    followed: dict[int, list[Faulted]] = {}
    for entry in of_kind(record.events, Faulted):
        followed.setdefault(entry.fault, []).append(entry)
    undamaged = {verdict.fault: verdict for verdict in of_kind(record.events, Judged)}
    result: list[Receipt] = []
    for number, entries in followed.items():
        stages, judged = [entry.stage for entry in entries], undamaged.get(number)
        delivered, ended = "delivered" in stages, next((stage for stage in stages if stage in ENDINGS), "")
        if entries[0].point in NEVER_MASKED:
            impact = "effective"
        elif judged:
            impact = "effective" if judged.accepted else "masked"
        else:  # faults at inputs or in the state: only the control tells
            impact = told_by_control.get(number) or "undetermined"
        receipt = Receipt(
            number=number,
            first=entries[0],
            call=next((entry.call for entry in entries if entry.call is not None), None),
            planned="planned" in stages,
            delivered=delivered,
            not_applicable="not_applicable" in stages,
            detected="detected" in stages,
            impact=impact if delivered else "",
            finish=_finish(ended, entries[0].point, record.outcome) if delivered else "",
        )
        result.append(receipt)
    return tuple(result)


def _finish(ended: str, point: str, outcome: Outcome) -> str:
    if outcome == "error":
        return "error"
    if ended != ANSWERED or outcome == "solved":
        return ended
    if point == "process":
        return "restarted"
    return "answered_wrong" if outcome == "wrong" else "answered"


def is_silently_corrupted(record: TrialRecord, receipts: Iterable[Receipt]) -> bool:
    """Return whether the answer is wrong and a fault in its content passed every verification."""
    return record.outcome == "wrong" and any(
        receipt.delivered and receipt.finish == "undetected" and receipt.first.point in CONTENT_POINTS for receipt in receipts
    )


def impacts_by_control(
    receipts: Sequence[Receipt], calls: Sequence[LedgerEntry], control: Sequence[LedgerEntry]
) -> dict[int, str]:
    """Return fault -> `effective` or `masked`, for each fault at `input` or `state` that the control can decide: both trials
    did the same up to the call that carried the fault, and the control's call was judged.

    calls, control   the calls of the trial, and of its control, in order
    """
    impacts = {}
    for receipt in receipts:
        at = next((place for place, entry in enumerate(calls) if entry.call.call == receipt.call), None)
        if receipt.first.point not in TOLD_BY_CONTROL or at is None or at >= len(control):
            continue
        same_way = all(
            _exchange_of(entry.call) == _exchange_of(other.call) for entry, other in zip(calls[:at], control[:at], strict=True)
        )
        if same_way and calls[at].call.subtasks == control[at].call.subtasks:
            if control[at].verdict == "accepted":
                impacts[receipt.number] = "effective"
            elif control[at].verdict.startswith("rejected"):
                impacts[receipt.number] = "masked"
    return impacts
