"""The folders that the probe makes for copies and backups. Their names say so, and a process locks its folders while it runs.

Each folder is noted in the user's state folder before it is made. Only noted folders are removed or restored from, since
anybody can make a folder with such a name.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.common.errors import ConfigError
from bench.common.files import content_of, write_whole
from bench.common.paths import state_folder

PREFIX = "recovery-bench-probe-"
_NAME = re.compile(rf"{PREFIX}(?:[\w-]{{0,40}}-)?([0-9]{{1,10}})-[0-9a-f]{{12}}")
_LOCK = "held"
MOST_NOTE = 2**16
"""Bytes of a note."""


@dataclass(frozen=True)
class PlaceNote:
    """A note in the state folder about a folder or a database that a probe made.

    kind, store  the kind and the path of the owner's store that was copied; "" for another folder
    content      the digest of the store's content, once there is a backup from which it can be restored
    place        the folder, or the name of the database
    """

    kind: str = ""
    store: str = ""
    content: str = ""
    place: str = ""


def save_note(note: PlaceNote) -> None:
    """Note what is about to be made, or what is now known about it. Raises ConfigError if the note cannot be written."""
    try:
        folder = state_folder() / "probe"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / Path(note.place).name, json.dumps(asdict(note)).encode())
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"a probe notes its copies in your state folder, which cannot be written ({error}); set XDG_STATE_HOME to another"
        ) from error


def remove_note(place: str) -> None:
    """Remove the note about something that no longer exists."""
    (state_folder() / "probe" / Path(place).name).unlink(missing_ok=True)


def notes() -> Iterator[PlaceNote]:
    """Yield the notes of this user's probes. A note that other users can write is ignored."""
    with suppress(OSError, RuntimeError):
        for path in sorted((state_folder() / "probe").iterdir()):
            item = path.lstat()
            if maker_of(path.name) and item.st_uid == os.getuid() and not item.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                with suppress(ValueError, TypeError):
                    note = PlaceNote(**json.loads(content_of(path, MOST_NOTE)))
                    if Path(note.place).name == path.name and "\0" not in note.place + note.store:
                        yield note


def new_name(store: str) -> str:
    """Return a name for something that the probe makes, with the store's name, this process's id, and a random part.

    The name is short, since PostgreSQL truncates names after 63 bytes.
    """
    return f"{PREFIX}{re.sub(r'[^a-zA-Z0-9_]+', '-', store)[:10].strip('-') or 'store'}-{os.getpid()}-{secrets.token_hex(6)}"


def maker_of(name: str) -> int | None:
    """Return the id of the process that made something with this name; None if no probe made it."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def is_running(process: int) -> bool:
    """Return whether a process with this id is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


class Place:
    """A folder for the copies of one store, which this process locks until it is removed.

    Args:
        parent: The folder in which it is made.
        store: The store's name.
        note: The note about it.

    Raises:
        ConfigError: The note cannot be written.
        OSError: The folder cannot be made.
    """

    def __init__(self, parent: Path, store: str, note: PlaceNote = PlaceNote()) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = parent / new_name(store)
        self._note = replace(note, place=str(self.folder.absolute()))
        save_note(self._note)
        self.folder.mkdir(mode=0o700)
        self._lock_file: int | None = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def note_backup(self, content: str) -> None:
        """Note that the owner's store, with content of this digest, can be restored from here."""
        self._note = replace(self._note, content=content)
        save_note(self._note)

    def remove(self) -> None:
        """Remove the folder. This may be called again."""
        if self._lock_file is not None:
            remove_noted(self._note)
            self.unlock()

    def unlock(self) -> None:
        """Unlock the folder, and keep it."""
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def remove_noted(note: PlaceNote) -> None:
    """Remove a noted folder. From now on no store is restored from it, since a killed removal leaves half a backup."""
    save_note(replace(note, content=""))
    remove_tree(Path(note.place))
    remove_note(note.place)


def backup_left(store: str, content: str) -> str:
    """Return a folder that a probe left with a backup of a store whose content has changed since; "" if there is none."""
    for note in notes():
        differs = note.store == store and note.content not in ("", content)
        if differs and is_orphan(Path(note.place)) and Path(note.place, "first").exists():
            return note.place
    return ""


def is_orphan(folder: Path) -> bool:
    """Return whether the process that made a folder is gone."""
    process = maker_of(folder.name)
    if process is None or folder.is_symlink():
        return False
    try:
        file = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return not is_running(process)
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
    """Remove a folder, even if its owner has no write permission in it. Links are not followed."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    with suppress(OSError):
        folder.chmod(0o700)
    for parent, folders, _ in os.walk(folder):
        for inner in (Path(parent, name) for name in folders):
            with suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(0o700)
    shutil.rmtree(folder)
