"""A SQLite database as a store. SQLite's backup copies it: that waits for writers, and reads their journals."""

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

PATIENCE = 10.0
"""Seconds for which a lock of somebody else is waited for."""
_OLDEST = (3, 37, 0)
BESIDE = ("-wal", "-shm", "-journal")
"""Ends of the files that a database has beside it."""
_HEADS = {"-wal": 32, "-shm": 48}
"""Bytes of the headers of a WAL and of its index. The header of a database has 100."""
_ALL = 2**128


class SqliteStore(PathStore):
    """A SQLite database that the owner named. `ignores`: whether a table, or a column, is not read."""

    kind = "sqlite"

    def __init__(
        self,
        name: str,
        path: Path,
        folder: Path,
        encoding: Encoding,
        variables: Mapping[str, str],
        ignores: Ignored = NOTHING,
    ) -> None:
        super().__init__(name, path, folder, variables)
        self._encoding, self._ignores = encoding, ignores
        self._totals: dict[str, int] = {}
        self._pages: dict[int, str] = {}

    def _check(self, path: Path) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise ConfigError(f"this Python has SQLite {sqlite3.sqlite_version}; a probe of SQLite needs 3.37 or later")
        if not path.is_file():
            raise ConfigError(f"store {self.name!r}: {self._path} is no file")

    def _begin(self, path: Path) -> None:
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
        """Bring the copy back to its first state."""
        with self._one_line("cannot be reset"):
            _replace(self._first, self._copy)

    def read(self, most: int) -> StoreReading:
        """Return the digest of its content, and the rows that differ from the first state, at most `most`."""
        return self.snapshot(most)()

    def stamp(self) -> tuple[object, ...]:
        """Return what each transaction changes: a counter in the file, or the journal and its index."""
        with self._one_line("cannot be read"):
            return tuple(_head(self._copy.with_name(self._copy.name + end), end) for end in ("", *BESIDE))

    def snapshot(self, most: int) -> Callable[[], StoreReading]:
        """Begin a transaction, and return the function that reads in it. Until then a writer without a WAL has to wait."""
        with self._one_line("cannot be read"):
            database = opened_database(self._copy, "rw", check_same_thread=False)
            try:
                database.execute("ATTACH ? AS first", (f"{self._first.as_uri()}?mode=ro&immutable=1",))
                database.execute("BEGIN")
                database.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
            except BaseException:
                database.close()
                raise

        def read() -> StoreReading:
            with self._one_line("cannot be read"), closing(database):
                return self._reading(database, most)

        return read

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows that a query of the owner's answers on the copy, which it cannot change."""
        with self._one_line("did not answer the query of a check"), closing(opened_database(self._copy, "rw")) as database:
            database.execute("PRAGMA query_only = ON")
            return database.execute(sql).fetchall()

    def change(self, sql: str) -> None:
        """Change the copy by one statement, as another writer does."""
        with self._one_line("could not be changed meanwhile"), closing(opened_database(self._copy, "rw")) as database:
            database.execute(sql)

    def _totals_of(self, path: Path) -> dict[str, int]:
        """Return the digest of each table."""
        totals = {}
        with closing(opened_database(path, "ro", immutable=True)) as database:
            for table in tables_of(database, "main", self._ignores).values():
                columns = ", ".join(map(sql_name, table.columns))
                rows = database.execute(f"SELECT {columns} FROM {table.within('main')}")
                totals[table.name] = sum(self._encoding.weight((table.name, row)) for row in rows) % _ALL
        return totals

    def _reading(self, database: sqlite3.Connection, most: int) -> StoreReading:
        before, now = tables_of(database, "first", self._ignores), tables_of(database, "main", self._ignores)
        touched = touched_rows(database, self._copy, self._first, self._pages)
        totals, differences, count = dict(self._totals), list[RowDifference](), 0
        for name in sorted({*before, *now}.difference(name for name, rows in touched.items() if not rows)):
            comparison = SqliteComparison(database, before.get(name), now.get(name), touched.get(name))
            total, alike = totals.get(name, 0), Counter[str]()
            for pair in self._changes(comparison):
                total += self._weight(name, comparison, pair[1]) - self._weight(name, comparison, pair[0])
                count += 1
                if count <= most:
                    row = self._encoding.difference(self.name, name, comparison.key, comparison.columns, pair, alike)
                    differences.append(row)
            totals[name] = total % _ALL
        digest = self._encoding.digest(repr(sorted(item for item in totals.items() if item[1])).encode("utf-8", "replace"))
        return StoreReading(digest, tuple(sorted(differences, key=lambda row: (row.table, row.key))), max(0, count - most))

    def _changes(self, comparison: SqliteComparison) -> Iterator[RowPair]:
        """Yield the rows that differ. Where there is no key, rows whose numbers alone changed do not."""
        if comparison.key:
            yield from comparison.pairs()
            return
        surplus = Counter[int]()
        for old, new in comparison.pairs():
            if old is not None:
                surplus[self._encoding.weight(old)] -= 1
            if new is not None:
                surplus[self._encoding.weight(new)] += 1
        for old, new in comparison.pairs():
            went, came = self._take(surplus, old, -1), self._take(surplus, new, 1)
            if went is not None or came is not None:
                yield went, came

    def _take(self, surplus: Counter[int], row: StoredRow | None, sign: int) -> StoredRow | None:
        """Return the row if there are still more such rows in one of both states than in the other, and count it."""
        if row is None or surplus[weight := self._encoding.weight(row)] * sign <= 0:
            return None
        surplus[weight] -= sign
        return row

    def _weight(self, table: str, comparison: SqliteComparison, row: StoredRow | None) -> int:
        if row is None:
            return 0
        width = comparison.width  # values of later columns follow, but for NULL: a new column alone changes no row
        later = (item for item in zip(comparison.columns[width:], row[width:], strict=True) if item[1] is not None)
        return self._encoding.weight((table, (*row[:width], *later)))


def opened_database(path: Path, mode: str, *, immutable: bool = False, check_same_thread: bool = True) -> sqlite3.Connection:
    """Return a database, open for reading ("ro"), for writing ("rw"), or made if it is missing ("rwc").

    A text that is not UTF-8 keeps its bytes. `immutable`: nobody writes to it, and no file is made beside it.
    """
    place = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}"
    database = sqlite3.connect(place, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=check_same_thread)
    database.text_factory = _text
    return database


def _head(path: Path, end: str) -> tuple[object, ...] | None:
    """Return what tells of a transaction in a file of a database. Of a WAL's index, that is the first copy of its header:
    readers write behind it, and its times are those of a mapping."""
    with suppress(FileNotFoundError):
        file = os.open(path, os.O_RDONLY)
        try:
            item, head = os.fstat(file), os.read(file, _HEADS.get(end, 100))
        finally:
            os.close(file)
        return (item.st_ino, head) if end == "-shm" else (item.st_ino, item.st_size, item.st_mtime_ns, head)
    return None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def restore(backup: Path, path: Path) -> None:
    """Write a backup into a database, in one transaction: whoever is killed in it leaves what was there before.

    A file that is no database any more is replaced.
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
    half = path.with_name(f"{path.name}.{digest_of(str(path))}.half")
    shutil.copy(backup, half)
    for end in BESIDE:
        path.with_name(path.name + end).unlink(missing_ok=True)
    half.replace(path)


def _back_up(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    end = time.monotonic() + PATIENCE

    def wait(status: int, _remaining: int, _pages: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > end:
            raise sqlite3.OperationalError(f"another process has kept it locked for {PATIENCE:g} seconds")

    source.backup(target, pages=-1, progress=wait, sleep=0.05)


def _of(store: StoreSettings, folder: Path, encoding: Encoding) -> SqliteStore:
    where, ignores = expanded_path(store.where), Ignored(store.ignore)
    return SqliteStore(store.name, where, folder, encoding, store.variables, ignores)


KIND = StoreKind("sqlite", _of, frozenset(("ignore",)), must_be="file", takes_sql=True)
