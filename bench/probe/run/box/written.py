"""The digests of a file that was written in a box, before and after: the program in the box reports them to its parent."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.common.digests import digest_of_file
from bench.common.files import opened

MAX_DIGESTED_BYTES = 2**26
"""The largest file in bytes whose content is compared."""


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written or removed in the box; a journal counts as its database.

    path    its path
    first   the digest of its content before the run; None if it did not exist
    now     the digest of its content now; None if it does not exist
    """

    path: Path
    first: str | None
    now: str | None


def written_file(path: Path, lower: Path) -> WrittenFile:
    """Return a file with its digests: `path` is the file in the box, `lower` the owner's file."""
    return WrittenFile(path, _digest_of(lower), _digest_of(path))


def _digest_of(path: Path) -> str | None:
    """Return the digests of a file and of its journal, if it has one, as one text; for a large file its size and time instead.
    None if there is no such file."""
    digests = list[str]()
    for content_path in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError), opened(content_path) as file:
            item = os.fstat(file.fileno())
            if item.st_size:
                digests.append(
                    digest_of_file(file) if item.st_size <= MAX_DIGESTED_BYTES else f"{item.st_size} {item.st_mtime_ns}"
                )
    return " ".join(digests) if os.path.lexists(path) else None
