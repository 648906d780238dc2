"""The statement of another writer right before a call, and the state that is expected after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain

from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.gateway.subject import OthersStatement, Subject
from bench.probe.run.times import growth, is_time
from bench.probe.run.volatile import key_columns, place_of
from bench.probe.run.witness.rows import sql_name
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

ADDED_AMOUNT, OTHER_ADDED_AMOUNT = 7, 11
"""The amounts that another writer adds to a number: the second if the call's own change is a multiple of the first."""
VERSION_INCREASE = 2
"""What another writer adds to a version: as two changes do, so that the row never looks as if only the call had changed it."""


def others_statement_before(clean: Clean, subject: Subject, call: GatewayCall, identity: str) -> OthersStatement | None:
    """Return the statement that another writer executes right before a call; None if there is none.

    The owner's statement is taken if there is one for this call. Otherwise the statement increases a number in a row that this
    call alone changes in the clean run.

    Args:
        clean: What the clean runs show.
        subject: The agent, with its owner's statements.
        call: The call of the clean run before which the statement is executed.
        identity: The identity of the call.
    """
    for statement in subject.meanwhile:
        if fnmatchcase(f"{call.door}.{call.tool}", statement.call):
            return statement
    rows = [row for effect in clean.effects if effect.identities == {identity} for row in effect.rows]
    statements = (_possible_statements(clean, row) for row in rows if row.store in subject.takes_sql)
    return next(chain.from_iterable(statements), None)


def _possible_statements(clean: Clean, row: RowDifference) -> Iterator[OthersStatement]:
    """Yield a statement for each number in this row that the row's call increases. A number that goes up by 1 can be a
    cursor or a version, and a number of 0 and 1 is a flag: these are left out."""
    if row.before is None or row.after is None or row.table in ("", SEQUENCES):
        return
    keys = key_columns(row)
    for name, value in row.after.items():
        increase = None if isinstance(value, str) or name in keys else growth(row.before.get(name), value)
        if increase in (None, 0, 1) or not keys or clean.rows_vary.has(place_of(row), name, is_added=clean.is_added(row)):
            continue
        if (isinstance(value, int | float) and is_time(value)) or _is_flag(clean, row, name):
            continue
        amount = ADDED_AMOUNT if increase % ADDED_AMOUNT else OTHER_ADDED_AMOUNT
        where = " AND ".join(f"{sql_name(key)} = {_sql_literal(row.after[key])}" for key in sorted(keys))
        table, column = ".".join(map(sql_name, row.table.split("."))), sql_name(name)
        change = f"UPDATE {table} SET {column} = {column} + {amount}"
        counts = "".join(
            f", {sql_name(counter)} = {sql_name(counter)} + {VERSION_INCREASE}" for counter in _counters(row, keys)
        )
        counting = f"{change}{counts} WHERE {where}" if counts else ""
        yield OthersStatement(row.store, f"{change} WHERE {where}", counting=counting)


def _counters(row: RowDifference, keys: Collection[str]) -> Iterator[str]:
    """Yield the columns that a row's call counts up by 1: one of them can be the version of the row."""
    for name, value in (row.after or {}).items():
        if not isinstance(value, str) and name not in keys and growth((row.before or {}).get(name), value) == 1:
            yield name


def _is_flag(clean: Clean, row: RowDifference, column: str) -> bool:
    """Return whether a column holds only 0 and 1 in all rows that the clean run changes."""
    changed_rows = [changed for effect in clean.effects for changed in effect.rows]
    table_rows = [changed for changed in changed_rows if (changed.store, changed.table) == (row.store, row.table)]
    states = [state for changed in table_rows for state in (changed.before, changed.after) if state]
    return all(state[column] in (0, 1) for state in states if column in state)


def _sql_literal(value: Cell) -> str:
    """Return a value as an SQL literal."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class ExpectedWithStatement:
    """The state of the stores that is expected after another writer's statement.

    others_rows  the rows that the statement changed
    without      the clean state without the statement
    clean        the clean state with the statement
    """

    others_rows: Mapping[RowPlace, RowDifference]
    without: Clean
    clean: Clean

    @classmethod
    def of(cls, clean: Clean, changed: Sequence[RowDifference]) -> ExpectedWithStatement:
        """Return the state that is expected after another writer changed these rows."""
        others_rows = {place_of(row): row for row in changed}
        if not others_rows:
            return cls(others_rows, clean, clean)

        def with_change(row: RowDifference) -> RowDifference:
            return _row_with_change(row, others_rows[place_of(row)], clean) if place_of(row) in others_rows else row

        rows = others_rows | {place: with_change(row) for place, row in clean.rows.items()}
        effects = tuple(replace(effect, rows=tuple(map(with_change, effect.rows))) for effect in clean.effects)
        return cls(others_rows, clean, replace(clean, rows=rows, effects=effects, digest=""))

    def is_overwritten(self, place: RowPlace, column: str, value: Cell) -> bool:
        """Return whether a value, which the other writer has changed, is as if the other writer had done nothing."""
        others = self.others_rows.get(place)
        if others is None or not (others.before and others.after) or others.before.get(column) == others.after.get(column):
            return False
        clean = self.without.rows.get(place)
        return value == ((clean and clean.after) or others.before).get(column)


def _row_with_change(row: RowDifference, others: RowDifference, clean: Clean) -> RowDifference:
    """Return a row of the clean run with the other writer's change, `others`."""
    return replace(
        row,
        before=_state_with_change(row.before, others, clean.effects),
        after=_state_with_change(row.after, others, clean.effects),
    )


def _state_with_change(state: Row | None, others: RowDifference, effects: Sequence[CleanEffect]) -> Row | None:
    """Return a state of a row with the other writer's change, `others`: a number changes by the same amount; another value is
    set, unless the agent sets it too."""
    if state is None or others.before is None or others.after is None:
        return state
    agents_changes = [change for effect in effects for change in effect.rows if place_of(change) == place_of(others)]
    cells = dict(state)
    for name, value in others.after.items():
        old_value = others.before.get(name)
        if value == old_value:
            continue
        increase = None if isinstance(value, str) else growth(old_value, value)
        if increase is not None and isinstance(cells.get(name), int | float):
            cells[name] = cells[name] + increase  # type: ignore[operator]  # it is a number, as the line above tests
        elif not any((change.before or {}).get(name) != (change.after or {}).get(name) for change in agents_changes):
            cells[name] = value
    return cells
