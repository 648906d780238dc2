"""An SQLite database as a store. It is copied by SQLite's backup API, which waits for writers and reads their journals."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from bench.common.digests import digest_of
from bench.common.errors import ConfigError
from bench.common.paths import expanded_path
from bench.probe.run.witness.ignored import NOTHING, Ignored
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.path_store import PathStore
from bench.probe.run.witness.rows import Encoding, RowPair, StoredRow, sql_name
from bench.probe.run.witness.sqlite_pages import pages_of, touched_rows
from bench.probe.run.witness.sqlite_tables import SqliteComparison, tables_of
from bench.record.probe_rows import RowDifference, StoreReading

LOCK_TIMEOUT_S = 10.0
"""How long a lock of another process is waited for."""
_MIN_VERSION = (3, 37, 0)
JOURNAL_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of the further files of a database."""
_HEADER_BYTES = {"-wal": 32, "-shm": 48}
"""The size of the header of a WAL and of its index. The header of a database has 100 bytes."""
_DIGEST_MODULUS = 2**128


class SqliteStore(PathStore):
    """An SQLite database that the owner named. `ignores` returns whether a table, or a column as TABLE.COLUMN, is not read."""

    kind = "sqlite"

    def __init__(
        self, name: str, path: Path, folder: Path, encoding: Encoding, variables: Mapping[str, str], ignores: Ignored = NOTHING
    ) -> None:
        super().__init__(name, path, folder, variables)
        self._encoding, self._ignores = encoding, ignores
        self._totals: dict[str, int] = {}
        self._pages: dict[int, str] = {}

    def _check(self, path: Path) -> None:
        """Raise ConfigError if this Python's SQLite is too old, or there is no file."""
        if sqlite3.sqlite_version_info < _MIN_VERSION:
            raise ConfigError(f"this Python has SQLite {sqlite3.sqlite_version}; a probe of SQLite needs 3.37 or later")
        if not path.is_file():
            raise ConfigError(f"store {self.name!r}: {self._path} is no file")

    def _copy_first_state(self, path: Path) -> None:
        """Save the first state, the digest of each table and the table of each page, and make the copy."""
        with closing(opened_database(path, "ro")) as source, closing(opened_database(self._first, "rwc")) as first:
            _back_up(source, first)
        shutil.copymode(path, self._first)
        self._totals = self._totals_of(self._first)
        with closing(opened_database(self._first, "ro", immutable=True)) as first:
            self._pages = pages_of(first)
        if not self._box:
            self._copy.parent.mkdir()
            self.reset()

    def reset(self) -> None:
        """Reset the copy to its first state."""
        with self._errors_in_one_line("cannot be reset"):
            _replace(self._first, self._copy)

    def read(self, most: int) -> StoreReading:
        """Return the digest of the content, and the rows that differ from the first state, at most `most`."""
        return self.snapshot(most)()

    def stamp(self) -> tuple[object, ...]:
        """Return a value that each transaction changes: the headers, sizes and times of the database and its journals."""
        with self._errors_in_one_line("cannot be read"):
            return tuple(_header_stamp(self._copy, suffix) for suffix in ("", *JOURNAL_SUFFIXES))

    def snapshot(self, most: int) -> Callable[[], StoreReading]:
        """Begin a transaction, and return the function that reads in it. Until then a writer without a WAL has to wait."""
        with self._errors_in_one_line("cannot be read"):
            database = opened_database(self._copy, "rw", is_shared=True)
            try:
                database.execute("ATTACH ? AS first", (f"{self._first.as_uri()}?mode=ro&immutable=1",))
                database.execute("BEGIN")
                database.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
            except BaseException:
                database.close()
                raise

        def read() -> StoreReading:
            with self._errors_in_one_line("cannot be read"), closing(database):
                return self._reading(database, most)

        return read

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows of an owner's query on the copy, which it cannot change."""
        with (
            self._errors_in_one_line("did not answer the query of a check"),
            closing(opened_database(self._copy, "rw")) as database,
        ):
            database.execute("PRAGMA query_only = ON")
            return database.execute(sql).fetchall()

    def change(self, sql: str) -> None:
        """Execute another writer's statement on the copy."""
        with self._errors_in_one_line("could not be changed meanwhile"), closing(opened_database(self._copy, "rw")) as database:
            database.execute(sql)

    def _totals_of(self, path: Path) -> dict[str, int]:
        """Return the digest of each table, as an integer."""
        totals = {}
        with closing(opened_database(path, "ro", immutable=True)) as database:
            for table in tables_of(database, "main", self._ignores).values():
                columns = ", ".join(map(sql_name, table.columns))
                rows = database.execute(f"SELECT {columns} FROM {table.within('main')}")
                totals[table.name] = sum(self._encoding.weight((table.name, row)) for row in rows) % _DIGEST_MODULUS
        return totals

    def _reading(self, database: sqlite3.Connection, most: int) -> StoreReading:
        """Return the reading of the copy in the open transaction of `database`, with at most `most` differing rows."""
        before, current = tables_of(database, "first", self._ignores), tables_of(database, "main", self._ignores)
        touched_numbers = touched_rows(database, self._copy, self._first, self._pages)
        totals, differences, count = dict(self._totals), list[RowDifference](), 0
        # a table of which no row is on a changed page (an empty set) has the same rows
        for name in sorted({*before, *current}.difference(name for name, rows in touched_numbers.items() if not rows)):
            comparison = SqliteComparison(database, before.get(name), current.get(name), touched_numbers.get(name))
            total, counts = totals.get(name, 0), Counter[str]()
            for pair in self._changes(comparison):
                total += self._weight(name, comparison, pair[1]) - self._weight(name, comparison, pair[0])
                count += 1
                if count <= most:
                    row = self._encoding.difference(self.name, name, comparison.key, comparison.columns, pair, counts)
                    differences.append(row)
            totals[name] = total % _DIGEST_MODULUS
        digest = self._encoding.digest(repr(sorted(item for item in totals.items() if item[1])).encode("utf-8", "replace"))
        return StoreReading(digest, tuple(sorted(differences, key=lambda row: (row.table, row.key))), max(0, count - most))

    def _changes(self, comparison: SqliteComparison) -> Iterator[RowPair]:
        """Yield the rows that differ. In a table without a key, rows that differ only in their row numbers are left out."""
        if comparison.key:
            yield from comparison.pairs()
            return
        weight_surplus = Counter[int]()  # weight of a row -> how many more such rows there are now than in the first state
        for old, new in comparison.pairs():
            if old is not None:
                weight_surplus[self._encoding.weight(old)] -= 1
            if new is not None:
                weight_surplus[self._encoding.weight(new)] += 1
        for old, new in comparison.pairs():
            removed, added = self._take_surplus(weight_surplus, old, -1), self._take_surplus(weight_surplus, new, 1)
            if removed is not None or added is not None:
                yield removed, added

    def _take_surplus(self, weight_surplus: Counter[int], row: StoredRow | None, sign: int) -> StoredRow | None:
        """Return the row if the state of this sign still has more equal rows than the other state, and count it; otherwise
        None."""
        if row is None or weight_surplus[weight := self._encoding.weight(row)] * sign <= 0:
            return None
        weight_surplus[weight] -= sign
        return row

    def _weight(self, table: str, comparison: SqliteComparison, row: StoredRow | None) -> int:
        """Return the weight of a row in the table's digest; 0 for no row."""
        if row is None:
            return 0
        width = comparison.width  # of new columns only values other than NULL count: a new column alone changes no row
        new_columns = (item for item in zip(comparison.columns[width:], row[width:], strict=True) if item[1] is not None)
        return self._encoding.weight((table, (*row[:width], *new_columns)))


def opened_database(path: Path, mode: str, *, immutable: bool = False, is_shared: bool = False) -> sqlite3.Connection:
    """Return a database, open for reading ("ro"), for writing ("rw"), or created if it is missing ("rwc").

    A text that is not UTF-8 keeps its bytes. `immutable`: nobody writes to the file, and no journal is made. `is_shared`:
    another thread may use the connection."""
    address = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}"
    database = sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=not is_shared)
    database.text_factory = _text
    return database


def _header_stamp(path: Path, suffix: str) -> tuple[object, ...] | None:
    """Return a value that differs after a transaction that wrote to this file of a database; None if there is no file. Of a
    WAL's index only the first copy of the header counts, since readers write after it, and a memory mapping has no exact
    times."""
    with suppress(FileNotFoundError):
        file = os.open(path.with_name(path.name + suffix), os.O_RDONLY)
        try:
            item, header = os.fstat(file), os.read(file, _HEADER_BYTES.get(suffix, 100))
        finally:
            os.close(file)
        return (item.st_ino, header) if suffix == "-shm" else (item.st_ino, item.st_size, item.st_mtime_ns, header)
    return None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def restore(backup: Path, path: Path) -> None:
    """Write a backup into a database in one transaction: if the process is killed, the former content remains.

    A file that is no longer a database is replaced.
    """
    try:
        with closing(opened_database(backup, "ro", immutable=True)) as source, closing(opened_database(path, "rwc")) as target:
            target.execute("PRAGMA journal_mode = DELETE")
            _back_up(source, target)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        _replace(backup, path)
    shutil.copymode(backup, path)


def _replace(backup: Path, path: Path) -> None:
    """Replace a database by a backup, and remove its journals."""
    partial_file = path.with_name(f"{path.name}.{digest_of(str(path))}.half")
    shutil.copy(backup, partial_file)
    for suffix in JOURNAL_SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    partial_file.replace(path)


def _back_up(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy a database. Raises sqlite3.OperationalError if it stays locked."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S

    def wait(status: int, _remaining: int, _pages: int) -> None:
        """Raise an error if the database stays locked; called by SQLite between two attempts."""
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise sqlite3.OperationalError(f"another process has kept it locked for {LOCK_TIMEOUT_S:g} seconds")

    source.backup(target, pages=-1, progress=wait, sleep=0.05)


def _make_store(store: StoreSettings, folder: Path, encoding: Encoding) -> SqliteStore:
    path, ignores = expanded_path(store.where), Ignored(store.ignore)
    return SqliteStore(store.name, path, folder, encoding, store.variables, ignores)


KIND = StoreKind("sqlite", _make_store, frozenset(("ignore",)), must_be="file", takes_sql=True)
