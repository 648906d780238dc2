"""A world's database: SQLite in memory or in a file, and the handle by which a pack's code uses it.

A pack's tables hold the business. The tables named `world_...` are ours: journal, clock, pending events. SQLite's authorizer
enforces that a pack's code changes only rows of its own tables.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.record.moment import Moment

DatabaseRow = sqlite3.Row
OWN_PREFIX = "world_"
"""The beginning of the names of our tables, which a pack's tables must not have."""
SEPARATOR = "\0"
TABLES = """
CREATE TABLE world_clock (now INTEGER NOT NULL, life INTEGER NOT NULL);
CREATE TABLE world_journal (
  seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, life INTEGER NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,
  name TEXT NOT NULL, kind TEXT NOT NULL, arguments TEXT NOT NULL, effect TEXT NOT NULL, key TEXT, outcome TEXT NOT NULL,
  result TEXT NOT NULL, reason TEXT NOT NULL, decision TEXT NOT NULL, rule TEXT NOT NULL, policy TEXT NOT NULL,
  seen TEXT NOT NULL, versions TEXT NOT NULL, late INTEGER NOT NULL);
CREATE INDEX world_keys ON world_journal (key) WHERE key IS NOT NULL;
CREATE TABLE world_known (seq INTEGER NOT NULL, how TEXT NOT NULL);
CREATE TABLE world_pending (
  id INTEGER PRIMARY KEY, at INTEGER NOT NULL, what TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  payload TEXT NOT NULL, versions TEXT NOT NULL);
CREATE TABLE world_arrival (
  number INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
  versions TEXT NOT NULL);
CREATE TRIGGER world_journal_stays BEFORE UPDATE ON world_journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER world_journal_keeps BEFORE DELETE ON world_journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
"""
READ_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
WRITE_ACTIONS = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
CHECK_INTERVAL = 100_000
"""Instructions of SQLite's virtual machine between two checks of the time limit."""


class Connection(sqlite3.Connection):
    """A connection to a world's database. While a pack's code runs, `inside` is True and only the pack's tables can be used."""

    inside = False

    def guard(self, overdue: Callable[[], bool]) -> None:
        """Restrict the statements of a pack's code, and end a statement once `overdue` returns True."""
        self.set_authorizer(self._authorize)
        self.set_progress_handler(lambda: int(self.inside and overdue()), CHECK_INTERVAL)

    def _authorize(self, action: int, table: str | None, *_: str | None) -> int:
        """Return whether SQLite may do an action: any outside of a pack's code; in it, reads, and writes to the pack's own
        tables."""
        if not self.inside or action in READ_ACTIONS or (action in WRITE_ACTIONS and not str(table).startswith(OWN_PREFIX)):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY


def connect(path: Path | None = None) -> Connection:
    """Connect to a database in memory, or in a file. If the process is killed, no committed row is lost; if the machine stops,
    rows can be lost."""
    connection = sqlite3.connect(
        path or ":memory:", isolation_level=None, check_same_thread=False, factory=Connection, cached_statements=256
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


Later = Callable[[str, Moment, Mapping[str, Any], str], None]
"""(kind, at, payload, name): schedule an event of this kind."""


class Db:
    """The database handle for a pack's code: SQL on the pack's own tables, and `later` to schedule an event."""

    def __init__(self, connection: sqlite3.Connection, later: Later | None = None):
        self._connection, self._schedule_event = connection, later

    def all(self, sql: str, *values: Any) -> list[DatabaseRow]:
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> DatabaseRow | None:
        """Return the first row; None if there is none."""
        row: DatabaseRow | None = self._connection.execute(sql, values).fetchone()
        return row

    def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row; None if there is no row."""
        row = self.row(sql, *values)
        return row[0] if row else None

    def write(self, sql: str, *values: Any) -> int:
        """Insert, update or delete rows. Return the number of changed rows."""
        return self._connection.execute(sql, values).rowcount

    def later(self, kind: str, at: Moment, payload: Mapping[str, Any], name: str = "") -> None:
        """Schedule an event of this kind for this moment, such as a customer's reply."""
        if self._schedule_event is None:
            raise PermissionError("a tool that is declared read, and a policy, cannot let anything happen")
        self._schedule_event(kind, at, payload, name)


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the pack's tables, sorted."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in tables if not name.startswith((OWN_PREFIX, "sqlite_"))]


def digest_of_tables(connection: sqlite3.Connection, tables: Iterable[str]) -> str:
    """Return a digest of twenty hex digits of the rows of these tables, independent of their order."""
    digest = hashlib.blake2b(digest_size=10)
    for table in tables:
        rows = sorted(repr(tuple(row)) for row in connection.execute(f'SELECT * FROM "{table}"'))
        digest.update(f"{table}\0{len(rows)}\0{SEPARATOR.join(rows)}\0".encode())
    return digest.hexdigest()
