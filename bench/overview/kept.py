"""A run's data for the index, kept from one `bench runs` to the next.

A run is read again if its bytes, our code, Python or a package that computes has changed. The user's cache folder has a file
for each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analysis.frames import Run, frame_of_trials
from bench.analysis.metrics import METRICS
from bench.errors import ResultsError
from bench.experiment.archive import archive_path
from bench.experiment.files import GRADES, MANIFEST, TRIALS, write_files
from bench.experiment.reading import read_manifest
from bench.report.claims_part import CLAIMS

PACKAGE = Path(__file__).parents[1]
COMPUTING = ("numpy", "pandas", "pydantic", "scipy")
CACHE = "recovery-bench"


def cache_folder() -> Path:
    """Return the user's cache folder for runs. https://specifications.freedesktop.org/basedir-spec/latest/"""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / CACHE / "runs"


class KeptRuns:
    """Runs' data, kept in a folder; without a folder nothing is kept. Parts of other packages could change a run's numbers
    unnoticed, so nothing is kept if any is installed."""

    def __init__(self, folder: Path | None = None):
        others = any(part.package for registry in (METRICS, CLAIMS) for part in registry)
        self._folder = None if others else folder

    def of(self, run: Path, read: Callable[[], tuple[Run, str]]) -> tuple[Run, str]:
        """Return a run with only the frame of trials, and its verdicts on the claims in a sentence.

        Args:
            run: The run's folder.
            read: Called if nothing is kept; its result is then kept.

        Raises:
            ResultsError: `read` raised it.
        """
        if not self._folder:
            return read()
        path, key = self._folder / f"{_digest(('', os.fsencode(run.absolute())))}.json", self._key(run)
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            kept = json.loads(path.read_bytes())
            if kept["key"] == key:
                return _with_trials(run, kept["trials"]), str(kept["verdicts"])
        made, verdicts = read()
        columns = {name: column.astype(object).where(column.notna(), None).tolist() for name, column in made.trials.items()}
        with suppress(ResultsError):  # then it is read anew the next time
            write_files(path.parent, {path.name: json.dumps({"key": key, "verdicts": verdicts, "trials": columns}).encode()})
        return made, verdicts

    def _key(self, run: Path) -> str:
        """Return the digest of all that determines the run's data."""
        files = [path for path in (archive_path(run), *(run / name for name in (MANIFEST, TRIALS, GRADES))) if path.is_file()]
        return _digest(self._code, *((path.name, path.read_bytes()) for path in files))

    @cached_property
    def _code(self) -> tuple[str, bytes]:
        versions = [sys.version, *(f"{name} {metadata.version(name)}" for name in COMPUTING)]
        files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml"))
        named = ((str(path.relative_to(PACKAGE)), path.read_bytes()) for path in files)
        return " ".join(versions), _digest(*named).encode()


def _with_trials(folder: Path, trials: Mapping[str, Sequence[Any]]) -> Run:
    """Return a run with these columns of trials and no other frame."""
    calls, faults, recoveries, replies, waits = (pd.DataFrame() for _ in range(5))
    frames = (frame_of_trials(trials), calls, faults, recoveries, replies, waits)
    return Run(read_manifest(folder), (), *frames, errors_rerun=0, folder=folder)


def _digest(*parts: tuple[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in parts:
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
