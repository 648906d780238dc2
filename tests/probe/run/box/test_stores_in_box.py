"""Stores whose copies stand in a box: the agent finds them at its own paths, the witness reads them there, the owner's stay."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.box.box import Box, box_plan
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores
from bench.record.probe_rows import StoreReading
from bench.wire.agent_process import AgentProcess, ProcessExit


class World:
    """A folder with one store of each kind, in a box."""

    def __init__(self, base: Path) -> None:
        self.folder, work = base / "agent", base / "work"
        for made in (self.folder / "notes" / "deep", work / "layers", work / "gateway"):
            made.mkdir(parents=True)
        with closing(sqlite3.connect(self.folder / "bank.db")) as database:
            database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE paid (cents INTEGER); INSERT INTO paid VALUES (1)")
        (self.folder / "notes" / "deep" / "one.txt").write_text("one")
        (self.folder / "notes" / "two.txt").write_text("two")
        (self.folder / "list.json").write_text('[{"id": 1}]')
        (self.folder / "beside.txt").write_text("of the owner")
        kinds = {"sqlite": "bank.db", "folder": "notes", "file": "list.json", "memory": "session"}
        settings = [StoreSettings(kind, kind, str(self.folder / place)) for kind, place in kinds.items()]
        self.stores = Stores.of(settings, work, 0.01, boxed=True)
        self.environment = {**os.environ, "HOME": str(self.folder), "AGENT_FOLDER": str(work)}
        self.before = self.originals()
        asyncio.run(self.stores.make())
        owners, places = zip(*self.stores.places, strict=True)
        plan = box_plan(self.folder, work / "layers", work / "gateway", owners, [[sys.executable]], places, self.environment)
        self.box = Box(plan)
        self.box.open()
        self.stores.enter_box(self.box)

    def originals(self) -> dict[str, bytes]:
        """Return all files, but for the journals that whoever reads a database in WAL mode makes."""
        paths = (path for path in self.folder.rglob("*") if not path.name.endswith(("-wal", "-shm")))
        return {str(path): path.read_bytes() for path in paths if path.is_file()}

    async def run(self, code: str) -> None:
        process = self.started(code)
        ended = await process.ended
        await process.close()
        assert ended == ProcessExit(code=0), process.output.text

    def started(self, code: str) -> AgentProcess:
        words = [sys.executable, "-c", f"import os, sqlite3, time; {code}"]
        return AgentProcess(words, self.folder, self.environment, 2**30, namespaces=self.box.namespaces)

    async def reading(self) -> StoreReading:
        self.stores.recheck()
        return await self.stores.read()

    async def end(self) -> None:
        await self.stores.remove()
        self.box.close()


def in_a_world(base: Path, work: Any) -> None:
    async def whole(world: World) -> None:
        try:
            await work(world)
            await world.stores.check_originals("now", surely=True)
        finally:
            await world.end()
        assert world.originals() == world.before

    try:
        world = World(base)
    except ConfigError as error:
        pytest.skip(f"there is no box here: {error}")
    asyncio.run(whole(world))


def changed(reading: StoreReading) -> set[tuple[str, str]]:
    return {(row.store, row.table or row.key) for row in reading.differences}


def test_each_kind_of_store_is_read_and_reset_where_the_agent_finds_it(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.stores.reset()
        first = await world.reading()
        for _ in range(2):
            await world.run(
                "d = sqlite3.connect('bank.db'); d.execute('INSERT INTO paid VALUES (2)'); d.commit();"
                "open('notes/two.txt', 'a').write('!'); os.remove('notes/deep/one.txt');"
                "open('new', 'w').write('[{\"id\": 1}, {\"id\": 2}]'); os.replace('new', 'list.json');"
                "open('session', 'w').write('what it knows')"
            )
            reading = await world.reading()
            assert changed(reading) == {
                ("sqlite", "paid"),
                ("folder", "two.txt"),
                ("folder", "deep/one.txt"),
                ("file", "list.json"),
            }
            assert world.box.paths_written() == {}
            await world.stores.reset()
            assert (await world.reading()).digest == first.digest
            await world.run("assert not os.path.exists('session') and open('beside.txt').read() == 'of the owner'")

    in_a_world(tmp_path, work)


def test_a_reading_is_the_last_commit_while_the_agent_writes_and_a_change_in_a_mapped_file_is_seen(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.stores.reset()
        process = world.started(
            "d = sqlite3.connect('bank.db', isolation_level=None); d.execute('PRAGMA mmap_size = 1000000');"
            "d.execute('INSERT INTO paid VALUES (2)'); d.execute('BEGIN IMMEDIATE'); d.execute('INSERT INTO paid VALUES (3)');"
            "import mmap; f = open('notes/two.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0] = 84;"
            "print('ready', flush=True); time.sleep(600)"
        )
        async with asyncio.timeout(20):
            while "ready" not in process.output.text:  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.01)
        reading = await world.reading()
        rows = [row.after for row in reading.differences if row.store == "sqlite"]
        assert rows == [{"cents": 2}] and ("folder", "two.txt") in changed(reading)
        await process.close()
        assert [row.after for row in (await world.reading()).differences if row.store == "sqlite"] == [{"cents": 2}]

    in_a_world(tmp_path, work)


def test_a_folder_in_a_store_can_be_renamed(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        for _ in range(2):
            await world.stores.reset()
            assert (await world.reading()).differences == ()
            await world.run("os.rename('notes/deep', 'notes/deeper'); open('notes/deeper/one.txt', 'a').write('!')")
            assert changed(await world.reading()) == {
                ("folder", place) for place in ("deep", "deep/one.txt", "deeper", "deeper/one.txt")
            }

    in_a_world(tmp_path, work)


def test_a_query_of_the_owners_asks_the_copy_and_cannot_change_it(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.stores.reset()
        await world.run("d = sqlite3.connect('bank.db'); d.execute('INSERT INTO paid VALUES (2)'); d.commit()")
        assert await world.stores.query("sqlite", "SELECT sum(cents) FROM paid") == "[(3,)]"
        with pytest.raises(ConfigError, match="readonly"):
            await world.stores.query("sqlite", "DELETE FROM paid")
        with pytest.raises(ConfigError, match="no store 'folder' takes SQL"):
            await world.stores.query("folder", "SELECT 1")

    in_a_world(tmp_path, work)


def test_what_another_writer_changes_is_changed_in_the_copy_alone(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.stores.reset()
        await world.stores.change("sqlite", "INSERT INTO paid VALUES (70)")
        assert await world.stores.query("sqlite", "SELECT sum(cents) FROM paid") == "[(71,)]"
        assert await world.stores.query("sqlite", "SELECT count(*) FROM paid") == "[(2,)]"
        await world.stores.check_originals("in this test", surely=True)

    in_a_world(tmp_path, work)


def test_what_the_agent_knows_is_forgotten_alone(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.stores.reset()
        await world.run("open('session', 'w'); open('list.json', 'w').write('[]'); open('other', 'w')")
        await world.stores.reset_memory()
        await world.run("assert not os.path.exists('session') and os.path.exists('other') and open('list.json').read() == '[]'")
        assert world.box.paths_written() == {str(world.folder / "other"): ""}

    in_a_world(tmp_path, work)


def test_a_store_whose_copy_is_in_a_box_is_never_worked_on_outside_of_it(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("of the owner")
    settings = [StoreSettings("list", "file", str(tmp_path / "list.txt"))]
    stores = Stores.of(settings, tmp_path / "work", 0.01, boxed=True)
    asyncio.run(stores.make())
    with pytest.raises(RuntimeError, match="the copy is in the box"):
        asyncio.run(stores.reset())
    assert (tmp_path / "list.txt").read_text() == "of the owner"
    asyncio.run(stores.remove())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list.txt", "work"]


def test_a_backup_of_a_changed_original_is_kept_and_nothing_beside_it_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    for name in ("list.txt", "beside.txt"):
        (folder / name).write_text("of the owner")
    stores = Stores.of([StoreSettings("list", "file", str(folder / "list.txt"))], tmp_path / "work", 0.01, boxed=True)
    asyncio.run(stores.make())
    (folder / "list.txt").write_text("of another program")
    with pytest.raises(ConfigError, match="itself changed"):
        asyncio.run(stores.remove())
    assert sorted(path.name for path in folder.iterdir()) == ["beside.txt", "list.txt"]
    [kept] = (tmp_path / "work").iterdir()
    assert (kept / "first" / "list.txt").read_text() == "of the owner"
    shutil.rmtree(kept)
