"""The columns of a run's frames with several rows for a trial, and the rows of a trial. The columns of the frame `trials`, with
one row for a trial, are the metrics (`bench.read.analysis.metrics`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from bench.common.registry import Part, Registry
from bench.read.analysis.faults import Receipt
from bench.read.analysis.metrics import METRICS
from bench.read.analysis.recovery import Recovery
from bench.read.analysis.replies import JudgedReply, judged_replies
from bench.read.analysis.trial import MEASURED, CallMeasure, TrialReading
from bench.record.events import Waited, of_kind
from bench.record.ledger import LedgerEntry
from bench.record.record import TrialRecord

RowValues = tuple[Any, ...]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A column of a frame. `value` is the dotted name of an item's field, or a function of the item and its trial."""

    name: str
    dtype: str
    value: str | Callable[[Item, TrialReading], Any]


class FrameRows(Generic[Item]):
    """Makes the rows of one frame, a row for each item of a trial. `names` are the columns in the order of a row's values:
    first the fields of the item, then the values that functions compute. The fields are read together, which is five times
    as fast as one by one."""

    def __init__(self, items: Callable[[TrialReading], Sequence[Item]], columns: Sequence[Column[Item]]):
        fields = [(column.name, column.value) for column in columns if isinstance(column.value, str)]
        functions = [(column.name, column.value) for column in columns if not isinstance(column.value, str)]
        self._items, self.columns = items, columns
        self.names = [name for name, _ in (*fields, *functions)]
        values_of = attrgetter(*(value for _, value in fields))
        self._fields = values_of if len(fields) > 1 else lambda item: (values_of(item),)
        self._functions = [value for _, value in functions]

    def of(self, trial: TrialReading) -> list[RowValues]:
        """Return the rows of one trial, a tuple of values for each item. The values are in the order of `names`."""
        items, fields_of, functions = self._items(trial), self._fields, self._functions
        if not functions:
            return list(map(fields_of, items))
        return [(*fields_of(item), *[function(item, trial) for function in functions]) for item in items]


PLACE: tuple[Column[TrialRecord], ...] = (
    Column("trial", "str", "id"),
    Column("scenario", "str", "scenario"),
    Column("instance", "str", "instance"),
    Column("architecture", "str", "architecture"),
    Column("model", "str", "model"),
    Column("plan", "str", "plan"),
    Column("repetition", "int64", "repetition"),
)
CALLS: tuple[Column[LedgerEntry], ...] = (
    Column("call", "int64", "call.call"),
    Column("subtask", "str", lambda row, trial: _subtask_label(row.call.subtasks, trial.subtasks)),
    Column("attempt", "int64", "call.attempt"),
    Column("sample", "int64", "call.sample"),
    Column("try", "int64", "call.try_"),
    Column("cause", "str", "call.cause"),
    Column("caused_by", "Int64", "call.caused_by"),
    Column("is_retry", "bool", "is_retry"),
    Column("inferred", "bool", "call.inferred"),
    Column("account", "str", "account"),
    Column("tokens_in", "int64", "call.tokens_in"),
    Column("tokens_out", "int64", "call.tokens_out"),
    Column("usage_in", "Int64", "call.usage_in"),
    Column("usage_out", "Int64", "call.usage_out"),
    Column("usage_cached", "Int64", "call.usage_cached"),
    Column("seconds", "float64", "call.seconds"),
    Column("delay", "float64", "call.delay"),
    Column("client_seconds", "float64", "call.client"),
    Column("started", "float64", "call.started"),
    Column("verdict", "str", "verdict"),
    Column("failure", "str", lambda row, _: row.call.failure or ""),
    Column("by", "str", lambda row, trial: row.call.by or trial.record.model),
    Column("reused", "bool", "call.reused"),
    Column("in_first_round", "bool", lambda row, trial: row.call.call in trial.calls_of_first_rounds),
)
FAULTS: tuple[Column[Receipt], ...] = (
    Column("number", "int64", "number"),
    Column("point", "str", "first.point"),
    Column("effect", "str", "first.effect"),
    Column("subtask", "str", "first.subtask"),
    Column("attempt", "int64", "first.attempt"),
    Column("call", "Int64", "call"),
    Column("planned", "bool", "planned"),
    Column("delivered", "bool", "delivered"),
    Column("not_applicable", "bool", "not_applicable"),
    Column("impact", "str", "impact"),
    Column("detected", "bool", "detected"),
    Column("finish", "str", "finish"),
    Column("adds_up", "bool", "adds_up"),
)


def _of_first(measure: CallMeasure) -> Callable[[Recovery, TrialReading], float | None]:
    """Return the value of a column: a measure of the first round; None without a call."""
    return lambda row, _: measure(row.first) if row.first else None


def _of_all(measure: CallMeasure) -> Callable[[Recovery, TrialReading], float]:
    """Return the value of a column: a measure of all rounds."""
    return lambda row, _: measure(row.calls)


RECOVERIES: tuple[Column[Recovery], ...] = (
    Column("subtask", "str", lambda row, _: "+".join(row.subtasks)),
    Column("faults", "int64", lambda row, _: len(row.faults)),
    Column("effective", "int64", lambda row, _: row.count_impact("effective")),
    Column("masked", "int64", lambda row, _: row.count_impact("masked")),
    Column("undetermined", "int64", lambda row, _: row.count_impact("undetermined")),
    *(Column(f"first_{name}", "float64", _of_first(measured)) for name, measured in MEASURED.items()),
    *(Column(f"price_{name}", "float64", _of_all(measured)) for name, measured in MEASURED.items()),
    Column("accepted_again", "bool", "accepted_again"),
)
REPLIES: tuple[Column[JudgedReply], ...] = (
    Column("call", "int64", "call"),
    Column("subtask", "str", lambda row, trial: _subtask_label(row.subtasks, trial.subtasks)),
    Column("attempt", "int64", "attempt"),
    Column("exposed", "bool", "exposed"),
    Column("kind", "str", "kind"),
    Column("digest", "str", "digest"),
)
WAITS: tuple[Column[Waited], ...] = (
    Column("why", "str", "why"),
    Column("started", "float64", "started"),
    Column("seconds", "float64", "seconds"),
)


@dataclass(frozen=True)
class FramePart(Part):
    """A frame with several rows for a trial. Its name is an attribute of `bench.read.analysis.frames.Run`. `rows` makes the
    rows of a trial."""

    rows: FrameRows[Any]


OURS = (
    FramePart("calls", FrameRows(attrgetter("entries"), CALLS)),
    FramePart("faults", FrameRows(attrgetter("receipts"), FAULTS)),
    FramePart("recoveries", FrameRows(attrgetter("recoveries"), RECOVERIES)),
    FramePart("replies", FrameRows(lambda trial: judged_replies(trial.record.events, trial.receipts), REPLIES)),
    FramePart("waits", FrameRows(lambda trial: of_kind(trial.record.events, Waited), WAITS)),
)
FRAMES = Registry("frame", FramePart)
place_of = attrgetter(*(str(column.value) for column in PLACE))
"""Returns the values of the columns PLACE of a record, which begin each row of a trial."""


@dataclass(frozen=True)
class TrialRows:
    """All rows of one trial. `place` has the values of PLACE, which begin each row, `trial` the values of the metrics, and
    `frames` the rows of each further frame. `undetermined`: whether the impact of a fault is not known."""

    place: RowValues
    trial: RowValues
    frames: Mapping[str, Sequence[RowValues]]
    undetermined: bool

    @classmethod
    def of(cls, trial: TrialReading) -> TrialRows:
        """Return the rows of one trial in all frames."""
        return cls(
            place=place_of(trial.record),
            trial=tuple([metric.value(trial) for metric in METRICS]),
            frames={part.name: part.rows.of(trial) for part in FRAMES},
            undetermined=any(receipt.impact == "undetermined" for receipt in trial.receipts),
        )


def _subtask_label(subtasks: Sequence[str], all_subtasks: frozenset[str]) -> str:
    """Return the subtasks of a call joined by +; `all` for a call for all subtasks of its trial."""
    if len(subtasks) == 1:
        return subtasks[0]
    return "all" if subtasks and set(subtasks) == all_subtasks else "+".join(subtasks)
