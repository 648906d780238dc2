"""The paths in a folder that changed, as Linux reports them (inotify), so that a folder of many files is not walked at each
reading."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

_CHANGE_EVENTS = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""A file is written, made, removed or moved, its mode is changed, or the folder itself is removed or moved."""
_FOLDER_FLAG, _CREATED, _MODE_CHANGED, _ROOT_GONE, _OVERFLOW = 0x40000000, 0x100, 0x4, 0x400 | 0x800, 0x4000
"""Flags of an event: its subject is a folder; it was made; its mode was changed; the watched folder itself is gone; events were
lost."""
_WATCH_OPTIONS = 0x02000000 | 0x01000000
_EVENT_FORMAT = struct.Struct("iIII")
_READ_BYTES = 2**20


class FolderWatch:
    """Watches a folder and its subfolders from its creation on.

    Raises:
        OSError: The system cannot watch folders, or not so many.
    """

    def __init__(self, root: Path) -> None:
        if sys.platform != "linux":
            raise OSError("only Linux has inotify")
        self._root, self._folders = root, dict[int, str]()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._add("")
        except OSError:
            self.close()
            raise

    def changed_paths(self) -> set[str] | None:
        """Return the relative paths that changed since the last call; None if the kernel cannot tell, as after a folder was
        removed. The watch must then be closed."""
        paths = set[str]()
        while events := self._read():
            while events:
                folder, kind, _, length = _EVENT_FORMAT.unpack_from(events)
                name = os.fsdecode(events[_EVENT_FORMAT.size : _EVENT_FORMAT.size + length].rstrip(b"\0"))
                events = events[_EVENT_FORMAT.size + length :]
                is_folder_gone = kind & _FOLDER_FLAG and name and not kind & (_CREATED | _MODE_CHANGED)
                if is_folder_gone or kind & (_ROOT_GONE | _OVERFLOW):
                    return None
                path = self._folders[folder] + name
                if name:
                    paths.add(path)
                if kind & _FOLDER_FLAG and kind & _CREATED:
                    self._add(f"{path}/")
        return paths

    def close(self) -> None:
        """End the watch. This may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self) -> bytes:
        """Return the events that have arrived; b"" if there are none."""
        try:
            return os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return b""

    def _add(self, folder: str) -> None:
        """Watch a folder and its subfolders. The caller walks the folder afterwards, and so finds files that were made before
        the watch began."""
        parents = [folder]
        while parents:
            parent = parents.pop()
            path = os.fsencode(self._root / parent)
            try:
                number = self._check(self._libc.inotify_add_watch(self._file, path, _CHANGE_EVENTS | _WATCH_OPTIONS))
                self._folders[number] = parent
                with os.scandir(self._root / parent) as items:
                    parents += [f"{parent}{item.name}/" for item in items if item.is_dir(follow_symlinks=False)]
            except FileNotFoundError:
                continue

    @staticmethod
    def _check(number: int) -> int:
        """Return the result of a system call. Raises OSError if it failed."""
        if number < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return number
