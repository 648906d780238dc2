"""An agent's folder, with a limit on its size, and the log that the agent writes in it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.common.files import opened

MAX_BYTES = 256 * 10**6
"""The most bytes of all files together, and so of any file."""
MAX_FILES = 20_000
LOG_NAME = "log.jsonl"
MAX_LOG_BYTES = 16 * 10**6
"""The most bytes of the log that are read at once."""


class Folder:
    """The folder of one agent, which is made at `path`."""

    def __init__(self, path: Path):
        path.mkdir()
        self.path, self._log_position = path, 0

    def too_large(self) -> str:
        """Return why the folder is too large; "" if it is not."""
        total = 0
        for number, size in enumerate(_entry_sizes(self.path), 1):
            total += size
            if total > MAX_BYTES:
                return f"wrote more than {MAX_BYTES / 1e6:g} MB to its folder"
            if number > MAX_FILES:
                return f"made more than {MAX_FILES:,} files and folders in its folder"
        return ""

    def added_to_log(self) -> str | None:
        """Return the text that was added to the agent's log since the last call; None if there is no readable log."""
        path = self.path / LOG_NAME
        try:
            if path.is_symlink() or self.path.is_symlink() or not path.is_file():
                return None
            with opened(path) as file:
                file.seek(self._log_position if path.stat().st_size >= self._log_position else 0)
                added = file.read(MAX_LOG_BYTES)
                self._log_position = file.tell()
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


def _entry_sizes(folder: Path) -> Iterator[int]:
    """Yield the size in bytes of each file and folder below a folder. Entries that disappear meanwhile are skipped; links are
    not followed."""
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
