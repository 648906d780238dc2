"""The receipts of a trial's faults: for each planned fault whether it was delivered, what it spoiled, and how the trial
ended."""

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
"""The stage that is recorded for a fault if an answer followed, before the answer is graded."""
ENDINGS = (ANSWERED, "gave_up", "undetected")
"""The last stages of a fault that are recorded."""
NEVER_MASKED = ("call", "tool", "event", "process")
IMPACTS = ("effective", "masked", "undetermined")
POINTS_WITHOUT_REPLY = ("input", "state")
"""Points at which no undamaged reply exists that could be judged, so that only the control shows a fault's impact."""
_exchange_of = attrgetter("subtasks", "attempt", "seed", "messages", "reply", "delivered", "failure", "tool_calls", "options")
"""Returns the request and the reply of a call, which are all that the next call can depend on."""


@dataclass(frozen=True)
class Receipt:
    """What became of one planned fault.

    number   the fault's number in its trial
    first    its first recorded entry
    call     the number of the call that it struck, if any
    impact   `effective` if the struck content would have been accepted without the fault, `masked` if it would have been
             rejected anyway, `undetermined` if neither the trial nor its control shows which; '' if it was not delivered
    finish   `recovered` if the trial's answer is right; else `restarted` for a process that went on, `answered_wrong`,
             `gave_up`, `undetected` if the answer uses the struck content and nobody noticed, `answered` if nothing graded the
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


def receipts(record: TrialRecord, impacts: Mapping[int, str] = MappingProxyType({})) -> tuple[Receipt, ...]:
    """Return the receipts of a trial, in order. `impacts` maps faults whose impact the trial alone does not show to their
    impact (`impacts_by_control`)."""
    entries_by_fault: dict[int, list[Faulted]] = {}
    for entry in of_kind(record.events, Faulted):
        entries_by_fault.setdefault(entry.fault, []).append(entry)
    # Only a verdict on the reply without the fault has a fault's number.
    verdicts_without_fault = {verdict.fault: verdict for verdict in of_kind(record.events, Judged)}
    result: list[Receipt] = []
    for number, entries in entries_by_fault.items():
        stages, verdict = [entry.stage for entry in entries], verdicts_without_fault.get(number)
        delivered, ending = "delivered" in stages, next((stage for stage in stages if stage in ENDINGS), "")
        if entries[0].point in NEVER_MASKED:
            impact = "effective"
        elif verdict:
            impact = "effective" if verdict.accepted else "masked"
        else:  # faults at inputs or in the state: only the control shows their impact
            impact = impacts.get(number) or "undetermined"
        receipt = Receipt(
            number=number,
            first=entries[0],
            call=next((entry.call for entry in entries if entry.call is not None), None),
            planned="planned" in stages,
            delivered=delivered,
            not_applicable="not_applicable" in stages,
            detected="detected" in stages,
            impact=impact if delivered else "",
            finish=_finish(ending, entries[0].point, record.outcome) if delivered else "",
        )
        result.append(receipt)
    return tuple(result)


def _finish(ending: str, point: str, outcome: Outcome) -> str:
    """Return how a delivered fault ended, by its last recorded stage and the trial's outcome (`Receipt.finish`)."""
    if outcome == "error":
        return "error"
    if ending != ANSWERED or outcome == "solved":  # ANSWERED is recorded before the answer is graded
        return ending
    if point == "process":
        return "restarted"
    return "answered_wrong" if outcome == "wrong" else "answered"


def is_silently_corrupted(record: TrialRecord, receipts: Iterable[Receipt]) -> bool:
    """Whether the answer is wrong and a fault in its content passed every verification."""
    return record.outcome == "wrong" and any(
        receipt.delivered and receipt.finish == "undetected" and receipt.first.point in CONTENT_POINTS for receipt in receipts
    )


def impacts_by_control(
    receipts: Sequence[Receipt], calls: Sequence[LedgerEntry], control: Sequence[LedgerEntry]
) -> dict[int, str]:
    """Return fault -> `effective` or `masked`, for each fault at `input` or `state` whose impact the control shows: both trials
    made the same calls up to the struck call, and the control's reply to that call was judged.

    calls, control   the calls of the trial, and of its control, in order
    """
    impacts = {}
    for receipt in receipts:
        struck = next((index for index, entry in enumerate(calls) if entry.call.call == receipt.call), None)
        if receipt.first.point not in POINTS_WITHOUT_REPLY or struck is None or struck >= len(control):
            continue
        before = zip(calls[:struck], control[:struck], strict=True)
        is_same = all(_exchange_of(entry.call) == _exchange_of(other.call) for entry, other in before)
        if is_same and calls[struck].call.subtasks == control[struck].call.subtasks:
            if control[struck].verdict == "accepted":
                impacts[receipt.number] = "effective"
            elif control[struck].verdict.startswith("rejected"):
                impacts[receipt.number] = "masked"
    return impacts
