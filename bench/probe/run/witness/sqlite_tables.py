"""The tables of an SQLite database and their first state, which is attached as `first`: they are compared in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from itertools import chain

from bench.common.values import dataclass
from bench.probe.run.witness.rows import SCHEMA, RowPair, StoredRow, sql_name
from bench.record.probe_rows import SEQUENCES

_MAX_TOUCHED_ROWS = 10_000
"""If more rows can differ, all rows are compared."""
ROW_COLUMN = "(row)"
"""The only column of a table whose columns are all ignored. Its rows are still counted."""


@dataclass(frozen=True)
class SqliteTable:
    """A table as its database describes it. Generated columns are left out, since they follow from the others.

    source   the SQL after FROM that reads the table; `{schema}` stands for the schema
    key      the columns of its primary key
    number   the name of its column of row numbers; "" if its rows have no number
    """

    name: str
    source: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    number: str = ""

    def within(self, schema: str) -> str:
        """Return the SQL after FROM that reads the table in a schema."""
        return self.source.replace("{schema}", schema)


_SCHEMA_TABLE = SqliteTable(
    SCHEMA,
    "(SELECT type, name, tbl_name AS of, sql FROM {schema}.sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\')",
    ("type", "name", "of", "sql"),
    ("type", "name"),
)


def tables_of(database: sqlite3.Connection, schema: str, ignores: Callable[[str], bool]) -> dict[str, SqliteTable]:
    """Return name -> description of the tables with content, without ignored tables. A virtual table replaces the tables in
    which it keeps its rows."""
    tables = {SCHEMA: _SCHEMA_TABLE}
    listed = database.execute("SELECT name, type FROM pragma_table_list WHERE schema = ?", (schema,)).fetchall()
    for name, kind in sorted(listed):
        if ignores(name):
            continue
        if name == "sqlite_sequence":
            tables[SEQUENCES] = SqliteTable(SEQUENCES, "{schema}.sqlite_sequence", ("name", "seq"), ("name",))
        elif kind in ("table", "virtual") and not name.startswith("sqlite_"):
            table = _describe(database, schema, name, ignores)
            if kind == "table" or _can_read(database, f"SELECT * FROM {table.within(schema)} LIMIT 0"):
                tables[name] = table
    return tables


def _describe(database: sqlite3.Connection, schema: str, name: str, ignores: Callable[[str], bool]) -> SqliteTable:
    """Return the description of a table, without ignored columns outside the primary key."""
    column_rows = database.execute("SELECT name, pk FROM pragma_table_info(?, ?)", (name, schema)).fetchall()
    columns = tuple(column for column, place in column_rows if place or not ignores(f"{name}.{column}"))
    if not columns:
        return SqliteTable(name, f"(SELECT 0 AS {sql_name(ROW_COLUMN)} FROM {{schema}}.{sql_name(name)})", (ROW_COLUMN,))
    key = tuple(column for column, place in sorted(column_rows, key=lambda column: column[1]) if place)
    source = f"{{schema}}.{sql_name(name)}"
    number_names = (number for number in ("rowid", "_rowid_", "oid") if number not in map(str.lower, columns))
    number = next(
        (number for number in number_names if _can_read(database, f"SELECT {number} FROM {schema}.{sql_name(name)} LIMIT 0")),
        "",
    )
    return SqliteTable(name, source, columns, key, number)


def _can_read(database: sqlite3.Connection, query: str) -> bool:
    """Return whether a query can be executed. It cannot if a module or a collation of the owner's program is missing."""
    try:
        database.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            return False
        raise
    return True


class SqliteComparison:
    """The comparison of a table with its first state. A missing table or column counts as NULL.

    Args:
        database: The open database, with the first state attached as `first`.
        before: The table in the first state; None if it is missing there.
        current: The table now; None if it is missing.
        touched: The numbers of the rows that can differ; None if any row can.

    columns  the columns of both states
    width    the number of columns of the first state
    key      the columns of the key by which rows are paired; () without a key
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        before: SqliteTable | None,
        current: SqliteTable | None,
        touched: Collection[int] | None = None,
    ) -> None:
        self._database, self._before, self._current = database, before, current
        has_numbers = before and current and before.number and current.number
        is_limited = touched and len(touched) <= _MAX_TOUCHED_ROWS and has_numbers
        self._number_list = f"({', '.join(map(str, touched))})" if touched and is_limited else ""
        self.columns = tuple(dict.fromkeys(chain(before.columns if before else (), current.columns if current else ())))
        self.width = len(before.columns if before else self.columns)
        self.key: tuple[str, ...] = ()
        self._join_condition = ""
        if before and current:
            if before.key == current.key and self._can_pair(current.key):
                self.key, self._join_condition = current.key, _key_condition(current.key)
            elif before.number and before.number == current.number:
                self._join_condition = f"n.{current.number} = f.{current.number}"
        elif table := before or current:
            self.key = table.key

    def pairs(self) -> Iterator[RowPair]:
        """Yield the rows that differ. Rows are paired by the key, else by the row number."""
        before, current, width = self._before, self._current, len(self.columns)
        if not (before and current and self._join_condition):
            yield from ((row, None) for row in self._rows("first", before))
            yield from ((None, row) for row in self._rows("main", current))
            return
        # in the queries `f` is a row of the first state, and `n` the row of the current state with which it is paired
        first, main, added_count = before.within("first"), current.within("main"), 0
        is_new = f"f.{sql_name(self.key[0]) if self.key else before.number} IS NULL"
        old, new = self._column_list("f", before), self._column_list("n", current)
        is_equal = " AND ".join(
            f"{old_name} IS {new_name} COLLATE BINARY AND typeof({old_name}) = typeof({new_name})"
            for new_name, old_name in zip(old, new, strict=True)
        )
        changed = f"FROM {main} AS n LEFT JOIN {first} AS f ON {self._join_condition} WHERE ({is_new} OR NOT ({is_equal}))"
        new_only, old_only = (
            f" AND {alias}.{number} IN {self._number_list}" if self._number_list else ""
            for alias, number in (("n", current.number), ("f", before.number))
        )
        for row in self._database.execute(f"SELECT {', '.join((*old, *new))}, {is_new} {changed}{new_only}"):
            added_count += row[-1]
            yield None if row[-1] else row[:width], row[width:-1]
        # removed rows: searched if only some rows can differ, or if the numbers of rows show that some are missing
        if self._number_list or self._count(first) > self._count(main) - added_count:
            counterpart = f"SELECT 1 FROM {main} AS n WHERE {self._join_condition}"
            removed = f"FROM {first} AS f WHERE NOT EXISTS ({counterpart}){old_only}"
            yield from ((row, None) for row in self._database.execute(f"SELECT {', '.join(old)} {removed}"))

    def _rows(self, schema: str, table: SqliteTable | None) -> Iterator[StoredRow]:
        """Yield all rows of a table, with the columns of both states."""
        if table:
            yield from self._database.execute(
                f"SELECT {', '.join(self._column_list('t', table))} FROM {table.within(schema)} AS t"
            )

    def _column_list(self, alias: str, table: SqliteTable) -> list[str]:
        return [f"{alias}.{sql_name(column)}" if column in table.columns else "NULL" for column in self.columns]

    def _count(self, source: str) -> int:
        """Return the number of rows of a table's source."""
        count: int = self._database.execute(f"SELECT count(*) FROM {source}").fetchone()[0]
        return count

    def _can_pair(self, key: tuple[str, ...]) -> bool:
        """Return whether a key identifies each row: no part is NULL, and its collation is known."""
        if not (key and self._before and self._current):
            return False
        first, main = self._before.within("first"), self._current.within("main")
        null = " OR ".join(f"t.{sql_name(column)} IS NULL" for column in key)
        has_null = f"SELECT EXISTS (SELECT 1 FROM {first} AS t WHERE {null}) OR EXISTS (SELECT 1 FROM {main} AS t WHERE {null})"
        joined = f"EXPLAIN SELECT 1 FROM {main} AS n LEFT JOIN {first} AS f ON {_key_condition(key)}"
        return _can_read(self._database, joined) and not self._database.execute(has_null).fetchone()[0]


def _key_condition(key: tuple[str, ...]) -> str:
    """Return the SQL condition that two keys are equal."""
    return " AND ".join(f"n.{sql_name(column)} = f.{sql_name(column)}" for column in key)
