"""What another writer changes right before a call is done, and the state that is expected after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.gateway.subject import OthersStep, Subject
from bench.probe.run.times import is_time, size_grown
from bench.probe.run.volatile import key_columns, place_of
from bench.probe.run.witness.rows import sql_name
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

STEP, OTHER_STEP = 7, 11
"""By how much another writer changes a number: the first that is no multiple of the call's own change."""


def step_before(clean: Clean, subject: Subject, call: GatewayCall, identity: str) -> OthersStep | None:
    """Return what another writer does right before a call: what the owner says, or else a step of its own in a number to which
    this call alone adds in the clean run. A number that it counts up by 1 can be its own, as a cursor or a version is. A number
    of 0 and 1 is a flag. None if there is neither."""
    for step in subject.meanwhile:
        if fnmatchcase(f"{call.door}.{call.tool}", step.call):
            return step
    rows = [row for effect in clean.effects if effect.identities == {identity} for row in effect.rows]
    return next((step for row in rows if row.store in subject.takes_sql for step in _steps(clean, row)), None)


def _steps(clean: Clean, row: RowDifference) -> Iterator[OthersStep]:
    if row.before is None or row.after is None or row.table in ("", SEQUENCES):
        return
    keys = key_columns(row)
    for name, value in row.after.items():
        by = None if isinstance(value, str) or name in keys else size_grown(row.before.get(name), value)
        if by in (None, 0, 1) or not keys or clean.rows_vary.has(place_of(row), name, is_added=clean.is_added(row)):
            continue
        if (isinstance(value, int | float) and is_time(value)) or _is_flag(clean, row, name):
            continue
        step = STEP if by % STEP else OTHER_STEP
        where = " AND ".join(f"{sql_name(key)} = {_value(row.after[key])}" for key in sorted(keys))
        table, column = ".".join(map(sql_name, row.table.split("."))), sql_name(name)
        yield OthersStep(row.store, f"UPDATE {table} SET {column} = {column} + {step} WHERE {where}")


def _is_flag(clean: Clean, row: RowDifference, column: str) -> bool:
    """Return whether a column holds 0 and 1 alone in all rows that the clean run changes: such a number is no stock."""
    rows = [each for effect in clean.effects for each in effect.rows if (each.store, each.table) == (row.store, row.table)]
    return {state[column] for each in rows for state in (each.before, each.after) if state and column in state} <= {0, 1}


def _value(value: Cell) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class SteppedClean:
    """What another writer changed in a cell.

    rows     that it changed
    without  the clean state without that; `clean`: with it, which is expected
    """

    rows: Mapping[RowPlace, RowDifference]
    without: Clean
    clean: Clean

    @classmethod
    def of(cls, clean: Clean, changed: Sequence[RowDifference]) -> SteppedClean:
        """Return the step that changed these rows."""
        steps = {place_of(row): row for row in changed}
        if not steps:
            return cls(steps, clean, clean)

        def with_step(row: RowDifference) -> RowDifference:
            return _row_with(row, steps[place_of(row)], clean) if place_of(row) in steps else row

        rows = steps | {place: with_step(row) for place, row in clean.rows.items()}
        effects = tuple(replace(effect, rows=tuple(map(with_step, effect.rows))) for effect in clean.effects)
        return cls(steps, clean, replace(clean, rows=rows, effects=effects, digest=""))

    def is_overwritten(self, place: RowPlace, column: str, now: Cell) -> bool:
        """Return whether a value is as if the other writer had done nothing."""
        step = self.rows.get(place)
        if step is None or not (step.before and step.after) or step.before.get(column) == step.after.get(column):
            return False
        known = self.without.rows.get(place)
        return now == ((known and known.after) or step.before).get(column)


def _row_with(row: RowDifference, step: RowDifference, clean: Clean) -> RowDifference:
    """Return a row of the clean run as it is with the step of another writer."""
    return replace(row, before=_with(row.before, row, step, clean.effects), after=_with(row.after, row, step, clean.effects))


def _with(state: Row | None, row: RowDifference, step: RowDifference, effects: Sequence[CleanEffect]) -> Row | None:
    """Return a state of a row with the step: a number is changed by as much, and another value is set unless the agent sets it
    too."""
    if state is None or step.before is None or step.after is None:
        return state
    made = [each for effect in effects for each in effect.rows if place_of(each) == place_of(row)]
    cells = dict(state)
    for name, value in step.after.items():
        former = step.before.get(name)
        if value == former:
            continue
        by = None if isinstance(value, str) else size_grown(former, value)
        if by is not None and isinstance(cells.get(name), int | float):
            cells[name] = cells[name] + by  # type: ignore[operator]  # it was looked at
        elif not any((each.before or {}).get(name) != (each.after or {}).get(name) for each in made):
            cells[name] = value
    return cells
