"""The calls of one trial as lines for a terminal, with the verdicts on their replies and the faults that struck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.common.errors import one_line
from bench.read.analysis.faults import ENDINGS, receipts
from bench.record.events import Called, Committed, Event, Faulted, Judged, Refused, SetAside, Waited, of_kind
from bench.record.record import TrialRecord
from bench.record.repeated_call import repeated_call

MAX_REASON_CHARS, MAX_REPLY_CHARS = 160, 600
INDENT = " " * 15


def call_lines(record: TrialRecord) -> Iterator[str]:
    """Yield a line for each call, verdict, stage of a fault, wait and refused request of a trial."""
    finishes = {receipt.number: receipt.finish for receipt in receipts(record)}
    for event in record.events:
        if isinstance(event, Faulted):
            yield _fault_line(event, finishes[event.fault])
        else:
            yield from _event_lines(event)


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
        yield f"last reply of the model: {one_line(text, MAX_REPLY_CHARS)}"
    if repeated := repeated_call(record, texts):
        yield f"note: {repeated}"


def _event_lines(event: Event) -> Iterator[str]:
    """Yield the line of an event other than a fault; none for a kind of event that is not shown."""
    match event:
        case Called():
            try_text = f", try {event.try_}" if event.try_ > 1 else ""
            cost = f"{event.tokens_in:,} + {event.tokens_out:,} tokens, {event.seconds:.2f} s"
            lost = f"; lost: {event.failure}, {_short(event.detail)}" if event.failure else ""
            description = f"{'+'.join(event.subtasks)}, attempt {event.attempt}{try_text}, {event.cause}"
            yield f"{_time_text(event.started)}call {event.call}: {description}: {cost}{lost}"
        case Judged() if event.accepted:
            yield f"{INDENT}{event.subtask} accepted{_view_text(event)}"
        case Judged():
            reason = f"{event.reason}: {_short(event.detail)}" if event.detail else event.reason
            yield f"{INDENT}{event.subtask} rejected{_view_text(event)}: {reason}"
        case Committed() if not event.calls:
            yield f"{INDENT}{event.subtask} written by code, version {event.version}"
        case Waited():
            yield f"{_time_text(event.started)}waited {event.seconds:.2f} s ({event.why})"
        case Refused():
            yield f"{_time_text(event.started)}request refused with status {event.status}: {_short(event.detail)}"
        case SetAside():
            settings = ", ".join(f"{name} {value}" for name, value in event.settings.items())
            yield f"{INDENT}not passed on of what the agent sent: {_short(settings)}"


def _fault_line(event: Faulted, finish: str) -> str:
    """Return a line on a stage of a fault. The last stage was recorded before the answer was graded, so `finish`, which says
    how the fault ended, is shown instead."""
    stage = finish if event.stage in ENDINGS else event.stage
    detail = f" ({_short(event.detail)})" if event.detail else ""
    return f"{INDENT}fault {event.fault}: {event.effect} at {event.point} of {event.subtask}: {stage.replace('_', ' ')}{detail}"


def _time_text(seconds: float) -> str:
    """Return the seconds since the beginning of the trial, aligned at the right of INDENT."""
    return f"{seconds:>10.2f} s  "


def _short(text: str) -> str:
    """Return a text in one line of at most MAX_REASON_CHARS."""
    return one_line(text, MAX_REASON_CHARS)


def _view_text(verdict: Judged) -> str:
    """Return in words on which view of the reply a verdict was given; "" for the reply that the agent got."""
    return {"told": "", "undamaged": " (the reply without the fault)", "shadow": " (in shadow; the agent is not told)"}[
        verdict.view
    ]
