"""The calls of one trial as lines for a terminal, with the verdicts on their replies and the faults that struck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.common.errors import one_line
from bench.read.analysis.faults import ENDINGS, receipts
from bench.record.events import Called, Committed, Event, Faulted, Judged, Refused, SetAside, Waited, of_kind
from bench.record.record import TrialRecord
from bench.record.repeated_call import repeated_call

MOST_OF_A_REASON, MOST_OF_LAST_WORDS = 160, 600
INDENT = " " * 15


def call_lines(record: TrialRecord) -> Iterator[str]:
    """Yield a line for each call, verdict, stage of a fault, wait and refused request of a trial."""
    finishes = {receipt.number: receipt.finish for receipt in receipts(record)}
    for event in record.events:
        if isinstance(event, Faulted):
            yield _fault(event, finishes[event.fault])
        else:
            yield from _lines_of(event)


def end_lines(record: TrialRecord, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield lines on the end of a trial: why it ended if its record says so, the model's last reply, and each call that it
    repeated.

    Args:
        record: The trial.
        texts: Digest -> text, of its run.
    """
    if record.reason:
        yield f"why it ended: {_short(record.reason)}"
    calls = [call for call in of_kind(record.events, Called) if call.reply or call.tool_calls]
    if calls:
        text = " ".join(texts.get(digest, "") for digest in (calls[-1].reply, calls[-1].tool_calls) if digest)
        yield f"last reply of the model: {one_line(text, MOST_OF_LAST_WORDS)}"
    if repeated := repeated_call(record, texts):
        yield f"note: {repeated}"


def _lines_of(event: Event) -> Iterator[str]:
    match event:
        case Called():
            tried = f", try {event.try_}" if event.try_ > 1 else ""
            cost = f"{event.tokens_in:,} + {event.tokens_out:,} tokens, {event.seconds:.2f} s"
            lost = f"; lost: {event.failure}, {_short(event.detail)}" if event.failure else ""
            what = f"{'+'.join(event.subtasks)}, attempt {event.attempt}{tried}, {event.cause}"
            yield f"{_at(event.started)}call {event.call}: {what}: {cost}{lost}"
        case Judged() if event.accepted:
            yield f"{INDENT}{event.subtask} accepted{_view(event)}"
        case Judged():
            why = f"{event.reason}: {_short(event.detail)}" if event.detail else event.reason
            yield f"{INDENT}{event.subtask} rejected{_view(event)}: {why}"
        case Committed() if not event.calls:
            yield f"{INDENT}{event.subtask} written by code, version {event.version}"
        case Waited():
            yield f"{_at(event.started)}waited {event.seconds:.2f} s ({event.why})"
        case Refused():
            yield f"{_at(event.started)}request refused with status {event.status}: {_short(event.detail)}"
        case SetAside():
            sent = ", ".join(f"{name} {value}" for name, value in event.settings.items())
            yield f"{INDENT}not passed on of what the agent sent: {_short(sent)}"


def _fault(event: Faulted, finish: str) -> str:
    """Return the stage of a fault in words. The last stage was recorded before the answer was graded, so how the fault ended is
    shown instead."""
    stage = finish if event.stage in ENDINGS else event.stage
    detail = f" ({_short(event.detail)})" if event.detail else ""
    return f"{INDENT}fault {event.fault}: {event.effect} at {event.point} of {event.subtask}: {stage.replace('_', ' ')}{detail}"


def _at(seconds: float) -> str:
    return f"{seconds:>10.2f} s  "


def _short(text: str) -> str:
    return one_line(text, MOST_OF_A_REASON)


def _view(verdict: Judged) -> str:
    return {"told": "", "undamaged": " (the reply without the fault)", "shadow": " (in shadow; the agent is not told)"}[
        verdict.view
    ]
