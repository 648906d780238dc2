"""Receipts: what became of each planned fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from bench.experiment.record import Outcome, TrialRecord
from bench.runtime.events import Faulted, Judged, of_kind
from bench.values import dataclass

CONTENT_POINTS = ("output", "input", "state")
ANSWERED = "recovered"
"""The stage that a trial's record holds for a fault after which an answer came, before anybody knows whether it is right."""
ENDINGS = (ANSWERED, "gave_up", "undetected")
NEVER_MASKED = ("call", "tool", "event", "process")
IMPACTS = ("effective", "masked", "undetermined")


@dataclass(frozen=True)
class Receipt:
    """One planned fault, followed. `planned` is its first entry.

    impact   what a delivered fault mattered: `effective` where what it struck would have been accepted without it, `masked`
             where that would have been rejected anyway, `undetermined` where neither the trial nor its control tells; '' where
             it was not delivered
    finish   what became of what it struck: `recovered` where the trial's answer is right, else `restarted` for a process that
             went on, `answered_wrong`, `gave_up`, `undetected` where the answer stands on what was struck and nobody noticed;
             `answered` where nothing graded the answer, `error`, and '' where it was not delivered
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
        return self.delivered == (self.planned and not self.not_applicable)


def receipts(record: TrialRecord, told_by_control: Mapping[int, str] = MappingProxyType({})) -> tuple[Receipt, ...]:
    """The receipts of a trial, in order.

    told_by_control   the impact of faults, by number, that the trial alone does not tell (`bench.analysis.impact`)
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
        else:  # what was read or kept is told from the control alone
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


def silently_corrupted(record: TrialRecord, receipts: Iterable[Receipt]) -> bool:
    """Whether the answer is wrong and a fault in its content had passed every verification."""
    return record.outcome == "wrong" and any(
        receipt.delivered and receipt.finish == "undetected" and receipt.first.point in CONTENT_POINTS for receipt in receipts
    )
