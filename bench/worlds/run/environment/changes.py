"""The rows of a world's tables, and the rows that differ between two states of the tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from bench.record.damage import RowChange
from bench.worlds.run.environment.database import tables_of

TableRows = Mapping[tuple[str, Any], Mapping[str, Any]]
"""(table, rowid) -> the row by column. If the table has no rowid, the values of the row take its place."""


def rows_in(content: bytes) -> TableRows:
    """Return the rows of the pack's tables in the bytes of a snapshot."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        connection.row_factory = sqlite3.Row
        return rows_of(connection)


def rows_of(connection: sqlite3.Connection) -> TableRows:
    """Return the rows of the pack's tables in a database."""
    return dict(_rows(connection))


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[tuple[str, Any], Mapping[str, Any]]]:
    """Yield the key and the columns of each row of the pack's tables."""
    for table in tables_of(connection):
        try:
            rows = _select(connection, "rowid, *", table)
            found_rows = [(row[0], dict(zip(row.keys()[1:], tuple(row)[1:], strict=True))) for row in rows]
        except sqlite3.OperationalError:  # a table WITHOUT ROWID
            found_rows = [(tuple(row), dict(row)) for row in _select(connection, "*", table)]
        for number, row in found_rows:
            yield (table, number), row


def _select(connection: sqlite3.Connection, columns: str, table: str) -> list[sqlite3.Row]:
    return connection.execute(f'SELECT {columns} FROM "{table}"').fetchall()


def changes(before: TableRows, after: TableRows) -> tuple[RowChange, ...]:
    """Return the rows that differ between two states of the tables."""
    keys = [*before, *(key for key in after if key not in before)]
    changed_keys = [key for key in keys if before.get(key) != after.get(key)]
    return tuple(RowChange(table, before.get((table, row)), after.get((table, row))) for table, row in changed_keys)
