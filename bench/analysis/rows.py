"""The columns of a run's frames, and the rows of a trial. What is measured of the trial itself is `bench.analysis.metrics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from bench.analysis.faults import IMPACTS, Receipt
from bench.analysis.ledger import Entry
from bench.analysis.metrics import METRICS
from bench.analysis.recovery import Recovery
from bench.analysis.replies import JudgedReply, judged_replies
from bench.analysis.trial import MEASURED, CallMeasure, Trial
from bench.analysis.workflow import StepTaken
from bench.runtime.events import Waited, of_kind
from bench.runtime.world_events import ToolCalled

Row = tuple[Any, ...]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Column(Generic[Item]):
    """`value` reads it off a trial, or off something of one (`Of`)."""

    name: str
    dtype: str
    value: Callable[[Item], Any]


class Of(NamedTuple, Generic[Item]):
    """Something of a trial: a call, a receipt, a reply, a wait, a step, a call of a tool."""

    trial: Trial
    item: Item


PLACE: tuple[Column[Trial], ...] = (
    Column("trial", "str", lambda trial: trial.record.id),
    Column("scenario", "str", lambda trial: trial.record.scenario),
    Column("instance", "str", lambda trial: trial.record.instance),
    Column("architecture", "str", lambda trial: trial.record.architecture),
    Column("model", "str", lambda trial: trial.record.model),
    Column("plan", "str", lambda trial: trial.record.plan),
    Column("repetition", "int64", lambda trial: trial.record.repetition),
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
    Column("finish", "str", lambda of: of.item.finish),
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
    Column("accepted_again", "bool", lambda of: of.item.accepted_again),
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
    return TrialRows(
        place=place,
        trial=(*place, *[metric.value(trial) for metric in METRICS]),
        calls=_rows(place, CALLS, trial, trial.entries),
        faults=_rows(place, FAULTS, trial, trial.receipts),
        recoveries=_rows(place, RECOVERIES, trial, trial.recoveries),
        replies=_rows(place, REPLIES, trial, judged_replies(record.events, trial.receipts)),
        waits=_rows(place, WAITS, trial, of_kind(record.events, Waited)),
        steps=_rows(place, STEPS, trial, trial.steps),
        tool_calls=_rows(place, TOOL_CALLS, trial, trial.tool_calls),
        undetermined=any(receipt.impact == "undetermined" for receipt in trial.receipts),
    )


def _rows(place: Row, columns: Sequence[Column[Of[Item]]], trial: Trial, items: Sequence[Item]) -> tuple[Row, ...]:
    return tuple((*place, *[column.value(of) for column in columns]) for of in [Of(trial, item) for item in items])


def _subtask_label(called: Sequence[str], known: frozenset[str]) -> str:
    """`all` for a call that does all the work that any call of the trial does."""
    return "all" if len(called) > 1 and set(called) == known else "+".join(called)
