"""All stores of a worker together: settled readings, removal, what killed probes left."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.witness.stores import Stores, StoreSettings

SETTLE = 0.01


def settings(folder: Path, in_place: bool = False) -> list[StoreSettings]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "a").write_text("a")
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v); INSERT INTO t (v) VALUES (1)")
    return [
        StoreSettings("shop", "sqlite", str(folder / "shop.db"), {"DB": "sqlite:///{store}"}, in_place),
        StoreSettings("files", "folder", str(folder / "files"), {"FILES": "{store}"}, in_place),
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


def test_a_store_that_is_written_to_without_end_is_one_line(tmp_path: Path) -> None:
    stores = Stores.of(settings(tmp_path), tmp_path / "copies", SETTLE)
    asyncio.run(stores.make())
    path = Path(stores.environment["FILES"], "log")
    code = f"import pathlib, time\nwhile True:\n    pathlib.Path({str(path)!r}).open('a').write('x'); time.sleep(0.001)"
    with subprocess.Popen([sys.executable, "-c", code]) as writer:
        try:
            while not path.exists():
                time.sleep(0.01)
            with pytest.raises(
                ConfigError, match=r"^stores shop, files: they still changed after \d+ s; end what writes to them"
            ):
                asyncio.run(stores.reading())
        finally:
            writer.kill()
    asyncio.run(stores.remove())


def test_if_one_store_cannot_be_copied_nothing_is_left(tmp_path: Path) -> None:
    no_store = StoreSettings("none", "sqlite", str(tmp_path / "none.db"))
    stores = Stores.of([*settings(tmp_path), no_store], tmp_path / "copies", SETTLE)
    with pytest.raises(ConfigError, match=r"^store 'none': .*none.db is no file$"):
        asyncio.run(stores.make())
    assert not any((tmp_path / "copies").iterdir())
