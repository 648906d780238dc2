"""The columns of a run's frames: a metric is one row here, its name, its type and how it is read off a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bench.analysis.faults import IMPACTS, Receipt, silently_corrupted
from bench.analysis.ledger import Entry
from bench.analysis.recovery import Recovery, rejections
from bench.analysis.replies import JudgedReply, judged_replies
from bench.analysis.trial import MEASURED, CallMeasure, Trial
from bench.analysis.workflow import (
    StepTaken,
    compensations,
    completion_minutes,
    refused_for,
    steps_of,
    tool_retries,
    waiting_for_people,
)
from bench.environment.damage import DAMAGES
from bench.runtime.events import Waited
from bench.runtime.world_events import ToolCalled

Row = tuple[Any, ...]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Column(Generic[Item]):
    """`kind` is the pandas dtype; `value` reads it off a trial, or off something of one (`Of`)."""

    name: str
    kind: str
    value: Callable[[Item], Any]


@dataclass(frozen=True)
class Of(Generic[Item]):
    """Something of a trial: a call, a receipt, a reply, a wait, a step, a call of a tool."""

    trial: Trial
    item: Item


def _costs(what: str, of: Callable[[Trial, CallMeasure], float | None]) -> Iterator[Column[Trial]]:
    """One column for each measure of some calls of a trial."""
    for name, measured in MEASURED.items():
        yield Column(f"{what}_{name}", "float64", _measured(of, measured))


def _measured(of: Callable[[Trial, CallMeasure], float | None], measured: CallMeasure) -> Callable[[Trial], float | None]:
    return lambda trial: of(trial, measured)


def _damaged(kind: str) -> Callable[[Trial], int | None]:
    return lambda trial: trial.damage(kind)


PLACE: tuple[Column[Trial], ...] = (
    Column("trial", "str", lambda trial: trial.record.id),
    Column("scenario", "str", lambda trial: trial.record.scenario),
    Column("instance", "str", lambda trial: trial.record.instance),
    Column("architecture", "str", lambda trial: trial.record.architecture),
    Column("model", "str", lambda trial: trial.record.model),
    Column("fault", "str", lambda trial: trial.record.plan),
    Column("repetition", "int64", lambda trial: trial.record.repetition),
)
TRIALS: tuple[Column[Trial], ...] = (
    *PLACE,
    Column("outcome", "str", lambda trial: trial.outcome),
    Column("correct", "boolean", lambda trial: trial.outcome == "solved" if trial.is_graded else None),
    Column("score", "float64", lambda trial: trial.score),
    Column("note", "str", lambda trial: trial.record.grade.note if trial.is_graded and trial.record.grade else ""),
    Column("tokens", "int64", lambda trial: trial.record.tokens),
    Column("retry_tokens", "int64", lambda trial: sum(entry.tokens for entry in trial.entries if entry.is_retry)),
    Column("rejections", "int64", lambda trial: rejections(trial.record.events)),
    *_costs("first_round", Trial.first_round),
    *_costs("price", Trial.price),
    *_costs("first_pass", Trial.first_pass),
    Column("useful", "int64", lambda trial: trial.accounts["useful"]),
    Column("rejected", "int64", lambda trial: trial.accounts["rejected"]),
    Column("superseded", "int64", lambda trial: trial.accounts["superseded"]),
    Column("redundant", "int64", lambda trial: trial.accounts["redundant"]),
    Column("lost", "int64", lambda trial: trial.accounts["lost"]),
    Column("judging", "int64", lambda trial: trial.accounts["judging"]),
    Column("calls", "int64", lambda trial: len(trial.entries)),
    Column("faults_planned", "int64", lambda trial: trial.faults("planned")),
    Column("faults_delivered", "int64", lambda trial: trial.faults("delivered")),
    Column("faults_not_applicable", "int64", lambda trial: trial.faults("not_applicable")),
    Column("faults_detected", "int64", lambda trial: trial.faults("detected")),
    Column(
        "silent_corruption",
        "bool",
        lambda trial: trial.outcome != "error" and silently_corrupted(trial.record, trial.receipts),
    ),
    Column("undetected_failure", "bool", lambda trial: trial.outcome == "wrong" and trial.passed_every_check),
    *(Column(f"damage_{kind}", "Int64", _damaged(kind)) for kind in DAMAGES),
    Column("recount_agrees", "boolean", lambda trial: trial.recount_agrees),
    Column("lives", "Int64", lambda trial: trial.world.lives if trial.world else None),
    Column("tool_calls", "int64", lambda trial: len(trial.tool_calls)),
    Column("tool_retries", "int64", lambda trial: tool_retries(trial.record.events)),
    Column("compensated_pairs", "int64", lambda trial: compensations(trial.record.events)[0]),
    Column("compensated_out_of_order", "int64", lambda trial: compensations(trial.record.events)[1]),
    Column("stale_refused", "int64", lambda trial: refused_for(trial.record.events, "stale")),
    Column("calls_forbidden", "int64", lambda trial: refused_for(trial.record.events, "forbidden")),
    Column("calls_over_quota", "int64", lambda trial: refused_for(trial.record.events, "quota", "throttled")),
    Column("steps_done", "int64", lambda trial: sum(step.done for step in steps_of(trial.record.events))),
    Column("steps_failed", "int64", lambda trial: sum(bool(step.why) for step in steps_of(trial.record.events))),
    Column("completion_minutes", "Int64", lambda trial: completion_minutes(trial.record.events)),
    Column("waiting_for_people_minutes", "int64", lambda trial: waiting_for_people(trial.record.events)),
    Column("api_seconds", "float64", lambda trial: trial.record.api_seconds),
    Column("waiting_seconds", "float64", lambda trial: trial.record.waiting_seconds),
    Column("framework_seconds", "float64", lambda trial: trial.record.framework_seconds),
    Column("latency_seconds", "float64", lambda trial: trial.latency),
    Column("timing", "str", lambda trial: trial.record.timing),
    Column("cost", "float64", lambda trial: trial.tariff.cost(trial.record)),
    Column("reason", "str", lambda trial: trial.imbalance or trial.record.reason),
)
CALLS: tuple[Column[Of[Entry]], ...] = (
    Column("call", "int64", lambda of: of.item.call.call),
    Column("subtask", "str", lambda of: _subtask_label(of.item.call.subtasks, of.trial.subtasks)),
    Column("attempt", "int64", lambda of: of.item.call.attempt),
    Column("sample", "int64", lambda of: of.item.call.sample),
    Column("try", "int64", lambda of: of.item.call.try_),
    Column("cause", "str", lambda of: of.item.call.cause),
    Column("caused_by", "Int64", lambda of: of.item.call.caused_by),
    Column("is_retry", "bool", lambda of: of.item.is_retry),
    Column("inferred", "bool", lambda of: of.item.call.inferred),
    Column("account", "str", lambda of: of.item.account),
    Column("tokens_in", "int64", lambda of: of.item.call.tokens_in),
    Column("tokens_out", "int64", lambda of: of.item.call.tokens_out),
    Column("usage_in", "Int64", lambda of: of.item.call.usage_in),
    Column("usage_out", "Int64", lambda of: of.item.call.usage_out),
    Column("usage_cached", "Int64", lambda of: of.item.call.usage_cached),
    Column("seconds", "float64", lambda of: of.item.call.seconds),
    Column("delay", "float64", lambda of: of.item.call.delay),
    Column("client_seconds", "float64", lambda of: of.item.call.client),
    Column("started", "float64", lambda of: of.item.call.started),
    Column("verdict", "str", lambda of: of.item.verdict),
    Column("failure", "str", lambda of: of.item.call.failure or ""),
    Column("by", "str", lambda of: of.item.call.by or of.trial.record.model),
    Column("reused", "bool", lambda of: of.item.call.reused),
)
FAULTS: tuple[Column[Of[Receipt]], ...] = (
    Column("number", "int64", lambda of: of.item.number),
    Column("point", "str", lambda of: of.item.first.point),
    Column("effect", "str", lambda of: of.item.first.effect),
    Column("subtask", "str", lambda of: of.item.first.subtask),
    Column("attempt", "int64", lambda of: of.item.first.attempt),
    Column("call", "Int64", lambda of: of.item.call),
    Column("planned", "bool", lambda of: of.item.planned),
    Column("delivered", "bool", lambda of: of.item.delivered),
    Column("not_applicable", "bool", lambda of: of.item.not_applicable),
    Column("impact", "str", lambda of: of.item.impact),
    Column("detected", "bool", lambda of: of.item.detected),
    Column("ended", "str", lambda of: of.item.ended),
    Column("adds_up", "bool", lambda of: of.item.adds_up),
)


def _having(impact: str) -> Callable[[Of[Recovery]], int]:
    return lambda of: of.item.having(impact)


def _of_first(measured: CallMeasure) -> Callable[[Of[Recovery]], float | None]:
    return lambda of: measured(of.item.first) if of.item.first else None


def _of_all(measured: CallMeasure) -> Callable[[Of[Recovery]], float]:
    return lambda of: measured(of.item.calls)


RECOVERIES: tuple[Column[Of[Recovery]], ...] = (
    Column("subtask", "str", lambda of: "+".join(of.item.subtasks)),
    Column("faults", "int64", lambda of: len(of.item.faults)),
    *(Column(impact, "int64", _having(impact)) for impact in IMPACTS),
    *(Column(f"first_{name}", "float64", _of_first(measured)) for name, measured in MEASURED.items()),
    *(Column(f"price_{name}", "float64", _of_all(measured)) for name, measured in MEASURED.items()),
    Column("recovered", "bool", lambda of: of.item.recovered),
)
REPLIES: tuple[Column[Of[JudgedReply]], ...] = (
    Column("call", "int64", lambda of: of.item.call),
    Column("subtask", "str", lambda of: _subtask_label(of.item.subtasks, of.trial.subtasks)),
    Column("attempt", "int64", lambda of: of.item.attempt),
    Column("exposed", "bool", lambda of: of.item.exposed),
    Column("kind", "str", lambda of: of.item.kind),
    Column("digest", "str", lambda of: of.item.digest),
)
TOOL_CALLS: tuple[Column[Of[ToolCalled]], ...] = (
    Column("tool", "str", lambda of: of.item.tool),
    Column("kind", "str", lambda of: of.item.access),
    Column("effect", "str", lambda of: of.item.effect),
    Column("try", "int64", lambda of: of.item.try_),
    Column("key", "str", lambda of: of.item.key or ""),
    Column("outcome", "str", lambda of: of.item.outcome),
    Column("code", "str", lambda of: of.item.code),
    Column("reason", "str", lambda of: of.item.reason),
    Column("decision", "str", lambda of: of.item.decision),
    Column("rule", "str", lambda of: of.item.rule),
    Column("life", "int64", lambda of: of.item.life),
    Column("day", "int64", lambda of: of.item.day),
    Column("minute", "int64", lambda of: of.item.minute),
    Column("started", "float64", lambda of: of.item.started),
    Column("entry", "int64", lambda of: of.item.entry),
    Column("changed", "bool", lambda of: of.item.before != of.item.after),
)
WAITS: tuple[Column[Of[Waited]], ...] = (
    Column("why", "str", lambda of: of.item.why),
    Column("started", "float64", lambda of: of.item.started),
    Column("seconds", "float64", lambda of: of.item.seconds),
)
STEPS: tuple[Column[Of[StepTaken]], ...] = (
    Column("step", "str", lambda of: of.item.name),
    Column("attempts", "int64", lambda of: of.item.attempts),
    Column("done", "bool", lambda of: of.item.done),
    Column("why", "str", lambda of: of.item.why),
    Column("minutes", "Int64", lambda of: of.item.minutes),
)


@dataclass(frozen=True)
class TrialRows:
    """All rows of one trial. `place` are the values of PLACE, with which each of its rows begins; `undetermined`: of a fault
    among them it is not told what it mattered."""

    place: Row
    trial: Row
    calls: tuple[Row, ...]
    faults: tuple[Row, ...]
    recoveries: tuple[Row, ...]
    replies: tuple[Row, ...]
    waits: tuple[Row, ...]
    steps: tuple[Row, ...]
    tool_calls: tuple[Row, ...]
    undetermined: bool


def rows_of(trial: Trial) -> TrialRows:
    """All that is kept of a trial."""
    record = trial.record
    place = tuple(column.value(trial) for column in PLACE)
    waits = [event for event in record.events if isinstance(event, Waited)]
    return TrialRows(
        place=place,
        trial=tuple(column.value(trial) for column in TRIALS),
        calls=_rows(place, CALLS, trial, trial.entries),
        faults=_rows(place, FAULTS, trial, trial.receipts),
        recoveries=_rows(place, RECOVERIES, trial, trial.recoveries),
        replies=_rows(place, REPLIES, trial, judged_replies(record.events, trial.receipts)),
        waits=_rows(place, WAITS, trial, waits),
        steps=_rows(place, STEPS, trial, steps_of(record.events)),
        tool_calls=_rows(place, TOOL_CALLS, trial, trial.tool_calls),
        undetermined=any(receipt.impact == "undetermined" for receipt in trial.receipts),
    )


def _rows(place: Row, columns: Sequence[Column[Of[Item]]], trial: Trial, items: Sequence[Item]) -> tuple[Row, ...]:
    return tuple((*place, *(column.value(Of(trial, item)) for column in columns)) for item in items)


def _subtask_label(called: Sequence[str], known: frozenset[str]) -> str:
    """`all` for a call that does all the work that any call of the trial does."""
    return "all" if len(called) > 1 and set(called) == known else "+".join(called)
