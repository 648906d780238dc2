"""All stores of a worker together: copied, reset, read and removed. What a killed probe left is found again by its name."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from bench.common.errors import ConfigError, one_line
from bench.probe.run.witness import folder, sqlite
from bench.probe.run.witness.folder import FolderStore
from bench.probe.run.witness.ignored import Ignored
from bench.probe.run.witness.memory import MemoryStore
from bench.probe.run.witness.place import RESTORES, places_in, remove_tree, restored_from
from bench.probe.run.witness.postgres import PostgresStore, drop_left, left_databases
from bench.probe.run.witness.rows import Encoding, printable
from bench.probe.run.witness.sqlite import SqliteStore
from bench.probe.run.witness.store import StoreCopy
from bench.record.probe.rows import StoreReading

Result = TypeVar("Result")
StoreKind = Literal["sqlite", "postgres", "folder", "file", "memory"]
"""Of a memory, the agent keeps in it what it knows: it is reset, and never read."""
MOST = 1000
"""The most differing rows that a reading holds."""
_READINGS = 50
"""The most readings, one after another, until two are equal."""


@dataclass(frozen=True)
class StoreSettings:
    """A store as its owner named it.

    where      a path, or the DSN of a PostgreSQL database
    variables  variables that hand the copy over; `{store}` in a value is the copy's path or DSN
    in_place   work on the owner's own store, after a backup whose restore was tested
    ignore     what no witness reads (`bench.probe.run.witness.ignored`)
    """

    name: str
    kind: StoreKind
    where: str
    variables: Mapping[str, str] = field(default_factory=dict)
    in_place: bool = False
    ignore: tuple[str, ...] = ()


class Stores:
    """The stores of one worker. Nothing may have a copy open while it is reset.

    Args:
        stores: The stores, whose names differ.
        settle: Seconds between two readings that must be equal.
        encoding: Makes the digest of all of them.
        most: The most differing rows that a reading holds.
    """

    def __init__(self, stores: Sequence[StoreCopy], settle: float, encoding: Encoding, most: int = MOST) -> None:
        self._stores, self.settle, self._encoding, self._most = tuple(stores), settle, encoding, most
        self._last = dict[str, tuple[Hashable, StoreReading]]()
        """The last reading of each store, with the stamp that the store had before it."""

    @classmethod
    def of(
        cls,
        settings: Iterable[StoreSettings],
        folder: Path,
        settle: float,
        hide: frozenset[str] = frozenset(),
        secret: bytes = b"",
    ) -> Stores:
        """Return a worker's stores, of which nothing is made yet.

        Args:
            settings: The stores that the owner named.
            folder: Where copies are made.
            settle: Seconds between two readings that must be equal.
            hide: Names of columns whose values are in no output.
            secret: Random bytes of the run, the same for all its workers: digests are equal only under one secret.
        """
        encoding = Encoding(hide, secret)
        return cls([_store(store, folder, encoding) for store in settings], settle, encoding)

    @property
    def replaces(self) -> Mapping[str, str]:
        """The names of the owner's stores -> the names of the copies."""
        return {old: new for store in self._stores for old, new in store.replaces.items()}

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that tell the agent where the copies are."""
        return {name: value for store in self._stores for name, value in store.environment.items()}

    async def make(self) -> None:
        """Make the copies, or none.

        Raises:
            ConfigError: A store cannot be copied. The line says which, and why.
        """
        try:
            for store in self._stores:
                await _in_thread(store.make)
        except BaseException:
            await self.remove()
            raise

    async def reset(self) -> None:
        """Bring each copy back to its first state.

        Raises:
            ConfigError: A copy cannot be reset.
        """
        self._last.clear()
        for store in self._stores:
            await _in_thread(store.reset)

    async def read(self) -> StoreReading:
        """Return one reading of all stores, relative to their first states.

        Raises:
            ConfigError: A copy cannot be read.
        """
        return self._together(await _in_thread(lambda: [self._begin(store)() for store in self._stores]))

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        """Begin a reading, and return the function that ends it. A store in which nothing was written is not read again.

        Raises:
            ConfigError: A copy cannot be read; the returned function, too.
        """
        begun = await _in_thread(lambda: [self._begin(store) for store in self._stores])

        async def reading() -> StoreReading:
            return self._together(await _in_thread(lambda: [end() for end in begun]))

        return reading

    def _begin(self, store: StoreCopy) -> Callable[[], StoreReading]:
        stamp, (known, last) = store.stamp(), self._last.get(store.name, (None, None))
        if last is not None and stamp is not None and stamp == known:
            return lambda: last
        end = store.snapshot(self._most)

        def read() -> StoreReading:
            self._last[store.name] = stamp, (reading := end())
            return reading

        return read

    def _together(self, readings: Sequence[StoreReading]) -> StoreReading:
        rows = [row for reading in readings for row in reading.differences]
        digest = self._encoding.digest("\n".join(reading.digest for reading in readings).encode())
        more = sum(reading.more for reading in readings) + max(0, len(rows) - self._most)
        return StoreReading(digest, tuple(rows[: self._most]), more)

    def recheck(self) -> None:
        """Read all of each store at the next reading, whatever the system says that was written."""
        for store in self._stores:
            store.recheck()

    async def reading(self) -> StoreReading:
        """Return a reading that is equal to the reading `settle` before it.

        Raises:
            ConfigError: A copy cannot be read, or does not come to rest.
        """
        begun, last = time.monotonic(), await self.read()
        for _ in range(_READINGS):
            await asyncio.sleep(self.settle)
            last, before = await self.read(), last
            if last.digest == before.digest:
                return last
        names = ", ".join(store.name for store in self._stores)
        seconds = time.monotonic() - begun
        raise ConfigError(
            f"stores {names}: they still changed after {seconds:.0f} s; end what writes to them, or raise `settle`"
        )

    async def changed(self) -> list[str]:
        """Return the names of the owner's stores that have changed since they were copied.

        Raises:
            ConfigError: A store cannot be read any more.
        """
        return [store.name for store in self._stores if await _in_thread(store.has_changed)]

    async def remove(self) -> None:
        """Remove each copy, and restore what was worked on in place. This can be called again.

        Raises:
            ConfigError: A store could not be removed or restored. The others were.
        """
        failures = []
        for store in reversed(self._stores):
            try:
                await _in_thread(store.remove)
            except ConfigError as error:
                failures.append(str(error))
        if failures:
            raise ConfigError("; ".join(failures))


async def _in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Run work on files in a thread, to its end even if the caller is cancelled: no file may be removed while the work uses
    it."""
    running = asyncio.create_task(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _store(settings: StoreSettings, folder: Path, encoding: Encoding) -> StoreCopy:
    if settings.kind == "postgres":
        if settings.in_place:
            raise ConfigError(f"store {settings.name!r}: a PostgreSQL database is always copied; leave out `in_place`")
        return PostgresStore(settings.name, settings.where, encoding, settings.variables, Ignored(settings.ignore))
    where = Path(settings.where).expanduser()
    if settings.kind == "memory":
        return MemoryStore(settings.name, where, folder, settings.variables)
    make = SqliteStore if settings.kind == "sqlite" else FolderStore
    ignores = Ignored(settings.ignore)
    return make(settings.name, where, folder, encoding, settings.variables, settings.in_place, ignores)


@dataclass(frozen=True)
class Orphan:
    """Something that a killed probe left: a folder, or a database of the server at `dsn`.

    restores   the owner's store that was worked on in place, and is restored from the folder first
    """

    name: str
    restores: str = ""
    dsn: str = field(default="", repr=False)


def orphans(settings: Iterable[StoreSettings], parent: Path) -> Iterator[Orphan]:
    """Yield what killed probes left: copies, and the backups of stores that were worked on in place.

    Args:
        settings: The stores that the owner named.
        parent: Where copies are made.

    Raises:
        ConfigError: A server of a named database cannot be asked.
    """
    settings = tuple(settings)
    beside = (Path(store.where).expanduser().resolve().parent for store in settings if store.in_place)
    for place in sorted({parent.absolute(), *beside}):
        for path, is_orphan in places_in(place):
            if is_orphan:
                restored = restored_from(path)
                yield Orphan(str(path), str(restored[1]) if restored else "")
    for dsn in dict.fromkeys(store.where for store in settings if store.kind == "postgres"):
        yield from (Orphan(name, dsn=dsn) for name in left_databases(dsn))


def clean(orphan: Orphan) -> str:
    """Remove what a killed probe left, after the owner's store was restored from it, and return what was done.

    Raises:
        ConfigError: It cannot be restored or removed. A backup is still there then.
    """
    if orphan.dsn:
        drop_left(orphan.dsn, orphan.name)
        return f"dropped database {orphan.name}"
    place = Path(orphan.name)
    try:
        if restored := restored_from(place):
            kind, path = restored
            if kind == "sqlite":
                sqlite.restore(place / "first", path)
            else:
                folder.restore(place / "first", path, path, path)
            place.joinpath(RESTORES).unlink()
        remove_tree(place)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{printable(orphan.name)} cannot be restored or removed: {one_line(str(error), 300)}") from error
    return f"restored {printable(orphan.restores)}, and removed {place}" if restored else f"removed {printable(orphan.name)}"
