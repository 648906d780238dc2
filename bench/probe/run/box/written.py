"""A file that was written in a box, as the program that holds the box tells its parent."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.common.digests import digest_of_file
from bench.common.files import opened

MOST_COMPARED, BEGINS = 2**26, 64
"""Bytes of the largest file whose content is compared, and of its beginning that is told."""


@dataclass(frozen=True)
class WrittenFile:
    """A file or a link that was written or removed in the box.

    path         where it stands
    was, is_now  whether it was there at first, and whether it is there now
    digest       of what it holds; of a large file, of its size and its time
    begins       its first bytes
    """

    path: str
    was: bool
    is_now: bool
    digest: str = ""
    begins: bytes = b""


def beginning(path: Path, most: int) -> bytes:
    """Return the first bytes of a file, at most `most`; b"" if it cannot be read."""
    with suppress(OSError), opened(path) as file:
        return file.read(most)
    return b""


def written_file(path: Path, upper: Path, item: os.stat_result, lower: Path) -> WrittenFile:
    """Return what is known of a file that was written.

    Args:
        path: Where it stands in the box.
        upper: Where it lies in the layer, and `item` its state there.
        lower: Where the owner's lies.
    """
    was = os.path.lexists(lower)
    if not stat.S_ISREG(item.st_mode):
        return WrittenFile(str(path), was, not stat.S_ISCHR(item.st_mode))  # a removed file is a device in a layer
    digest = f"{item.st_size} {item.st_mtime_ns}"
    with suppress(OSError), opened(upper) as file:
        digest = digest_of_file(file) if item.st_size <= MOST_COMPARED else digest
    return WrittenFile(str(path), was, is_now=True, digest=digest, begins=beginning(upper, BEGINS))
