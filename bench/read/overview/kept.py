"""The rows of the index of runs, kept so that a run is read once.

A row is made again if a byte of its run, our code, Python or a package that computes has changed. The user's cache folder has a
file for each run. Of the archives that git holds, the rows stand beside them in `index.json`, each with its archive's digest.
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

COMMITTED = "index.json"
"""The file of a folder of runs that has the rows of its archives."""
MOST_BYTES = 2**22


class SpentTrials(BaseModel):
    """The number, tokens and dollars of some trials. `dollars` is None if the cost of a trial is unknown."""

    model_config = ConfigDict(frozen=True)
    trials: int
    tokens: int
    dollars: float | None

    @classmethod
    def total(cls, parts: Iterable[SpentTrials]) -> SpentTrials:
        """Return the sum of these."""
        parts = list(parts)
        known = [part.dollars for part in parts if part.dollars is not None]
        dollars = sum(known) if len(known) == len(parts) else None
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
    """What one model did on one pack of a run: what was solved, the price of a failure, and what was spent."""

    model_config = ConfigDict(frozen=True)
    pack: str
    model: str
    solved: str
    price: str
    spent: SpentTrials


class RunRow(BaseModel):
    """A run in the index. `missing` is the number of its trials that are not recorded. `verdicts` is a sentence on the paper's
    claims, or ""."""

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
        """The number of recorded trials in words, with the planned number if some are missing."""
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
        """Return a run's row.

        Args:
            run: The run's folder.
            read: Called if nothing is kept; its result is then kept.

        Raises:
            ResultsError: `read` raised it.
        """
        key = key_of(run, (METRICS,)) if self._folder else None
        if not self._folder or not key:
            return read()
        if committed := self._committed_row(run):
            return committed
        path = self._folder / f"{cache_name(run)}.json"
        with suppress(Exception), open_cache(path) as file:  # made anew, whatever is wrong with it
            kept = _KeptRow.model_validate_json(file.read(MOST_BYTES))
            if kept.key == key:
                return kept.row
        row = read()
        with suppress(OSError), create_cache(path) as file:  # else it is read anew the next time
            file.write(_KeptRow(key=key, row=row).model_dump_json().encode())
        return row

    def _committed_row(self, run: Path) -> RunRow | None:
        results = run.parent
        if results not in self._committed:
            self._committed[results] = {}
            with suppress(Exception):  # the rows are made from the runs
                content = content_of(results / COMMITTED, MOST_BYTES)
                self._committed[results] = _CommittedRows.model_validate_json(content).rows
        kept = self._committed[results].get(run.name)
        return kept.row if kept and kept.key == _digest_of_archive(run) else None


def committed_rows(runs: Iterable[tuple[Path, RunRow]]) -> bytes:
    """Return the content of the file `COMMITTED` with these rows, each with the folder of its run. The runs are archives."""
    rows = {folder.name: _KeptRow(key=_digest_of_archive(folder), row=row) for folder, row in runs}
    return f"{_CommittedRows(rows=rows).model_dump_json(indent=1)}\n".encode()


def _digest_of_archive(run: Path) -> str:
    """Return the digest of a run's archive; "" where the run is no archive alone, and may have a folder beside it."""
    if run.exists() or not archive_path(run).is_file():
        return ""
    with opened(archive_path(run)) as file:
        return digest_of_file(file)
