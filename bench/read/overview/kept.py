"""A run's data for the index of runs, kept between two calls of `bench runs`.

A run is read again if its bytes, our code, Python or a package that computes has changed. The user's cache folder has a file
for each run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from bench.read.analysis.frames import Run, frame_of_trials
from bench.read.analysis.kept import kept_file, key_of, named_by_path, new_kept_file
from bench.read.analysis.metrics import METRICS
from bench.record.reading import read_manifest


class KeptRuns:
    """The data of runs, kept in a folder. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None):
        self._folder = folder

    def of(self, run: Path, read: Callable[[], tuple[Run, str]]) -> tuple[Run, str]:
        """Return a run with only the frame of trials, and its verdicts on the claims in a sentence.

        Args:
            run: The run's folder.
            read: Called if nothing is kept; its result is then kept.

        Raises:
            ResultsError: `read` raised it.
        """
        key = key_of(run, (METRICS,)) if self._folder else None
        if not self._folder or not key:
            return read()
        path = self._folder / f"{named_by_path(run)}.json"
        with suppress(Exception), kept_file(path) as file:  # made anew, whatever is wrong with it
            kept = json.load(file)
            if kept["key"] == key:
                return _with_trials(run, kept["trials"]), str(kept["verdicts"])
        made, verdicts = read()
        columns = {name: _values(column) for name, column in made.trials.items()}
        with suppress(OSError), new_kept_file(path) as file:  # else it is read anew the next time
            file.write(json.dumps({"key": key, "verdicts": verdicts, "trials": columns}).encode())
        return made, verdicts


def _values(column: pd.Series[Any]) -> list[Any]:
    """Return a column's values; None for each that is missing."""
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)]


def _with_trials(folder: Path, trials: Mapping[str, Sequence[Any]]) -> Run:
    """Return a run with these columns of its trials, and without its other frames."""
    calls, faults, recoveries, replies, waits = (pd.DataFrame() for _ in range(5))
    frames = (frame_of_trials(trials), calls, faults, recoveries, replies, waits)
    return Run(read_manifest(folder), (), *frames, errors_rerun=0, folder=folder)
