"""Find the rows that a step changed in a world."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from bench.record.damage import RowChange
from bench.worlds.run.environment.database import tables_of

TableRows = Mapping[tuple[str, Any], Mapping[str, Any]]
"""(table, rowid; the row itself if the table has no rowid) -> the row."""


def rows_in(content: bytes) -> TableRows:
    """Return the rows of the pack's tables in the bytes of a snapshot."""
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
    """Return the rows that differ between two states of the tables."""
    places = [*before, *(place for place in after if place not in before)]
    return tuple(
        RowChange(place[0], before.get(place), after.get(place)) for place in places if before.get(place) != after.get(place)
    )
