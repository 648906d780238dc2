"""The file of an execution state: one SQLite file. Each write is one transaction, and a second process waits for the first.

A file that came with a repository of somebody else's is read only if a release of ours could have written it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from bench.common.files import opened
from bench_code.git import CodeError

FORMAT = 1
WAIT = 30.0
"""Seconds for which a process waits while another process writes."""
PAUSE = 0.01
"""Seconds between two attempts to open a file that another process is creating."""
SCHEMA = """
CREATE TABLE steps(id INTEGER PRIMARY KEY, at REAL NOT NULL, tree TEXT NOT NULL, kind TEXT NOT NULL, note TEXT NOT NULL);
CREATE TABLE versions(artifact TEXT NOT NULL, kind TEXT NOT NULL, digest TEXT NOT NULL, step INTEGER NOT NULL, patch INTEGER);
CREATE INDEX versions_of ON versions(artifact, step);
CREATE TABLE patches(id INTEGER PRIMARY KEY, at REAL NOT NULL, base TEXT NOT NULL, status TEXT NOT NULL, edits TEXT NOT NULL,
  action TEXT NOT NULL, call TEXT NOT NULL, person TEXT NOT NULL);
CREATE TABLE executions(id INTEGER PRIMARY KEY, step INTEGER NOT NULL, at REAL NOT NULL, layout TEXT NOT NULL,
  place INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, outcome TEXT NOT NULL, detail TEXT NOT NULL,
  seconds REAL NOT NULL, volatile TEXT NOT NULL);
CREATE INDEX executions_of ON executions(name, kind);
CREATE TABLE facts(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
  UNIQUE(kind, name, value));
CREATE TABLE records(id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE record_facts(record INTEGER NOT NULL, fact INTEGER NOT NULL, PRIMARY KEY(fact, record)) WITHOUT ROWID;
CREATE TABLE depends(execution INTEGER NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(record, execution)) WITHOUT ROWID;
CREATE INDEX depends_of ON depends(execution);
CREATE TABLE artifacts(portfolio TEXT NOT NULL, artifact TEXT NOT NULL, needs TEXT NOT NULL, PRIMARY KEY(portfolio, artifact));
"""
ADDED = (
    "CREATE INDEX IF NOT EXISTS facts_in ON record_facts(record)",
    "CREATE TABLE IF NOT EXISTS modules(source TEXT PRIMARY KEY, parsed TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS worktrees(folder TEXT PRIMARY KEY, patched TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS made_in(step INTEGER PRIMARY KEY, folder TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS leftovers(name TEXT PRIMARY KEY, file TEXT NOT NULL, value TEXT NOT NULL)",
)
"""Statements that add the tables and indexes which the first states of this format lacked."""
FORMER = frozenset(
    {
        "CREATE TABLE messages(execution INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        "CREATE TABLE ordered(name TEXT PRIMARY KEY)",
        "CREATE TABLE surfaces(skeleton TEXT PRIMARY KEY, statements TEXT NOT NULL)",
        "CREATE TABLE mentions(body TEXT PRIMARY KEY, names TEXT NOT NULL)",
        "CREATE TABLE unread(source TEXT PRIMARY KEY, skeleton TEXT NOT NULL, text BLOB NOT NULL)",
        "CREATE INDEX unread_of ON unread(skeleton)",
    }
)
"""What states of earlier releases have besides. Nobody reads it."""
ONLY_NUMBERS = ("record_facts", "depends")
"""The tables whose values only number rows of others. They are the largest, so their types are not looked at."""
LATEST = 1e11
"""The latest time that a state can hold, in seconds since 1970; a later time has no date."""
LOCK = "lock"
NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names a further file, which SQLite deletes after it has read the journal."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""What SQLite says of the file itself. All else, such as a full disk, leaves the state as it was."""


class StateFile:
    """The file that holds a repository's execution state, opened."""

    def __init__(self, path: Path):
        self.path = path
        self._refuse_links()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open(path)
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def _refuse_links(self) -> None:
        """Refuse files of a state that lead elsewhere. A repository that came as an archive can hold any."""
        folder, journal = self.path.parent, self.path.with_name(f"{self.path.name}-journal")
        files = (self.path, journal, *(self.path.with_name(name) for name in ("state.db-wal", "state.db-shm", LOCK)))
        for path in filter(os.path.lexists, (folder, *files)):
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) if path == folder else stat.S_ISREG(mode)):
                raise CodeError(f"{path} is a link, or of another kind than a state's; remove it, and the state begins anew")
        with suppress(OSError), opened(journal) as file:
            file.seek(-len(NAMES_A_FILE), os.SEEK_END)
            if file.read() == NAMES_A_FILE:
                raise CodeError(f"{journal} names a file for SQLite to delete, and no state's journal does; remove it")

    def _open(self, path: Path) -> None:
        self.db = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        weakref.finalize(self, self.db.close)
        self._write_ahead()
        self.db.execute("PRAGMA synchronous=NORMAL")
        definitions, foreign_rows = _schema()
        with self.writing():
            for name, definition in self.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
                if definition not in definitions | FORMER:
                    raise self.damaged(f"it holds '{name}', which no release makes")
            [format_] = self.rows("PRAGMA user_version")[0]
            if format_ == 0:
                for statement in SCHEMA.split(";"):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version={FORMAT}")
            for statement in ADDED if format_ in (0, FORMAT) else ():
                self.db.execute(statement)
        if format_ not in (0, FORMAT):
            raise CodeError(
                f"{path} has format {format_}, and this release reads {FORMAT}; rename it, and the state begins anew"
            )
        for table, condition in foreign_rows.items():
            if self.rows(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1"):
                raise self.damaged(f"its table '{table}' holds a value that no release writes")

    def damaged(self, why: str) -> CodeError:
        """Return the error on a state that no release wrote, or that was damaged."""
        return CodeError(f"{self.path} cannot be read: {why}; rename it, and the state begins anew")

    def _problem(self, error: sqlite3.Error) -> CodeError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return CodeError(f"{self.path} is in use by another process for over {WAIT:.0f} s ({error}); try again")
        if code in DAMAGED:
            return self.damaged(str(error))
        todo = "make room for it, or allow to write it, and run the same command again"
        return CodeError(f"{self.path} cannot be written: {error}; what it holds is whole, so keep it; {todo}")

    def _write_ahead(self) -> None:
        """Switch the file to a write-ahead log, and try again while another process does so: SQLite does not wait for that."""
        until = time.monotonic() + WAIT
        while True:
            try:
                self.db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(PAUSE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all that the block writes, or nothing, as one transaction, which blocks within it share."""
        if self.db.in_transaction:
            yield
            return
        try:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._problem(error) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process change a patch during the block. It waits for a process that does."""
        file = os.open(self.path.with_name(LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return the rows that a query selects. Raises CodeError if the file cannot be read."""
        try:
            return self.db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def parsed(self, text: str, shape: object) -> Any:
        """Return what a text of JSON in the state holds. Raises CodeError if it has another shape than this release writes."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"a text in it is no JSON ({error})") from None
        if not _has_shape(value, shape):
            raise self.damaged("a text in it holds other values than a release writes")
        return value


@cache
def _schema() -> tuple[frozenset[str], Mapping[str, str]]:
    """Return the definitions of all that a state has, and for each table a condition that no row of ours meets."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(";".join((SCHEMA, *ADDED)))
        made = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        conditions = {}
        for table in (name for kind, name, _ in made if kind == "table" and name not in ONLY_NUMBERS):
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            typed = [
                f"typeof({name}) NOT IN ('{type_.lower()}', '{type_.lower() if required or key else 'null'}')"
                for _, name, type_, required, _, key in columns
            ]
            late = [f"{name} NOT BETWEEN 0 AND {LATEST}" for _, name, *_ in columns if name == "at"]
            conditions[table] = " OR ".join((*typed, *late))
    return frozenset(definition for _, _, definition in made), conditions


def _has_shape(value: object, shape: object) -> bool:
    """Return whether a value of JSON has a shape: a type, `[shape]` for a list of any length, a tuple for a list of its length,
    `{key: shape}` for a table with these keys, or `{str: shape}` for a table with any keys."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(each, shape[0]) for each in value)
    if isinstance(shape, tuple):
        return isinstance(value, list) and len(value) == len(shape) and all(map(_has_shape, value, shape))
    if isinstance(shape, dict):
        shapes = dict.fromkeys(value, shape[str]) if str in shape and isinstance(value, dict) else shape
        return isinstance(value, dict) and value.keys() == shapes.keys() and all(_has_shape(value[k], shapes[k]) for k in value)
    return type(value) is shape
