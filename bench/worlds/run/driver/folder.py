"""An agent's folder, with a limit on its size, and the log that the agent writes in it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.common.files import opened

LARGEST = 256 * 10**6
"""Bytes of all files together, and so of any file."""
MOST_FILES = 20_000
LOG = "log.jsonl"
LARGEST_LOG = 16 * 10**6
"""Bytes of the log that are read."""


class Folder:
    def __init__(self, path: Path):
        path.mkdir()
        self.path, self._read = path, 0

    def too_large(self) -> str:
        """Return why the folder is too large; "" if it is not."""
        size = 0
        for number, entry in enumerate(_entries(self.path), 1):
            size += entry
            if size > LARGEST:
                return f"wrote more than {LARGEST / 1e6:g} MB to its folder"
            if number > MOST_FILES:
                return f"made more than {MOST_FILES:,} files and folders in its folder"
        return ""

    def added_to_log(self) -> str | None:
        """Return the text that was added to the agent's log since the last call; None if there is no readable log."""
        path = self.path / LOG
        try:
            if path.is_symlink() or self.path.is_symlink() or not path.is_file():
                return None
            with opened(path) as file:
                file.seek(self._read if path.stat().st_size >= self._read else 0)
                added = file.read(LARGEST_LOG)
                self._read = file.tell()
        except OSError:  # the agent owns the file and can make it unreadable
            return None
        return added.decode(errors="replace")


@contextmanager
def temporary() -> Iterator[Path]:
    """Yield a temporary folder and remove it afterwards, whatever it contains."""
    folder = tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True)
    try:
        yield Path(folder.name)
    finally:
        try:
            folder.cleanup()
        except RecursionError:  # Python recurses once for each folder, rm does not
            subprocess.run(["rm", "-rf", "--", folder.name], stderr=subprocess.DEVNULL, check=False)


def _entries(folder: Path) -> Iterator[int]:
    """Yield the size of each entry. Entries that disappear meanwhile are skipped; links are not followed."""
    unseen = [] if folder.is_symlink() else [str(folder)]
    while unseen:
        try:
            with os.scandir(unseen.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        unseen.append(entry.path)
                    yield entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
