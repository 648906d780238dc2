"""The statement of another writer right before a call, and the state that is expected after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.gateway.subject import OthersStatement, Subject
from bench.probe.run.times import growth, is_time
from bench.probe.run.volatile import key_columns, place_of
from bench.probe.run.witness.rows import sql_name
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

ADDED_AMOUNT, OTHER_ADDED_AMOUNT = 7, 11
"""By how much another writer changes a number: the first that is no multiple of the call's own change."""


def others_statement_before(clean: Clean, subject: Subject, call: GatewayCall, identity: str) -> OthersStatement | None:
    """Return the statement that another writer executes right before a call; None if there is none.

    It is the owner's, or else adds to a number to which this call alone adds in the clean run. A number that goes up by 1 is
    not used, since it can be a cursor or a version, nor is a number of 0 and 1, which is a flag.
    """
    for step in subject.meanwhile:
        if fnmatchcase(f"{call.door}.{call.tool}", step.call):
            return step
    rows = [row for effect in clean.effects if effect.identities == {identity} for row in effect.rows]
    return next((step for row in rows if row.store in subject.takes_sql for step in _possible_statements(clean, row)), None)


def _possible_statements(clean: Clean, row: RowDifference) -> Iterator[OthersStatement]:
    """Yield statements that change a number of this row."""
    if row.before is None or row.after is None or row.table in ("", SEQUENCES):
        return
    keys = key_columns(row)
    for name, value in row.after.items():
        by = None if isinstance(value, str) or name in keys else growth(row.before.get(name), value)
        if by in (None, 0, 1) or not keys or clean.rows_vary.has(place_of(row), name, is_added=clean.is_added(row)):
            continue
        if (isinstance(value, int | float) and is_time(value)) or _is_flag(clean, row, name):
            continue
        step = ADDED_AMOUNT if by % ADDED_AMOUNT else OTHER_ADDED_AMOUNT
        where = " AND ".join(f"{sql_name(key)} = {_sql_literal(row.after[key])}" for key in sorted(keys))
        table, column = ".".join(map(sql_name, row.table.split("."))), sql_name(name)
        yield OthersStatement(row.store, f"UPDATE {table} SET {column} = {column} + {step} WHERE {where}")


def _is_flag(clean: Clean, row: RowDifference, column: str) -> bool:
    """Return whether a column holds only 0 and 1 in all rows that the clean run changes."""
    rows = [
        candidate
        for effect in clean.effects
        for candidate in effect.rows
        if (candidate.store, candidate.table) == (row.store, row.table)
    ]
    return {
        state[column] for candidate in rows for state in (candidate.before, candidate.after) if state and column in state
    } <= {0, 1}


def _sql_literal(value: Cell) -> str:
    """Return a value as SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class ExpectedWithStatement:
    """The state that is expected after another writer's statement.

    rows     the rows that the statement changed
    without  the clean state without the statement
    clean    the clean state with the statement
    """

    rows: Mapping[RowPlace, RowDifference]
    without: Clean
    clean: Clean

    @classmethod
    def of(cls, clean: Clean, changed: Sequence[RowDifference]) -> ExpectedWithStatement:
        """Return the state that is expected after these rows were changed by another writer."""
        steps = {place_of(row): row for row in changed}
        if not steps:
            return cls(steps, clean, clean)

        def with_step(row: RowDifference) -> RowDifference:
            return _row_with_change(row, steps[place_of(row)], clean) if place_of(row) in steps else row

        rows = steps | {place: with_step(row) for place, row in clean.rows.items()}
        effects = tuple(replace(effect, rows=tuple(map(with_step, effect.rows))) for effect in clean.effects)
        return cls(steps, clean, replace(clean, rows=rows, effects=effects, digest=""))

    def is_overwritten(self, place: RowPlace, column: str, value: Cell) -> bool:
        """Return whether a value is as if the other writer had done nothing."""
        step = self.rows.get(place)
        if step is None or not (step.before and step.after) or step.before.get(column) == step.after.get(column):
            return False
        known = self.without.rows.get(place)
        return value == ((known and known.after) or step.before).get(column)


def _row_with_change(row: RowDifference, step: RowDifference, clean: Clean) -> RowDifference:
    """Return a row of the clean run with the other writer's change."""
    return replace(
        row,
        before=_state_with_change(row.before, row, step, clean.effects),
        after=_state_with_change(row.after, row, step, clean.effects),
    )


def _state_with_change(
    state: Row | None, row: RowDifference, step: RowDifference, effects: Sequence[CleanEffect]
) -> Row | None:
    """Return a state of a row with the other writer's change: a number changes by the same amount; another value is set,
    unless the agent sets it too."""
    if state is None or step.before is None or step.after is None:
        return state
    agents_changes = [change for effect in effects for change in effect.rows if place_of(change) == place_of(row)]
    cells = dict(state)
    for name, value in step.after.items():
        old_value = step.before.get(name)
        if value == old_value:
            continue
        by = None if isinstance(value, str) else growth(old_value, value)
        if by is not None and isinstance(cells.get(name), int | float):
            cells[name] = cells[name] + by  # type: ignore[operator]  # it was looked at
        elif not any((change.before or {}).get(name) != (change.after or {}).get(name) for change in agents_changes):
            cells[name] = value
    return cells
