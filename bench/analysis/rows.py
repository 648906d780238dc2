"""The columns of a run's frames: a metric is one row here, its name, its type and how it is read off a trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from bench.analysis import ledger
from bench.analysis.faults import JudgedOutput, Receipt, judged_outputs, receipts, silently_corrupted
from bench.analysis.ledger import Account, Entry
from bench.experiment.cost import Tariff
from bench.experiment.record import TrialRecord
from bench.runtime.events import Waited

Row = tuple[Any, ...]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Trial:
    """One trial, and all that is worked out from its events."""

    record: TrialRecord
    tariff: Tariff

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return ledger.book(self.record.events)

    @cached_property
    def receipts(self) -> tuple[Receipt, ...]:
        return receipts(self.record)

    @cached_property
    def accounts(self) -> dict[Account, int]:
        return ledger.totals(self.entries)

    @cached_property
    def imbalance(self) -> str | None:
        """A ledger that does not add up makes the trial an error."""
        return ledger.imbalance(self.entries, self.record.tokens)

    @property
    def outcome(self) -> str:
        return "error" if self.imbalance else self.record.outcome

    @property
    def is_graded(self) -> bool:
        """Whether it says something about the architecture: a trial that gave up does, with a score of 0."""
        return self.outcome not in ("error", "ungraded")

    @property
    def score(self) -> float | None:
        if not self.is_graded:
            return None
        return self.record.grade.score if self.record.grade else 0.0

    @property
    def latency(self) -> float:
        """Seconds from beginning to end. On a trial's own clock (simulated, recorded) no time passes while our code runs: what
        it really took is this machine's alone and is shown beside it."""
        on_the_clock = self.record.api_seconds + self.record.waiting_seconds
        return on_the_clock + self.record.framework_seconds if self.record.timing == "live" else on_the_clock

    @cached_property
    def subtasks(self) -> frozenset[str]:
        return frozenset(name for entry in self.entries for name in entry.call.subtasks)

    def faults(self, stage: str) -> int:
        """How many planned faults came to this stage."""
        return sum(getattr(receipt, stage) for receipt in self.receipts)


@dataclass(frozen=True)
class Column(Generic[Item]):
    """`kind` is the pandas dtype; `value` reads it off a trial, a call, a receipt, an output or a wait."""

    name: str
    kind: str
    value: Callable[[Item], Any]


@dataclass(frozen=True)
class Of(Generic[Item]):
    """Something of a trial: a call, a receipt, an output, a wait."""

    trial: Trial
    item: Item


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
    Column("tokens", "int64", lambda trial: trial.record.tokens),
    Column("retry_tokens", "int64", lambda trial: sum(entry.tokens for entry in trial.entries if entry.is_retry)),
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
    Column("inferred", "bool", lambda of: of.item.call.inferred),
    Column("account", "str", lambda of: of.item.account),
    Column("tokens_in", "int64", lambda of: of.item.call.tokens_in),
    Column("tokens_out", "int64", lambda of: of.item.call.tokens_out),
    Column("usage_in", "Int64", lambda of: of.item.call.usage_in),
    Column("usage_out", "Int64", lambda of: of.item.call.usage_out),
    Column("seconds", "float64", lambda of: of.item.call.seconds),
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
OUTPUTS: tuple[Column[Of[JudgedOutput]], ...] = (
    Column("call", "int64", lambda of: of.item.call),
    Column("subtask", "str", lambda of: of.item.subtask),
    Column("attempt", "int64", lambda of: of.item.attempt),
    Column("exposed", "bool", lambda of: of.item.exposed),
    Column("malformed", "bool", lambda of: of.item.malformed),
    Column("objected", "bool", lambda of: of.item.objected),
)
WAITS: tuple[Column[Of[Waited]], ...] = (
    Column("why", "str", lambda of: of.item.why),
    Column("started", "float64", lambda of: of.item.started),
    Column("seconds", "float64", lambda of: of.item.seconds),
)


@dataclass(frozen=True)
class TrialRows:
    """All rows of one trial. `place` are the values of PLACE, with which each of its rows begins."""

    place: Row
    trial: Row
    calls: tuple[Row, ...]
    faults: tuple[Row, ...]
    outputs: tuple[Row, ...]
    waits: tuple[Row, ...]


def rows_of(record: TrialRecord, tariff: Tariff) -> TrialRows:
    """All that is kept of a trial, its cost by this tariff."""
    trial = Trial(record, tariff)
    place = tuple(column.value(trial) for column in PLACE)
    waits = [event for event in record.events if isinstance(event, Waited)]
    return TrialRows(
        place=place,
        trial=tuple(column.value(trial) for column in TRIALS),
        calls=_rows(place, CALLS, trial, trial.entries),
        faults=_rows(place, FAULTS, trial, trial.receipts),
        outputs=_rows(place, OUTPUTS, trial, judged_outputs(record.events, trial.receipts)),
        waits=_rows(place, WAITS, trial, waits),
    )


def _rows(place: Row, columns: Sequence[Column[Of[Item]]], trial: Trial, items: Sequence[Item]) -> tuple[Row, ...]:
    return tuple((*place, *(column.value(Of(trial, item)) for column in columns)) for item in items)


def _subtask_label(called: Sequence[str], known: frozenset[str]) -> str:
    """`all` for a call that does all the work that any call of the trial does."""
    return "all" if len(called) > 1 and set(called) == known else "+".join(called)
