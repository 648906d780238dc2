"""What `bench runs` printed last, kept in the user's cache folder: as long as nothing has changed, it is printed again, and no
run is read. Here nothing imports pandas.

A change is seen by the size and the two times of each file: of the runs, of the reports' pages, and of our code. The time of a
file's last change of state cannot be set by hand.
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

CODE = Path(__file__).parents[1]
COMPUTING = ("numpy", "pandas", "pydantic", "scipy")
MOST_BYTES = 2**24
"""The most bytes that are read of what was printed for a folder."""


class RunsTable(BaseModel):
    """The table of a group of runs, and the line below it. The last row has the sums."""

    model_config = ConfigDict(frozen=True)
    titles: Many[str]
    rows: Many[Many[str]]
    line: str


class RunsShown(BaseModel):
    """What `bench runs` prints: a table for each group, a line for each folder that is no run, and the last line."""

    model_config = ConfigDict(frozen=True)
    tables: Many[RunsTable]
    unread: Many[str]
    last: str


class _KeptFile(BaseModel):
    key: str
    page: Many[int]
    shown: RunsShown


class KeptShown:
    """What was printed for a folder of runs."""

    def __init__(self, results: Path, page: Path, asked: Sequence[str]):
        """`page` is the page of the runs, in the folder of reports. `asked` is all else that what is printed depends on."""
        self._path = cache_folder("shown") / f"{hashlib.sha256(os.fsencode(results.absolute())).hexdigest()}.json"
        self._page, self._key = page, _key_of(results, page.parent, asked)

    def read(self) -> RunsShown | None:
        """Return what was printed, if nothing has changed since then, and the page is there."""
        with suppress(Exception):  # made anew, whatever is wrong with it
            kept = _KeptFile.model_validate_json(content_of(self._path, MOST_BYTES))
            if self._key and (kept.key, kept.page) == (self._key, _state(self._page)):
                return kept.shown
        return None

    def keep(self, shown: RunsShown) -> None:
        """Keep what is printed, unless a package has parts that can change unnoticed, or the folder cannot be written."""
        with suppress(OSError):
            if self._key:
                kept = _KeptFile(key=self._key, page=_state(self._page), shown=shown)
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(self._path, kept.model_dump_json().encode())


def _key_of(results: Path, reports: Path, asked: Sequence[str]) -> str | None:
    """Return the digest of all that determines what is printed; None if a part comes from another package."""
    if any(group.startswith(GROUPS) and group != f"{GROUPS}commands" for group in metadata.entry_points().groups):
        return None
    versions = [sys.version, *(metadata.version(name) for name in COMPUTING)]
    pages = (path for name in ("report.html", "report.md") for path in reports.glob(f"*/{name}"))
    states = []
    for path in (*_below(results), *pages, *_below(CODE)):
        with suppress(FileNotFoundError):  # somebody removed it meanwhile
            states.append((str(path), *_state(path)))
    return hashlib.sha256(json.dumps([versions, *asked, sorted(states)]).encode()).hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names if not name.endswith(".pyc"))


def _state(path: Path) -> tuple[int, int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns
