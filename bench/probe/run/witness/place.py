"""Folders that the probe makes for copies and backups. Their names say so, and a process holds its folders while it lives."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.common.digests import digest_of
from bench.common.errors import ConfigError
from bench.common.files import content_of, write_whole
from bench.probe.run.witness.rows import printable

PREFIX = "recovery-bench-probe-"
_NAME = re.compile(rf"{PREFIX}(?:[\w-]{{0,40}}-)?([0-9]{{1,10}})-[0-9a-f]{{12}}")
_LOCK = "held"
RESTORES = "restores"
"""The file that names the owner's store that is worked on in place, and is restored from this folder."""


def new_name(store: str) -> str:
    """Return a name for something that the probe makes: it has the store's name, this process's id, and a random part.

    PostgreSQL cuts names off after 63 bytes.
    """
    return f"{PREFIX}{re.sub(r'[^a-zA-Z0-9_]+', '-', store)[:10].strip('-') or 'store'}-{os.getpid()}-{secrets.token_hex(6)}"


def maker_of(name: str) -> int | None:
    """Return the id of the process that made something of this name; None if the probe did not make it."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def lives(process: int) -> bool:
    """Return whether a process with this id is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


class Place:
    """A folder for the copies of one store, which this process holds until it is removed.

    Args:
        parent: Where it is made.
        store: The store's name.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, parent: Path, store: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = parent / new_name(store)
        self.folder.mkdir(mode=0o700)
        self._held: int | None = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def restores(self, kind: str, path: Path) -> None:
        """Record that this owner's store is used in place and is to be restored from here."""
        write_whole(self.folder / RESTORES, f"{kind}\n{path}".encode("utf-8", "surrogateescape"))

    def remove(self) -> None:
        """Remove the folder and all in it. This can be called again.

        No store is restored from here any more: whoever is killed now leaves half a backup.
        """
        (self.folder / RESTORES).unlink(missing_ok=True)
        remove_tree(self.folder)
        if self._held is not None:
            os.close(self._held)
            self._held = None


def claimed_place(path: Path) -> Place:
    """Return a place beside a store that is worked on in place, if no other probe has one there.

    Raises:
        ConfigError: Another probe works on the store, or was killed and left it to be restored.
        OSError: The place cannot be made.
    """
    store = digest_of(str(path))[:10]
    place = Place(path.parent, store)
    for folder, is_orphan in places_in(path.parent):
        if folder != place.folder and folder.name.startswith(f"{PREFIX}{store}-"):
            place.remove()
            why = "a probe of it was killed; restore it by `bench probe --clean`" if is_orphan else "another probe works on it"
            raise ConfigError(f"{printable(str(path))}: {why}")
    return place


def restored_from(folder: Path) -> tuple[str, Path] | None:
    """Return the kind and the path of the owner's store that is to be restored from a place; None if there is none."""
    try:
        kind, _, path = content_of(folder / RESTORES, 2**16).decode("utf-8", "surrogateescape").partition("\n")
    except FileNotFoundError:
        return None
    return kind, Path(path)


def places_in(parent: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the folders here that a probe made, and whether the process that made each is gone."""
    with suppress(OSError):
        for folder in sorted(parent.iterdir()):
            process = maker_of(folder.name)
            if process is not None and folder.is_dir() and not folder.is_symlink():
                yield folder, _is_orphan(folder, process)


def _is_orphan(folder: Path, process: int) -> bool:
    try:
        file = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return not lives(process)
    except OSError:
        return False  # another user's
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def remove_tree(folder: Path) -> None:
    """Remove a folder, also where its owner may not write in a folder of it. No link is followed."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for parent, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(parent).chmod(0o700)
    shutil.rmtree(folder)
