"""All stores of a worker together: they are copied, reset, read and removed. The copies of a killed probe are found by their
names."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench.common.errors import ConfigError, OriginalChanged, nearest, one_line
from bench.common.paths import expanded_path
from bench.probe.run.witness import folder, sqlite
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings, is_address
from bench.probe.run.witness.memory import MemoryStore, copy_with_journals, restore_with_journals
from bench.probe.run.witness.originals import content_of
from bench.probe.run.witness.outbox import OutboxStore
from bench.probe.run.witness.path_store import PathStore, StoresBox
from bench.probe.run.witness.place import CopyNote, is_orphan, notes, remove_note, remove_noted
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.rows import Encoding, printable
from bench.probe.run.witness.store import DatabaseServer, StoreCopy, TakesQueries
from bench.record.probe_rows import StoreReading

Result = TypeVar("Result")
MAX_ROWS = 1000
"""The most differing rows in a reading."""
_MAX_READINGS = 50
"""How often stores are read until two readings are equal."""


class Stores:
    """The stores of one worker. No process may have a copy open while it is reset.

    Args:
        stores: The stores, whose names differ.
        settle: Seconds between two readings that must be equal.
        encoding: Makes the digest of a reading of all stores.
        max_rows: The most differing rows in a reading.

    is_boxed    whether copies of files and folders are at the owner's paths, in a box
    beside      further paths that the box copies
    """

    def __init__(self, stores: Sequence[StoreCopy], settle: float, encoding: Encoding, max_rows: int = MAX_ROWS) -> None:
        self._changed_stores = set[str]()
        """The names of the stores whose originals have changed."""
        self._stores, self.settle, self._encoding, self._max_rows = tuple(stores), settle, encoding, max_rows
        self.is_boxed = False
        self.beside: Sequence[Path] = ()
        self._box: StoresBox | None = None
        self._last_readings = dict[str, tuple[Hashable, StoreReading]]()
        """The last reading of each store, with the stamp that the store had before it."""

    @classmethod
    def of(
        cls,
        settings: Iterable[StoreSettings],
        folder: Path,
        settle: float,
        hide: frozenset[str] = frozenset(),
        secret: bytes = b"",
        *,
        boxed: bool = False,
    ) -> Stores:
        """Return a worker's stores, which are not copied yet.

        Args:
            settings: The stores that the owner named.
            folder: The folder for copies.
            settle: Seconds between two readings that must be equal.
            hide: Names of columns whose values appear in no output.
            secret: Random bytes of the run, the same for all workers: digests can be compared only under one secret.
            boxed: Whether copies of files and folders are at the owner's paths, in a box.
        """
        encoding = Encoding(hide, secret)
        stores = [STORE_KINDS[store.kind].make(store, folder, encoding) for store in settings]
        for store in stores:
            if boxed and isinstance(store, PathStore | PostgresStore):
                store.use_box()
        worker_stores = cls(stores, settle, encoding)
        worker_stores.is_boxed = boxed
        return worker_stores

    @property
    def replaces(self) -> Mapping[str, str]:
        """The names of the owner's stores -> the names of the copies."""
        return {old: new for store in self._stores for old, new in store.replaces.items()}

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that tell the agent where the copies are."""
        return {name: value for store in self._stores for name, value in store.environment.items()}

    async def make(self) -> None:
        """Make all copies, or none.

        Raises:
            ConfigError: A store cannot be copied. The line says which, and why.
        """
        try:
            for store in self._stores:
                await _in_thread(store.make)
        except BaseException:
            await self.remove()
            raise

    @property
    def places(self) -> Sequence[tuple[Path, Path]]:
        """For each store that is a file or a folder: the path at which the agent finds it, and the folder of its first
        state."""
        return [(store.place, store.first_folder) for store in self._stores if isinstance(store, PathStore)]

    @property
    def databases(self) -> Mapping[DatabaseServer, Sequence[PostgresStore]]:
        """The database servers, each with the copies there."""
        servers = dict[DatabaseServer, list[PostgresStore]]()
        for store in self._stores:
            if isinstance(store, PostgresStore):
                servers.setdefault(store.server_and_names()[0], []).append(store)
        return servers

    @property
    def outboxes(self) -> Sequence[OutboxStore]:
        """The stores of messages that the agent sends."""
        return [store for store in self._stores if isinstance(store, OutboxStore)]

    @property
    def addresses(self) -> Mapping[str, str]:
        """The addresses of the owner's databases -> the addresses of their copies on the servers themselves."""
        return dict(store.addresses() for store in self._stores if isinstance(store, PostgresStore))

    def enter_box(self, box: StoresBox) -> None:
        """Move the copies, which were made for a box, into this box.

        Raises:
            ConfigError: The box has ended.
        """
        self._box = box
        for store in self._stores:
            if isinstance(store, PathStore):
                box.take_store(store)

    async def reset(self) -> None:
        """Reset each copy to its first state, and the files of the box.

        Raises:
            ConfigError: A copy cannot be reset.
        """
        self._last_readings.clear()
        if self._box:
            await _in_thread(self._box.reset_files)
        for store in self._stores:
            await _in_thread(store.reset)

    async def reset_memory(self) -> None:
        """Reset the agent's memory, and leave all other stores unchanged.

        Raises:
            ConfigError: A copy cannot be reset.
        """
        for store in self._stores:
            if isinstance(store, MemoryStore):
                await _in_thread(store.reset)
        if self._box:
            await _in_thread(self._box.reset_memory)

    async def read(self) -> StoreReading:
        """Return one reading of all stores, relative to their first states.

        Raises:
            ConfigError: A copy cannot be read.
        """
        return self._combine(await _in_thread(lambda: [self._begin(store)() for store in self._stores]))

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        """Begin a reading, and return the function that completes it. A store without new writes is not read again.

        Raises:
            ConfigError: A copy cannot be read; the returned function, too.
        """
        completions = await _in_thread(lambda: [self._begin(store) for store in self._stores])

        async def reading() -> StoreReading:
            return self._combine(await _in_thread(lambda: [complete() for complete in completions]))

        return reading

    def _begin(self, store: StoreCopy) -> Callable[[], StoreReading]:
        """Begin the reading of one store, and return the function that completes it."""
        stamp, (last_stamp, last) = store.stamp(), self._last_readings.get(store.name, (None, None))
        if last is not None and stamp is not None and stamp == last_stamp:
            return lambda: last
        complete = store.snapshot(self._max_rows)

        def read() -> StoreReading:
            self._last_readings[store.name] = stamp, (reading := complete())
            return reading

        return read

    def _combine(self, readings: Sequence[StoreReading]) -> StoreReading:
        """Return the readings of all stores as one."""
        rows = [row for reading in readings for row in reading.differences]
        digest = self._encoding.digest("\n".join(reading.digest for reading in readings).encode())
        unlisted = sum(reading.more for reading in readings) + max(0, len(rows) - self._max_rows)
        return StoreReading(digest, tuple(rows[: self._max_rows]), unlisted)

    def recheck(self) -> None:
        """Read each whole store at the next reading, even if the system reports no writes."""
        for store in self._stores:
            store.recheck()

    async def reading(self) -> StoreReading:
        """Read until two readings `settle` apart are equal, and return the last.

        Raises:
            ConfigError: A copy cannot be read, or does not come to rest.
        """
        start, last = time.monotonic(), await self.read()
        for _ in range(_MAX_READINGS):
            await asyncio.sleep(self.settle)
            last, previous = await self.read(), last
            if last.digest == previous.digest:
                return last
        names = ", ".join(store.name for store in self._stores)
        seconds = time.monotonic() - start
        raise ConfigError(
            f"stores {names}: they still changed after {seconds:.0f} s; end what writes to them, or raise `settle`"
        )

    async def query(self, name: str, sql: str) -> str:
        """Return the answer to an owner's query on the copy of a store, as text.

        Raises:
            ConfigError: There is no such store, its kind takes no SQL, or the query fails.
        """
        return repr(await _in_thread(self._sql_store(name).query, sql))

    async def change(self, name: str, sql: str) -> None:
        """Execute another writer's statement on the copy of a store.

        Raises:
            ConfigError: There is no such store, its kind takes no SQL, or the statement fails.
        """
        await _in_thread(self._sql_store(name).change, sql)

    def _sql_store(self, name: str) -> TakesQueries:
        """Return the store of this name. Raises ConfigError if it takes no SQL."""
        store = next((store for store in self._stores if store.name == name), None)
        if not isinstance(store, TakesQueries):
            names = [candidate.name for candidate in self._stores if isinstance(candidate, TakesQueries)]
            raise ConfigError(f"no store {name!r} takes SQL; {nearest(name, names)}")
        return store

    async def check_originals(self, when: str, *, surely: bool = False) -> None:
        """Check that each of the owner's stores is unchanged since it was copied. The backup of a changed store is kept.

        Args:
            when: The run of the agent that has just ended, in words.
            surely: Whether to compare the content of each store even if nothing hints at a change.

        Raises:
            OriginalChanged: A store has changed, or cannot be read any more.
        """
        lines = []
        for store in self._stores:
            if store.name not in self._changed_stores and await _in_thread(partial(store.has_changed, surely=surely)):
                self._changed_stores.add(store.name)
                lines.append(
                    f"store {store.name!r} itself changed {when}, and not its copy alone: the agent wrote to it, or another "
                    f"program did. It was left as it is now; a backup of it is {store.keep_backup()}"
                )
        if lines:
            raise OriginalChanged("; ".join(lines))

    async def remove(self) -> None:
        """Remove each copy. This may be called again.

        Raises:
            OriginalChanged: A store has changed since the last look at it.
            ConfigError: A copy could not be removed. The others were.
        """
        failures, change_problem = list[str](), ""
        try:
            await self.check_originals("after its last run", surely=True)
        except OriginalChanged as error:
            change_problem = str(error)
        for store in reversed(self._stores):
            try:
                await _in_thread(store.remove)
            except ConfigError as error:
                failures.append(str(error))
        if change_problem:
            raise OriginalChanged("; ".join((change_problem, *failures)))
        if failures:
            raise ConfigError("; ".join(failures))


async def _in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Run work on files in a thread. If the caller is cancelled, wait until the work has ended, so that no file is removed
    while it is used."""
    running = asyncio.create_task(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


@dataclass(frozen=True)
class Orphan:
    """A folder that a killed probe left, or a database on the server at `address`.

    restores   whether the owner's store is restored from the folder first, since the store has changed since it was copied
    """

    note: CopyNote
    restores: bool = False
    address: str = field(default="", repr=False)

    @property
    def plan(self) -> str:
        """What `clean` will do with it, as a clause."""
        if self.address:
            return f"drop the database {self.note.place}"
        if not self.restores:
            return f"remove {printable(self.note.place)}"
        made = datetime.fromtimestamp(Path(self.note.place, "first").stat().st_ctime).isoformat(" ", "minutes")
        restores = f"restore {printable(self.note.store)} from the backup of {made} in {printable(self.note.place)}"
        return f"{restores}, since a probe or another program changed it; what it holds now is kept there"

    def clean(self) -> str:
        """Restore the owner's store if needed, remove what a killed probe left, and return a clause that says so.

        Raises:
            ConfigError: It cannot be restored or removed. A backup is kept then.
        """
        note = self.note
        if self.address:
            if leftovers := STORE_KINDS[note.kind].leftovers:
                leftovers.drop(self.address, note.place)
            return f"dropped the database {note.place}"
        try:
            if not self.restores:
                remove_noted(note)
                return f"removed {printable(note.place)}"
            store, replaced_folder = Path(note.store), Path(note.place, "replaced")
            copy_with_journals(store, replaced_folder)
            _restore(note.kind, Path(note.place, "first"), store)
            remove_note(note.place)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{printable(note.place)} cannot be restored or removed: {one_line(str(error), 300)}") from error
        return f"restored {printable(note.store)}; what it held before is {printable(str(replaced_folder / store.name))}"


def orphans(settings: Iterable[StoreSettings]) -> Iterator[Orphan]:
    """Yield the copies and backups of these stores that killed probes of this user left.

    Args:
        settings: The stores that the owner named.

    Raises:
        ConfigError: A server of a named database cannot be queried.
    """
    settings = tuple(settings)
    named_paths = {(store.kind, str(expanded_path(store.where).resolve())) for store in settings if not is_address(store)}
    databases = {}  # a note names only the database: the server is asked below, at the address of each named store
    for note in notes():
        if note.kind in STORE_KINDS and STORE_KINDS[note.kind].is_address:
            databases[note.kind, note.place] = note
        elif (not note.store or (note.kind, note.store) in named_paths) and is_orphan(Path(note.place)):
            yield Orphan(note, bool(note.content) and _has_other_content(note))
    for kind, address in dict.fromkeys((store.kind, store.where) for store in settings) if databases else ():
        leftovers = STORE_KINDS[kind].leftovers
        for name, noted_name in leftovers.names(address) if leftovers else ():
            if (kind, noted_name) in databases:
                yield Orphan(replace(databases[kind, noted_name], place=name), address=address)


def _has_other_content(note: CopyNote) -> bool:
    """Return whether a store has changed since the copy was made."""
    try:
        return content_of(note.kind, Path(note.store)) != note.content
    except (OSError, sqlite3.Error):
        return True


def _restore(kind: str, first: Path, path: Path) -> None:
    """Restore the content of a store of this kind at `path` from its backup at `first`."""
    if kind == "sqlite":
        sqlite.restore(first, path)
        return
    if kind == "folder":
        folder.restore(first, path, path, path)
        return
    if kind == "memory":
        restore_with_journals(first, path)
    else:
        folder.restore_file(first / path.name, path)
