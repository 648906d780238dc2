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

NAME_PREFIX = "recovery-bench-probe-"
_NAME = re.compile(rf"{NAME_PREFIX}(?:[\w-]{{0,40}}-)?([0-9]{{1,10}})-[0-9a-f]{{12}}")
_LOCK_NAME = "held"
MAX_NOTE_BYTES = 2**16


@dataclass(frozen=True)
class CopyNote:
    """A note in the state folder about a folder or a database that a probe made.

    kind, store  the kind and the path of the owner's store that was copied; "" for another folder
    content      the digest of the store's content; "" until there is a backup from which the store can be restored
    place        the path of the folder, or the name of the database
    """

    kind: str = ""
    store: str = ""
    content: str = ""
    place: str = ""


def save_note(note: CopyNote) -> None:
    """Write a note about a folder or a database that is about to be made, or replace its note. Raises ConfigError if the note
    cannot be written."""
    try:
        folder = state_folder() / "probe"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / Path(note.place).name, json.dumps(asdict(note)).encode())
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"a probe notes its copies in your state folder, which cannot be written ({error}); set XDG_STATE_HOME to another"
        ) from error


def remove_note(place: str) -> None:
    """Remove the note about a folder or a database that no longer exists."""
    (state_folder() / "probe" / Path(place).name).unlink(missing_ok=True)


def notes() -> Iterator[CopyNote]:
    """Yield the notes of this user's probes. A note is ignored if other users could have written it."""
    with suppress(OSError, RuntimeError):
        for path in sorted((state_folder() / "probe").iterdir()):
            item = path.lstat()
            if maker_process(path.name) and item.st_uid == os.getuid() and not item.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                with suppress(ValueError, TypeError):
                    note = CopyNote(**json.loads(content_of(path, MAX_NOTE_BYTES)))
                    if Path(note.place).name == path.name and "\0" not in note.place + note.store:
                        yield note


def new_name(store: str) -> str:
    """Return a name for a folder or a database of the probe: with the store's name, this process's id, and a random part.

    The name is short, since PostgreSQL truncates names after 63 bytes.
    """
    label = re.sub(r"[^a-zA-Z0-9_]+", "-", store)[:10].strip("-") or "store"
    return f"{NAME_PREFIX}{label}-{os.getpid()}-{secrets.token_hex(6)}"


def maker_process(name: str) -> int | None:
    """Return the id of the process in a name that `new_name` has made; None for another name."""
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


class PrivateFolder:
    """A folder for the copies of one store. This process holds a lock on it until the folder is removed.

    Args:
        parent: The folder in which it is made.
        store: The store's name.
        note: The note about it.

    Raises:
        ConfigError: The note cannot be written.
        OSError: The folder cannot be made.
    """

    def __init__(self, parent: Path, store: str, note: CopyNote = CopyNote()) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = parent / new_name(store)
        self._note = replace(note, place=str(self.folder.absolute()))
        save_note(self._note)
        self.folder.mkdir(mode=0o700)
        self._lock_file: int | None = os.open(self.folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
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


def remove_noted(note: CopyNote) -> None:
    """Remove a noted folder. From now on no store is restored from it, since a killed removal leaves half a backup."""
    save_note(replace(note, content=""))
    remove_tree(Path(note.place))
    remove_note(note.place)


def leftover_backup(store: str, content: str) -> str:
    """Return the path of a folder that a killed probe left, with a backup of this store that differs from its content; "" if
    there is none. `content` is the digest of the store's content now."""
    for note in notes():
        differs = note.store == store and note.content not in ("", content)
        if differs and is_orphan(Path(note.place)) and Path(note.place, "first").exists():
            return note.place
    return ""


def is_orphan(folder: Path) -> bool:
    """Return whether a folder was made by a probe of this user whose process is gone."""
    process = maker_process(folder.name)
    if process is None or folder.is_symlink():
        return False
    try:
        lock_file = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:  # its maker was killed before it made the lock file, or is about to make it
        return not is_running(process)
    except OSError:
        return False  # it belongs to another user
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # its maker holds the lock
        return False
    finally:
        os.close(lock_file)
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
