"""The rows of one trial, and the columns that they fill; `bench.analysis.frames` makes frames of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.analysis import ledger
from bench.analysis.faults import Receipt, judged_outputs, receipts, silently_corrupted
from bench.experiment.cost import Tariff
from bench.experiment.record import TrialRecord
from bench.runtime.events import Called, Waited

Row = tuple[Any, ...]

PLACE: dict[str, str] = {
    "trial": "str",
    "scenario": "str",
    "architecture": "str",
    "model": "str",
    "fault": "str",
    "repetition": "int64",
}
TRIALS: dict[str, str] = {
    **PLACE,
    "outcome": "str",
    "correct": "boolean",
    "score": "float64",
    "tokens": "int64",
    "retry_tokens": "int64",
    "useful": "int64",
    "rejected": "int64",
    "superseded": "int64",
    "lost": "int64",
    "judging": "int64",
    "calls": "int64",
    "faults_planned": "int64",
    "faults_delivered": "int64",
    "faults_moot": "int64",
    "faults_seen": "int64",
    "silent_corruption": "bool",
    "api_seconds": "float64",
    "waiting_seconds": "float64",
    "framework_seconds": "float64",
    "latency_seconds": "float64",
    "timing": "str",
    "cost": "float64",
    "reason": "str",
}
CALLS = {
    **PLACE,
    "call": "int64",
    "subtask": "str",
    "attempt": "int64",
    "try": "int64",
    "cause": "str",
    "account": "str",
    "tokens_in": "int64",
    "tokens_out": "int64",
    "usage_in": "Int64",
    "usage_out": "Int64",
    "seconds": "float64",
    "started": "float64",
    "verdict": "str",
    "failure": "str",
    "by": "str",
    "reused": "bool",
}
FAULTS = {
    **PLACE,
    "number": "int64",
    "point": "str",
    "effect": "str",
    "subtask": "str",
    "attempt": "int64",
    "call": "Int64",
    "planned": "bool",
    "delivered": "bool",
    "moot": "bool",
    "seen": "bool",
    "ended": "str",
    "adds_up": "bool",
}
OUTPUTS = {
    **PLACE,
    "call": "int64",
    "subtask": "str",
    "attempt": "int64",
    "exposed": "bool",
    "malformed": "bool",
    "objected": "bool",
}
WAITS = {**PLACE, "why": "str", "started": "float64", "seconds": "float64"}


@dataclass(frozen=True)
class TrialRows:
    """All rows of one trial."""

    trial: Row
    calls: tuple[Row, ...]
    faults: tuple[Row, ...]
    outputs: tuple[Row, ...]
    waits: tuple[Row, ...]


def rows_of(record: TrialRecord, tariff: Tariff) -> TrialRows:
    """All that is kept of a trial, its cost by this tariff."""
    place = (record.id, record.scenario, record.architecture, record.model, record.plan, record.repetition)
    entries = ledger.book(record.events)
    found = receipts(record)
    subtasks = {name for entry in entries for name in entry.call.subtasks}
    return TrialRows(
        trial=(*place, *_trial_values(record, entries, found, tariff.cost(record))),
        calls=tuple((*place, *_call_values(entry, subtasks, record.model)) for entry in entries),
        faults=tuple(
            (
                *place,
                *(one.number, one.first.point, one.first.effect, one.first.subtask, one.first.attempt, one.call),
                *(one.planned, one.delivered, one.moot, one.seen, one.ended, one.adds_up),
            )
            for one in found
        ),
        outputs=tuple(
            (*place, one.call, one.subtask, one.attempt, one.exposed, one.malformed, one.objected)
            for one in judged_outputs(record.events, found)
        ),
        waits=tuple((*place, event.why, event.started, event.seconds) for event in record.events if isinstance(event, Waited)),
    )


def _trial_values(record: TrialRecord, entries: Sequence[ledger.Entry], found: Sequence[Receipt], cost: float | None) -> Row:
    """The columns of TRIALS after those of PLACE. A ledger that does not add up makes the trial an error."""
    wrong = ledger.imbalance(entries, record.tokens)
    outcome, reason = ("error", wrong) if wrong else (record.outcome, record.reason)
    totals = ledger.totals(entries)
    unknown = outcome in ("error", "ungraded")
    correct: bool | None = None if unknown else outcome == "solved"
    score: float | None = record.grade.score if record.grade else 0.0
    return (
        outcome,
        correct,
        None if unknown else score,
        record.tokens,
        sum(entry.tokens for entry in entries if entry.is_retry),
        *(totals[account] for account in ledger.ACCOUNTS),
        len(entries),
        *(sum(getattr(one, stage) for one in found) for stage in ("planned", "delivered", "moot", "seen")),
        outcome != "error" and silently_corrupted(record, found),
        record.api_seconds,
        record.waiting_seconds,
        record.framework_seconds,
        _latency(record),
        record.timing,
        cost,
        reason,
    )


def _latency(record: TrialRecord) -> float:
    """Seconds from beginning to end. On a trial's own clock (simulated, recorded) no time passes while our code runs: what it
    really took is this machine's alone and is shown beside it."""
    on_the_clock = record.api_seconds + record.waiting_seconds
    return on_the_clock + record.framework_seconds if record.timing == "live" else on_the_clock


def _call_values(entry: ledger.Entry, subtasks: set[str], model: str) -> Row:
    """The columns of CALLS after those of PLACE."""
    call: Called = entry.call
    return (
        call.call,
        _subtask_label(call.subtasks, subtasks),
        call.attempt,
        call.try_,
        call.cause,
        entry.account,
        call.tokens_in,
        call.tokens_out,
        call.usage_in,
        call.usage_out,
        call.seconds,
        call.started,
        entry.verdict,
        call.failure or "",
        call.by or model,
        call.reused,
    )


def _subtask_label(called: Sequence[str], known: set[str]) -> str:
    """`all` for a call that does all the work that any call of the trial does."""
    return "all" if len(called) > 1 and set(called) == known else "+".join(called)
