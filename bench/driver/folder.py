"""An agent's folder: how large it may be, and the agent's own log in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

LARGEST = 256 * 10**6
"""Bytes of all files together, and so of one."""
MOST_FILES = 20_000
LOG = "log.jsonl"
LARGEST_LOG = 16 * 10**6
"""Bytes of it that are read."""


class Folder:
    def __init__(self, path: Path):
        path.mkdir()
        self.path, self._read = path, 0

    def too_large(self) -> str:
        """Why it is, or ""."""
        size = 0
        for number, entry in enumerate(_entries(self.path), 1):
            size += entry
            if size > LARGEST:
                return f"wrote more than {LARGEST / 1e6:g} MB to its folder"
            if number > MOST_FILES:
                return f"made more than {MOST_FILES:,} files in its folder"
        return ""

    def added_to_log(self) -> str | None:
        """What was added to the agent's own log since this was asked last; None where there is no such file."""
        path = self.path / LOG
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            file.seek(self._read if path.stat().st_size >= self._read else 0)
            added = file.read(LARGEST_LOG)
            self._read = file.tell()
        return added.decode(errors="replace")


def _entries(folder: Path) -> Iterator[int]:
    """The sizes of all files in it. What vanishes meanwhile is passed over; links are not followed."""
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(where, name)).st_size  # noqa: PTH118  there may be thousands
            except OSError:
                continue
