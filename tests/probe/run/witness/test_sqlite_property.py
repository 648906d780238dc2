"""Of random tables and random changes a SQLite store tells exactly what was done."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.sqlite import SqliteStore

VALUES = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0.0, 1.0, 1.5, -2.5, 1e300]),
    st.sampled_from(["", "a", "A", "1", "NaN", "(bytes) 00", "ключ\0x", "x" * 5000]),
    st.sampled_from([b"", b"a", b"\0\xff", b"x" * 5000]),
)
TABLES = {
    "keyed": "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b TEXT)",
    "autoincrement": "CREATE TABLE t (k INTEGER PRIMARY KEY AUTOINCREMENT, a, b TEXT)",
    "by text": "CREATE TABLE t (k PRIMARY KEY, a, b TEXT COLLATE NOCASE)",
    "without rowid": "CREATE TABLE t (k INTEGER, a, b TEXT, PRIMARY KEY (k)) WITHOUT ROWID",
    "by two": "CREATE TABLE t (k INTEGER NOT NULL, a, b TEXT, g AS (k + 1), PRIMARY KEY (k, k))",
    "without key": "CREATE TABLE t (k, a, b TEXT, rowid INTEGER)",
    "without key or numbers": "CREATE TABLE t (k, a, rowid, _rowid_, oid, b TEXT)",
}
KEYS = st.integers(0, 12)
CHANGES = st.one_of(
    st.tuples(st.just("INSERT OR REPLACE INTO t (k, a, b) VALUES (?, ?, ?)"), st.tuples(KEYS, VALUES, VALUES)),
    st.tuples(st.just("UPDATE t SET a = ? WHERE k = ?"), st.tuples(VALUES, KEYS)),
    st.tuples(st.just("UPDATE t SET a = a + 1 WHERE k = ?"), st.tuples(KEYS)),
    st.tuples(st.just("DELETE FROM t WHERE k = ?"), st.tuples(KEYS)),
    st.tuples(st.just("VACUUM"), st.just(())),
)
Rows = list[tuple[Any, ...]]


def rows_of(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as database:
        return [tuple((type(value).__name__, value) for value in row) for row in database.execute("SELECT k, a, b FROM t")]


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(TABLES)),
    wal=st.booleans(),
    first=st.lists(st.tuples(KEYS, VALUES, VALUES), max_size=8, unique_by=lambda row: row[0]),
    changes=st.lists(CHANGES, max_size=6),
)
def test_differences_are_exactly_what_was_done(
    kind: str, wal: bool, first: Rows, changes: list[tuple[str, tuple[Any, ...]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "s.db")
        with closing(sqlite3.connect(source, isolation_level=None)) as database:
            if wal:
                database.execute("PRAGMA journal_mode = WAL")
            database.execute(TABLES[kind])
            database.executemany("INSERT INTO t (k, a, b) VALUES (?, ?, ?)", first)
            store = SqliteStore("s", source, Path(folder, "copies"), Encoding(), {})
            store.make()  # a writer has it open
        copy, encoding = Path(store.replaces[str(source)]), Encoding()
        start = store.read(100)
        assert not start.differences
        before = rows_of(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            for statement, values in changes:
                database.execute(statement, values)
            reading = store.read(100)
        after = rows_of(copy)

        def shown(rows: Rows) -> Counter[str]:
            return Counter(repr(encoding.row(("k", "a", "b"), [value for _, value in row])) for row in rows)

        differences = [row for row in reading.differences if row.table == "t"]
        assert len({row.key for row in differences}) == len(differences)
        went = Counter(repr({name: row.before[name] for name in ("k", "a", "b")}) for row in differences if row.before)
        came = Counter(repr({name: row.after[name] for name in ("k", "a", "b")}) for row in differences if row.after)
        assert went == shown(before) - shown(after)
        assert came == shown(after) - shown(before)
        assert (reading.digest == start.digest) == (not reading.differences)
        store.reset()
        assert store.read(100) == start
        assert rows_of(copy) == before
        store.remove()


LARGE = {
    "by number": "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b TEXT)",
    "by text": "CREATE TABLE t (k TEXT PRIMARY KEY, a, b TEXT)",
    "without key": "CREATE TABLE t (k, a, b TEXT)",
    "without rowid": "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b TEXT) WITHOUT ROWID",
}


@pytest.mark.parametrize("vacuum", ["NONE", "FULL"])
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.endurance) for seed in (1, 2))])
def test_differences_in_a_table_of_many_pages_are_exactly_what_was_done(
    tmp_path: Path, kind: str, vacuum: str, seed: int
) -> None:
    choose = random.Random(seed)
    with closing(sqlite3.connect(tmp_path / "s.db")) as database, database:
        database.execute("PRAGMA page_size = 512")
        database.execute(f"PRAGMA auto_vacuum = {vacuum}")
        database.execute(LARGE[kind])
        database.execute("CREATE TABLE other (x)")
        rows = ((number, choose.random(), "x" * choose.randrange(200)) for number in range(3_000))
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    store = SqliteStore("s", tmp_path / "s.db", tmp_path / "copies", Encoding(), {})
    store.make()
    copy, steps = Path(store.replaces[str(tmp_path / "s.db")]), range(12)
    before = Counter(rows_of(copy))
    for _ in steps:
        with closing(sqlite3.connect(copy)) as database, database:
            low = choose.randrange(3_100)
            match choose.randrange(7):
                case 0:
                    database.execute("DELETE FROM t WHERE k BETWEEN ? AND ?", (low, low + choose.choice([0, 60, 900])))
                case 1:
                    database.execute("UPDATE t SET a = -a WHERE k = ?", (low,))
                case 2:
                    database.execute("UPDATE t SET b = ? WHERE k = ?", ("y" * choose.choice([10, 3_000]), low))
                case 3:
                    many = [(4_000 + choose.randrange(10**6), 1.0, "new") for _ in range(choose.choice([1, 300]))]
                    database.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", many)
                case 4:
                    database.execute("UPDATE OR REPLACE t SET k = k + 1 WHERE k = ?", (low,))
                case 5:
                    database.execute("INSERT INTO other VALUES (1)")
                case _:
                    database.execute("UPDATE t SET b = replace(b, 'y', 'z') WHERE length(b) > 1000")
        reading, after = store.read(10_000), Counter(rows_of(copy))
        differences = [row for row in reading.differences if row.table == "t"]
        went, came = (
            Counter(repr({name: row[name] for name in "kab"}) for row in side if row)
            for side in ([each.before for each in differences], [each.after for each in differences])
        )
        assert went == shown(before - after) and came == shown(after - before)
    store.remove()


def shown(rows: Counter[tuple[Any, ...]]) -> Counter[str]:
    return Counter({repr(Encoding().row(("k", "a", "b"), [value for _, value in row])): count for row, count in rows.items()})
