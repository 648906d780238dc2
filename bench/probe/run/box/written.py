"""A file that was written in a box, as the program that holds the box tells its parent."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.common.digests import digest_of_file
from bench.common.files import opened

LARGEST = 2**26
"""Bytes of the largest file whose content is compared."""


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written or removed in the box; a database stands for its journals.

    path         where it stands
    first, now   what it held at first and what it holds now, as a digest; None where it is absent
    """

    path: Path
    first: str | None
    now: str | None


def written_file(path: Path, lower: Path) -> WrittenFile:
    """Return what a file holds. `lower` is where the owner's lies."""
    return WrittenFile(path, _digest_of(lower), _digest_of(path))


def _digest_of(path: Path) -> str | None:
    """Return the digest of what a file holds, with what its database's journal holds; of a large file its size and time."""
    digests = list[str]()
    for each in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError), opened(each) as file:
            item = os.fstat(file.fileno())
            if item.st_size:
                digests.append(digest_of_file(file) if item.st_size <= LARGEST else f"{item.st_size} {item.st_mtime_ns}")
    return " ".join(digests) if os.path.lexists(path) else None
