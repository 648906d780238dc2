"""Checks whether the owner's own store has changed: by the stamps of its files, and by its content if the stamps differ."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from bench.common.digests import digest_of_file
from bench.common.files import opened
from bench.common.paths import REPORTS, RESULTS

SQLITE_MAGIC = b"SQLite format 3\0"
_COUNTER_BYTES = (slice(18, 20), slice(24, 28), slice(40, 44), slice(92, 100))
"""Bytes of a database's header that differ between a database and its restored backup: counters of writes."""
LOCK_TIMEOUT_S = 10.0
"""How long a lock of another process is waited for."""
_Stamp = tuple[int, ...]


class OwnersStore:
    """A file, a folder or a database of the owner's, as it was when this object was made.

    content  the digest of its content

    Raises:
        OSError: A file cannot be read.
        sqlite3.Error: A database cannot be read.
    """

    def __init__(self, kind: str, path: Path) -> None:
        self._kind, self._path = kind, path
        self._stamps = dict(_stamps_of(kind, path))
        self.content = content_of(kind, path)

    def has_changed(self) -> bool:
        """Return whether the store has other content now, or cannot be read any more."""
        try:
            stamps = dict(_stamps_of(self._kind, self._path))
            if stamps == self._stamps:
                return False
            if content_of(self._kind, self._path) != self.content:
                return True
        except (OSError, sqlite3.Error):
            return True
        self._stamps = stamps
        return False


def content_of(kind: str, path: Path) -> str:
    """Return the digest of a store's content: each file with its mode, each link with its target, or the pages of a
    database. Ignored and hidden parts count too."""
    digest = hashlib.sha256()
    for name, item in _items(kind, path):
        target = path.parent / name
        digest.update(repr((name, stat.S_IFMT(item.st_mode), stat.S_IMODE(item.st_mode))).encode("utf-8", "surrogatepass"))
        if stat.S_ISLNK(item.st_mode):
            digest.update(os.readlink(target).encode("utf-8", "surrogateescape"))  # noqa: PTH115  `Path.readlink` normalizes
        elif stat.S_ISREG(item.st_mode):
            digest.update(_content_of_file(target, may_be_database=kind in ("sqlite", "memory") and target == path).encode())
    return digest.hexdigest()


def _content_of_file(path: Path, *, may_be_database: bool) -> str:
    """Return the digest of a file, or of a database in one transaction."""
    with opened(path) as file:
        if not may_be_database or file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:
            file.seek(0)
            return digest_of_file(file)
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT_S, isolation_level=None)) as database:
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM sqlite_schema")
        image = bytearray(database.serialize())
    for counter in _COUNTER_BYTES:
        image[counter] = bytes(counter.stop - counter.start)
    return hashlib.sha256(image).hexdigest()


def _stamps_of(kind: str, path: Path) -> Iterator[tuple[str, _Stamp]]:
    """Yield (name, stamp) of each file, folder and link of a store, and of a database's journals. A stamp changes with each
    write."""
    for name, item in _items(kind, path):
        yield name, (item.st_dev, item.st_ino, item.st_mode, item.st_size, item.st_ctime_ns)
    for journal in ("-wal", "-journal") if kind in ("sqlite", "memory") else ():
        with suppress(FileNotFoundError):
            item = path.with_name(path.name + journal).lstat()
            yield journal, (item.st_ino, item.st_size, item.st_ctime_ns)


def _items(kind: str, path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield (path from the store's parent, status) of each file, folder and link of a store, without files that the probe
    itself writes; nothing for a memory that does not exist."""
    try:
        item = path.lstat()
    except FileNotFoundError:
        if kind != "memory":
            raise
        return
    yield path.name, item
    ours = {str(Path.cwd() / folder) for folder in (RESULTS, REPORTS)}
    for parent, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if f"{parent}/{name}" not in ours)
        for name in sorted((*folders, *files)):
            inner = Path(parent, name)
            with suppress(FileNotFoundError):  # it was removed in the meantime, which the next call sees
                item = inner.lstat()
                if stat.S_IFMT(item.st_mode) in (stat.S_IFDIR, stat.S_IFLNK, stat.S_IFREG):
                    yield str(inner.relative_to(path.parent)), item
