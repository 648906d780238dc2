"""The cache of the rows of the index of runs, so that each run is read only once.

A row is made again if a byte of its run, our code, Python or a package that computes has changed. The user's cache folder has a
file for each run. The rows of archives that git holds are in `index.json` beside them, each with its archive's digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bench.common.bounds import BoundedTable, Many
from bench.common.digests import digest_of_file
from bench.common.files import content_of, opened
from bench.read.analysis.kept import cache_name, create_cache, key_of, open_cache
from bench.read.analysis.metrics import METRICS
from bench.record.archive import archive_path

COMMITTED_ROWS = "index.json"
"""The file of a folder of runs that has the rows of the folder's archives."""
MAX_ROW_BYTES = 2**22
"""The most bytes that are read of a file of rows."""


class SpentTrials(BaseModel):
    """The number of some trials, and the tokens and dollars that they took. `dollars` is None if the cost of a trial is
    unknown."""

    model_config = ConfigDict(frozen=True)
    trials: int
    tokens: int
    dollars: float | None

    @classmethod
    def total(cls, parts: Iterable[SpentTrials]) -> SpentTrials:
        """Return the sum of the parts. Its dollars are unknown if those of one part are."""
        parts = list(parts)
        known_dollars = [part.dollars for part in parts if part.dollars is not None]
        dollars = sum(known_dollars) if len(known_dollars) == len(parts) else None
        return cls(trials=sum(part.trials for part in parts), tokens=sum(part.tokens for part in parts), dollars=dollars)

    @property
    def cost(self) -> str:
        """The dollars as text."""
        return "unknown" if self.dollars is None else f"{self.dollars:.5f}"

    @property
    def text(self) -> str:
        """The trials, tokens and dollars in words."""
        dollars = "dollars unknown" if self.dollars is None else f"{self.cost} dollars"
        return f"{self.trials:,} trials, {self.tokens:,} tokens, {dollars}"


class RowOfModel(BaseModel):
    """The results of one model on one pack of a run, as the index shows them."""

    model_config = ConfigDict(frozen=True)
    pack: str
    model: str
    solved: str
    price: str
    spent: SpentTrials


class RunRow(BaseModel):
    """A run in the index. `missing` is the number of its planned trials that are not recorded. `verdicts` is a sentence on the
    paper's claims, or ""."""

    model_config = ConfigDict(frozen=True)
    name: str
    started: str
    tags: Many[str]
    note: str
    missing: int
    solved: str
    simulated: bool
    verdicts: str
    models: Many[RowOfModel]

    @property
    def spent(self) -> SpentTrials:
        """What all models of the run spent."""
        return SpentTrials.total(row.spent for row in self.models)

    @property
    def trials(self) -> str:
        """The number of recorded trials as text, with the planned number if some are missing."""
        recorded = self.spent.trials
        return f"{recorded:,} of {recorded + self.missing:,}" if self.missing else f"{recorded:,}"


class _KeptRow(BaseModel):
    key: str
    row: RunRow


class _CommittedRows(BaseModel):
    rows: BoundedTable[str, _KeptRow]


class KeptRows:
    """The cached rows of runs. Without a folder nothing is cached."""

    def __init__(self, folder: Path | None = None):
        self._folder = folder
        self._committed: dict[Path, dict[str, _KeptRow]] = {}

    def of(self, run: Path, read: Callable[[], RunRow]) -> RunRow:
        """Return a run's row from the cache, or by `read`, whose result is then cached. Raises ResultsError if `read` does.

        Args:
            run: The run's folder.
            read: Reads the run and returns its row.
        """
        key = key_of(run, (METRICS,)) if self._folder else None
        if not self._folder or not key:
            return read()
        if committed := self._committed_row(run):
            return committed
        path = self._folder / f"{cache_name(run)}.json"
        with suppress(Exception), open_cache(path) as file:  # the row is made anew, whatever is wrong with the file
            cached = _KeptRow.model_validate_json(file.read(MAX_ROW_BYTES))
            if cached.key == key:
                return cached.row
        row = read()
        with suppress(OSError), create_cache(path) as file:  # else the run is read again the next time
            file.write(_KeptRow(key=key, row=row).model_dump_json().encode())
        return row

    def _committed_row(self, run: Path) -> RunRow | None:
        """Return the row of an archive from the file beside it; None if the file has none for the archive as it is."""
        results = run.parent
        if results not in self._committed:
            self._committed[results] = {}
            with suppress(Exception):  # without the file the rows are made from the runs
                content = content_of(results / COMMITTED_ROWS, MAX_ROW_BYTES)
                self._committed[results] = _CommittedRows.model_validate_json(content).rows
        committed = self._committed[results].get(run.name)
        return committed.row if committed and committed.key == _digest_of_archive(run) else None


def committed_rows(runs: Iterable[tuple[Path, RunRow]]) -> bytes:
    """Return the content of the file COMMITTED_ROWS for these archives, each given by the folder of its run and its row."""
    rows = {folder.name: _KeptRow(key=_digest_of_archive(folder), row=row) for folder, row in runs}
    return f"{_CommittedRows(rows=rows).model_dump_json(indent=1)}\n".encode()


def _digest_of_archive(run: Path) -> str:
    """Return the digest of a run's archive; "" if the run has a folder or no archive."""
    if run.exists() or not archive_path(run).is_file():
        return ""
    with opened(archive_path(run)) as file:
        return digest_of_file(file)
