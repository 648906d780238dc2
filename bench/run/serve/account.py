"""Make the summary of a recorded trial that an outside system gets: the trial's outcome, and its tokens and seconds by
account."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bench.record import ledger
from bench.record.events import Refused
from bench.record.record import TrialRecord

INFERRED_NOTE = (
    "was not told: after a reply that the verifier rejects in silence the next call is a retry, the same messages again are a"
    " sample, any others a step"
)


def account_of(record: TrialRecord) -> dict[str, Any]:
    """Return the answer to a system that ended a trial: the trial's outcome, calls, tokens and seconds, as JSON."""
    entries = ledger.book(record.events)
    grade = record.grade
    return {
        "outcome": record.outcome,
        "reason": record.reason,
        "grade": grade and {"correct": grade.correct, "score": grade.score, "parts": dict(grade.parts), "note": grade.note},
        "calls": len(entries),
        "tokens": record.tokens,
        "retry_tokens": sum(entry.tokens for entry in entries if entry.is_retry),
        "accounts": ledger.totals(entries),
        "causes": dict(Counter(entry.call.cause for entry in entries)),
        "note": _note(entries),
        "refused": refusals_of(record),
        "api_seconds": record.api_seconds,
        "waiting_seconds": record.waiting_seconds,
        "framework_seconds": record.framework_seconds,
        "timing": record.timing,
    }


def refusals_of(record: TrialRecord) -> dict[str, Any]:
    """Return `count`, the number of refused requests, and `last`, the reason of the last refusal; "" without a refusal."""
    refusals = [event for event in record.events if isinstance(event, Refused)]
    return {"count": len(refusals), "last": f"{refusals[-1].status}: {refusals[-1].detail}" if refusals else ""}


def _note(entries: tuple[ledger.LedgerEntry, ...]) -> str:
    """Return a sentence on the calls whose cause is inferred; "" if there are none."""
    inferred = sum(entry.call.inferred for entry in entries)
    return f"the cause of {inferred} of {len(entries)} calls {INFERRED_NOTE}" if inferred else ""
