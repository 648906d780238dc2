"""A cache of the output of `bench runs` in the user's cache folder. As long as no file has changed, the command prints the
cached output and reads no run. This module does not import pandas.

A change is detected by the size and the two times of each file: the files of the runs, the pages of the reports, and the
package's code. The time of a file's last change of state cannot be set by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bench.common.bounds import Many
from bench.common.files import content_of, write_whole
from bench.common.paths import cache_folder
from bench.common.registry import GROUPS

PACKAGE_FOLDER = Path(__file__).parents[1]
COMPUTING_PACKAGES = ("numpy", "pandas", "pydantic", "scipy")
MAX_BYTES = 2**24
"""The most bytes of a cache file."""


class RunsTable(BaseModel):
    """The table of a group of runs, and the line below the table. The last row has the sums."""

    model_config = ConfigDict(frozen=True)
    titles: Many[str]
    rows: Many[Many[str]]
    line: str


class RunsOutput(BaseModel):
    """The output of `bench runs`: a table for each group, a line for each folder that is no run, and the last line."""

    model_config = ConfigDict(frozen=True)
    tables: Many[RunsTable]
    unread: Many[str]
    last: str


class _CacheFile(BaseModel):
    """A cache file: the digest of everything that determines the output, the state of the page's file, and the output."""

    key: str
    page: Many[int]
    shown: RunsOutput


class RunsOutputCache:
    """The cached output of `bench runs` for a folder of runs."""

    def __init__(self, results: Path, page: Path, dependencies: Sequence[str]):
        """Open the cache of a folder of runs.

        Args:
            results: The folder of runs.
            page: The page of the runs, in the folder of reports.
            dependencies: All other values on which the output depends.
        """
        self._path = cache_folder("shown") / f"{hashlib.sha256(os.fsencode(results.absolute())).hexdigest()}.json"
        self._page, self._key = page, _key_of(results, page.parent, dependencies)

    def read(self) -> RunsOutput | None:
        """Return the cached output if nothing has changed since it was stored and the page exists."""
        with suppress(Exception):  # whatever is wrong with the file, the output is made anew
            cached = _CacheFile.model_validate_json(content_of(self._path, MAX_BYTES))
            if self._key and (cached.key, cached.page) == (self._key, _file_state(self._page)):
                return cached.shown
        return None

    def store(self, shown: RunsOutput) -> None:
        """Store the output, unless a package has parts that can change unnoticed or the folder cannot be written."""
        with suppress(OSError):
            if self._key:
                cached = _CacheFile(key=self._key, page=_file_state(self._page), shown=shown)
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(self._path, cached.model_dump_json().encode())


def _key_of(results: Path, reports: Path, dependencies: Sequence[str]) -> str | None:
    """Return the digest of everything that determines the output; None if another package adds parts."""
    if any(group.startswith(GROUPS) and group != f"{GROUPS}commands" for group in metadata.entry_points().groups):
        return None
    versions = [sys.version, *(metadata.version(name) for name in COMPUTING_PACKAGES)]
    pages = (path for name in ("report.html", "report.md") for path in reports.glob(f"*/{name}"))
    states = []
    for path in (*_files_below(results), *pages, *_files_below(PACKAGE_FOLDER)):
        with suppress(FileNotFoundError):  # somebody removed it meanwhile
            states.append((str(path), *_file_state(path)))
    return hashlib.sha256(json.dumps([versions, *dependencies, sorted(states)]).encode()).hexdigest()


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, except compiled Python files."""
    for directory, _, names in os.walk(folder):
        yield from (Path(directory, name) for name in names if not name.endswith(".pyc"))


def _file_state(path: Path) -> tuple[int, int, int]:
    """Return the size of a file and the two times of its last change."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns
