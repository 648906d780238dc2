"""All stores of a worker together: settled readings, removal, what killed probes left."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.witness.folder import FolderStore
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.sqlite import SqliteStore
from bench.probe.run.witness.stores import Stores
from bench.record.probe_rows import StoreReading

SETTLE = 0.01


def settings(folder: Path) -> list[StoreSettings]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "a").write_text("a")
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v); INSERT INTO t (v) VALUES (1)")
    return [
        StoreSettings("shop", "sqlite", str(folder / "shop.db"), {"DB": "sqlite:///{store}"}),
        StoreSettings("files", "folder", str(folder / "files"), {"FILES": "{store}"}),
    ]


def test_a_reading_holds_the_differences_of_all_stores(tmp_path: Path) -> None:
    stores = Stores.of(settings(tmp_path), tmp_path / "copies", SETTLE)
    asyncio.run(stores.make())
    first = asyncio.run(stores.reading())
    assert not first.differences
    Path(stores.environment["FILES"], "b").touch()
    with closing(sqlite3.connect(stores.replaces[str(tmp_path / "shop.db")])) as database:
        database.execute("DELETE FROM t")
        database.commit()
    changed = asyncio.run(stores.reading())
    assert [(row.store, row.table, row.key) for row in changed.differences] == [("shop", "t", "[1]"), ("files", "", "b")]
    asyncio.run(stores.reset())
    assert asyncio.run(stores.reading()) == first
    asyncio.run(stores.remove())
    asyncio.run(stores.remove())
    assert not any((tmp_path / "copies").iterdir())


def noting(
    snapshot: Callable[[Any, int], Callable[[], StoreReading]], names: list[str]
) -> Callable[[Any, int], Callable[[], StoreReading]]:
    """Return a snapshot that notes the name of the store."""

    def noted(store: SqliteStore | FolderStore, most: int) -> Callable[[], StoreReading]:
        names.append(store.name)
        return snapshot(store, most)

    return noted


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL"])
def test_a_store_is_read_again_once_something_was_written_and_only_then(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = Stores.of(settings(tmp_path), tmp_path / "copies", SETTLE)
    asyncio.run(stores.make())
    read = list[str]()
    for kind in (SqliteStore, FolderStore):
        monkeypatch.setattr(kind, "snapshot", noting(kind.snapshot, read))
    with closing(sqlite3.connect(stores.replaces[str(tmp_path / "shop.db")], isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        rows = database.execute("SELECT count(*) FROM t").fetchone()[0]
        for _ in range(3):
            asyncio.run(stores.read())
        read.clear()
        for number in range(1, 20):
            database.execute("INSERT INTO t (v) VALUES (2)")
            assert len(asyncio.run(stores.read()).differences) == number
            assert len(asyncio.run(stores.read()).differences) == number
        assert read == ["shop"] * 19
        assert rows + 19 == database.execute("SELECT count(*) FROM t").fetchone()[0]
    asyncio.run(stores.remove())


def test_what_is_written_after_a_snapshot_is_not_in_its_reading(tmp_path: Path) -> None:
    async def read() -> tuple[int, int]:
        end = await stores.snapshot()
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("PRAGMA busy_timeout = 0")
            other.execute("DELETE FROM t")
        return len((await end()).differences), len((await stores.read()).differences)

    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.execute("PRAGMA journal_mode = WAL")
    stores = Stores.of(settings(tmp_path)[:1], tmp_path / "copies", SETTLE)
    asyncio.run(stores.make())
    database = stores.replaces[str(tmp_path / "shop.db")]
    with closing(sqlite3.connect(database)) as made:
        made.execute("PRAGMA journal_mode = WAL")
    assert asyncio.run(read()) == (0, 1)
    asyncio.run(stores.remove())


def test_two_workers_have_copies_of_their_own_and_one_digest(tmp_path: Path) -> None:
    workers = [
        Stores.of(settings(tmp_path), tmp_path / "copies", SETTLE),
        Stores.of(settings(tmp_path), tmp_path / "more", SETTLE),
    ]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("DELETE FROM t WHERE id > 1")
        database.commit()
    for stores in workers:
        asyncio.run(stores.make())
    assert not {*workers[0].replaces.values()} & {*workers[1].replaces.values()}
    first, second = (asyncio.run(stores.reading()) for stores in workers)
    assert first == second
    for stores in workers:
        asyncio.run(stores.remove())


def test_a_store_that_is_written_to_without_end_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = Stores.of(settings(tmp_path), tmp_path / "copies", SETTLE)
    asyncio.run(stores.make())
    log, read = Path(stores.environment["FILES"], "log"), stores.read

    def write() -> None:
        with log.open("a") as file:
            file.write("x")

    async def written_before_each_reading() -> StoreReading:
        write()
        return await read()

    monkeypatch.setattr(stores, "read", written_before_each_reading)
    with pytest.raises(ConfigError, match=r"^stores shop, files: they still changed after \d+ s; end what writes to them"):
        asyncio.run(stores.reading())
    asyncio.run(stores.remove())


def test_if_one_store_cannot_be_copied_nothing_is_left(tmp_path: Path) -> None:
    no_store = StoreSettings("none", "sqlite", str(tmp_path / "none.db"))
    stores = Stores.of([*settings(tmp_path), no_store], tmp_path / "copies", SETTLE)
    with pytest.raises(ConfigError, match=r"^store 'none': .*none.db is no file$"):
        asyncio.run(stores.make())
    assert not any((tmp_path / "copies").iterdir())
