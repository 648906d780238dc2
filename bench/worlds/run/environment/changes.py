"""The rows that a step changed in a world."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from bench.worlds.run.environment.database import tables_of

TableRows = Mapping[tuple[str, Any], Mapping[str, Any]]
"""(table, rowid; the row itself if the table has no rowid) -> the row."""


@dataclass(frozen=True)
class RowChange:
    """A row of a table before and after a step. None if the row was absent."""

    table: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def text(self) -> str:
        """Return the change as one line: + marks an added row, - a removed row, ~ a changed row."""
        if self.before is None or self.after is None:
            row = self.after if self.before is None else self.before
            return f"{'+' if self.before is None else '-'} {self.table}: {_listed(row or {})}"
        same = {name: value for name, value in self.after.items() if self.before[name] == value}
        moved = [f"{name} {self.before[name]} → {value}" for name, value in self.after.items() if name not in same]
        return f"~ {self.table}: {', '.join(moved)} ({_listed(same)})"


def rows_in(content: bytes) -> TableRows:
    """Return the rows of the pack's tables from the bytes of a snapshot."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        connection.row_factory = sqlite3.Row
        return rows_of(connection)


def rows_of(connection: sqlite3.Connection) -> TableRows:
    return dict(_rows(connection))


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[tuple[str, Any], Mapping[str, Any]]]:
    for table in tables_of(connection):
        try:
            rows = _all(connection, "rowid, *", table)
            found_rows = [(row[0], dict(zip(row.keys()[1:], tuple(row)[1:], strict=True))) for row in rows]
        except sqlite3.OperationalError:  # a table WITHOUT ROWID
            found_rows = [(tuple(row), dict(row)) for row in _all(connection, "*", table)]
        for number, row in found_rows:
            yield (table, number), row


def _all(connection: sqlite3.Connection, what: str, table: str) -> list[sqlite3.Row]:
    return connection.execute(f'SELECT {what} FROM "{table}"').fetchall()


def changes(before: TableRows, after: TableRows) -> tuple[RowChange, ...]:
    places = [*before, *(place for place in after if place not in before)]
    return tuple(
        RowChange(place[0], before.get(place), after.get(place)) for place in places if before.get(place) != after.get(place)
    )


def _listed(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)
