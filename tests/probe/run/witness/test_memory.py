"""What an agent knows is reset, and never read."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores


def made(path: Path, copies: Path) -> tuple[Stores, Path]:
    stores = Stores.of([StoreSettings("memory", "memory", str(path), {"PLACE": "{store}"})], copies, 0.01)
    asyncio.run(stores.make())
    return stores, Path(stores.environment["PLACE"])


def test_a_memory_that_is_absent_at_first_is_absent_again_after_a_reset(tmp_path: Path) -> None:
    stores, copy = made(tmp_path / "checkpoints.db", tmp_path / "copies")
    first = asyncio.run(stores.reading())
    with closing(sqlite3.connect(copy)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (v)")
        assert len(list(copy.parent.iterdir())) > 1
        assert asyncio.run(stores.reading()) == first
    asyncio.run(stores.reset())
    assert not any(copy.parent.iterdir())
    asyncio.run(stores.remove())
    assert not any((tmp_path / "copies").iterdir())


def test_a_folder_of_memory_is_reset_to_what_it_held(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes").write_text("first")
    stores, copy = made(tmp_path / "home", tmp_path / "copies")
    (copy / "notes").write_text("changed")
    (copy / "more").touch()
    asyncio.run(stores.reset())
    assert [(path.name, path.read_text()) for path in copy.iterdir()] == [("notes", "first")]
    assert (tmp_path / "home" / "notes").read_text() == "first"
    asyncio.run(stores.remove())


def test_tables_and_columns_that_are_ignored_are_reset_and_not_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.executescript(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v, at); CREATE TABLE log_calls (v); CREATE TABLE made (at)"
        )
        database.execute("INSERT INTO t VALUES (1, 'a', 1)")
        database.commit()
    settings = StoreSettings("a", "sqlite", str(tmp_path / "a.db"), ignore=("log_*", "*.at"))
    stores = Stores.of([settings], tmp_path / "copies", 0.01)
    asyncio.run(stores.make())
    first, copy = asyncio.run(stores.reading()), stores.replaces[str(tmp_path / "a.db")]
    with closing(sqlite3.connect(copy)) as database:
        database.executescript("UPDATE t SET at = 2; INSERT INTO log_calls VALUES (1)")
    assert asyncio.run(stores.reading()) == first
    with closing(sqlite3.connect(copy)) as database:
        database.execute("UPDATE t SET v = 'b'")
        database.commit()
        database.execute("INSERT INTO made VALUES (1)")
        database.commit()
    made, row = asyncio.run(stores.reading()).differences
    assert (row.before, row.after) == ({"id": 1, "v": "a"}, {"id": 1, "v": "b"})
    assert (made.table, made.before, made.after) == ("made", None, {"(row)": 0})
    asyncio.run(stores.reset())
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT at, (SELECT count(*) FROM log_calls) FROM t").fetchall() == [(1, 0)]
    asyncio.run(stores.remove())


def test_a_file_that_stands_for_itself_is_a_store(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").write_text('{"name": "Ada"}')
    settings = StoreSettings("memory", "file", str(tmp_path / "memory.jsonl"))
    stores = Stores.of([settings], tmp_path / "copies", 0.01)
    asyncio.run(stores.make())
    copy = Path(stores.replaces[str(tmp_path / "memory.jsonl")])
    copy.write_text('{"name": "Ada"}\n{"name": "lamp"}')
    [row] = asyncio.run(stores.reading()).differences
    assert (row.store, row.table, row.before, row.after) == ("memory", "memory.jsonl", None, {"name": "lamp"})
    asyncio.run(stores.reset())
    assert copy.read_text() == '{"name": "Ada"}'
    asyncio.run(stores.remove())
