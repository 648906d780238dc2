"""The impact of faults at `input` and at `state`. The control decides the impact if it made the same request undamaged."""

from __future__ import annotations

from collections.abc import Sequence

from bench.read.analysis.faults import Receipt
from bench.record.ledger import LedgerEntry

TOLD_BY_CONTROL = ("input", "state")
"""Points at which no undamaged reply exists to be judged."""


def impacts_by_control(
    receipts: Sequence[Receipt], calls: Sequence[LedgerEntry], control: Sequence[LedgerEntry]
) -> dict[int, str]:
    """Return fault -> `effective` or `masked`, for each fault that the control can decide: both trials did the same up to the
    call that carried the fault, and the control's call was judged.

    calls, control   the calls of the trial, and of its control, in order
    """
    impacts = {}
    for receipt in receipts:
        at = next((place for place, entry in enumerate(calls) if entry.call.call == receipt.call), None)
        if receipt.first.point not in TOLD_BY_CONTROL or at is None or at >= len(control):
            continue
        same_way = all(_did(call) == _did(other) for call, other in zip(calls[:at], control[:at], strict=True))
        if same_way and calls[at].call.subtasks == control[at].call.subtasks:
            if control[at].verdict == "accepted":
                impacts[receipt.number] = "effective"
            elif control[at].verdict.startswith("rejected"):
                impacts[receipt.number] = "masked"
    return impacts


def _did(entry: LedgerEntry) -> tuple[object, ...]:
    """Return what a trial asked and what it got: all that its next call can depend on."""
    call = entry.call
    return (
        call.subtasks,
        call.attempt,
        call.seed,
        call.messages,
        call.reply,
        call.delivered,
        call.failure,
        call.tool_calls,
        call.options,
    )
