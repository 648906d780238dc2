"""Receipts: what became of each planned fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from bench.experiment.record import TrialRecord
from bench.runtime.events import Faulted, Judged, of_kind
from bench.values import dataclass

CONTENT_POINTS = ("output", "input", "state")
ENDINGS = ("recovered", "gave_up", "undetected")
NEVER_MASKED = ("call", "tool", "event", "process")
IMPACTS = ("effective", "masked", "undetermined")


@dataclass(frozen=True)
class Receipt:
    """One planned fault, followed. `planned` is its first entry; `ended` is '' where it was never delivered.

    impact   what a delivered fault mattered: `effective` where what it struck would have been accepted without it, `masked`
             where that would have been rejected anyway, `undetermined` where neither the trial nor its control tells; '' where
             it was not delivered
    """

    number: int
    first: Faulted
    call: int | None
    planned: bool
    delivered: bool
    not_applicable: bool
    detected: bool
    impact: str
    ended: str

    @property
    def adds_up(self) -> bool:
        return self.delivered == (self.planned and not self.not_applicable)


def receipts(record: TrialRecord, told_by_control: Mapping[int, str] = MappingProxyType({})) -> tuple[Receipt, ...]:
    """The receipts of a trial, in order. In a trial that ended in an error a fault ended in that too.

    told_by_control   the impact of faults, by number, that the trial alone does not tell (`bench.analysis.impact`)
    """
    followed: dict[int, list[Faulted]] = {}
    for entry in of_kind(record.events, Faulted):
        followed.setdefault(entry.fault, []).append(entry)
    undamaged = {verdict.fault: verdict for verdict in of_kind(record.events, Judged)}
    found: list[Receipt] = []
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
            ended="error" if record.outcome == "error" and delivered else ended,
        )
        found.append(receipt)
    return tuple(found)


def silently_corrupted(record: TrialRecord, found: Iterable[Receipt]) -> bool:
    """Whether the answer is wrong and a fault in its content had passed every verification."""
    return record.outcome == "wrong" and any(
        receipt.delivered and receipt.ended == "undetected" and receipt.first.point in CONTENT_POINTS for receipt in found
    )
