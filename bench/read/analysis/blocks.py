"""Data frames made block by block. Only the rows of past trials are kept, as columns; the trials are not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray

from bench.read.analysis.metrics import METRICS, Metric
from bench.read.analysis.rows import FRAMES, PLACE, Column, FrameRows, TrialRows
from bench.record.config import FAULT_FREE, StoredConfig

BLOCK = 2_000
"""Trials whose rows become columns together."""
JOINED = 16
"""Blocks that are joined: small ones would leave gaps in memory when they go."""
ORDER = ("scenario", "model", "plan", "instance", "repetition", "architecture")
"""The columns that sort rows."""
NAMED = ("scenario", "model", "plan", "architecture")
"""The columns whose names are in the config's order."""
ColumnBlocks = dict[str, list[ExtensionArray]]
"""Column -> its values, in the order of the blocks."""
ALIKE = ("scenario", "instance", "architecture", "model", "repetition")
"""What a trial and its control share."""


class TrialBlocks:
    """The rows of trials, in the order of arrival. A trial that comes again replaces its earlier rows.

    undetermined   the trials with a fault whose impact is not known
    """

    def __init__(self) -> None:
        self.undetermined: set[str] = set()
        self._last: dict[str, int] = {}
        """Trial -> the number of its valid rows."""
        self._added = self._closed = 0
        self._open: list[TrialRows] = []
        self._trials: ColumnBlocks = {}
        self._frames: dict[str, ColumnBlocks] = {part.name: {} for part in FRAMES}
        self._lengths: dict[str, list[NDArray[np.int64]]] = {part.name: [] for part in FRAMES}

    def __len__(self) -> int:
        return len(self._last)

    def __contains__(self, trial: str) -> bool:
        return trial in self._last

    def remove(self, trial: str) -> None:
        """Leave the rows of a trial out, since a trial with another id replaces it."""
        del self._last[trial]
        self.undetermined.discard(trial)

    def add(self, trial: TrialRows) -> None:
        """Append the rows of one trial."""
        name = trial.place[0]
        (self.undetermined.add if trial.undetermined else self.undetermined.discard)(name)
        self._last[name] = self._added
        self._added += 1
        self._open.append(trial)
        if len(self._open) == BLOCK:
            self._close()

    def controls(self) -> dict[str, str]:
        """Return undetermined trial -> its control, the same trial without faults. A trial without a control is left out."""
        self._close()
        names, plans, *places = (_values(self._trials[name]) for name in ("trial", "plan", *ALIKE))
        placed = list(zip(names, plans, zip(*places, strict=True), strict=True))
        fault_free = {place: trial for trial, plan, place in placed if plan == FAULT_FREE}
        return {trial: fault_free[place] for trial, _, place in placed if trial in self.undetermined and place in fault_free}

    def frames(self, config: StoredConfig) -> dict[str, pd.DataFrame]:
        """Return the data frames by name, `trials` first. Call it once: it frees the collected rows.

        Args:
            config: The run's config, which gives the order of the rows.
        """
        self._close()
        order = self._order(config)
        columns = {column.name: _take(self._trials, column.name, order) for column in (*PLACE, *METRICS)}
        place = {column.name: columns[column.name] for column in PLACE}
        made = {part.name: self._frame(part.name, part.rows, order, place) for part in FRAMES}
        return {"trials": pd.DataFrame(columns), **made}

    def _close(self) -> None:
        trials, self._open = self._open, []
        if not trials:
            return
        self._closed += 1
        join = self._closed % JOINED == 0
        place = zip(*(trial.place for trial in trials), strict=True)
        metrics = zip(*(trial.trial for trial in trials), strict=True)
        _append(self._trials, arrays(PLACE, place) | arrays([*METRICS], metrics), join)
        for part in FRAMES:
            rows = [trial.frames[part.name] for trial in trials]
            self._lengths[part.name].append(np.array([len(cells) for cells in rows], dtype=np.int64))
            values = zip(*itertools.chain.from_iterable(rows), strict=True) if any(rows) else ((),) * len(part.rows.names)
            read = dict(zip(part.rows.names, values, strict=True))
            columns = arrays(part.rows.columns, (read[column.name] for column in part.rows.columns))
            _append(self._frames[part.name], columns, join)

    def _order(self, config: StoredConfig) -> NDArray[np.int64]:
        """Return the numbers of the trials that count, in sorted order."""
        last = np.fromiter(self._last.values(), np.int64)
        rank = {name: ranks(config, name) for name in NAMED}
        keys = [_places(_values(self._trials[name]), rank.get(name, {}))[last] for name in ORDER]
        return last[np.lexsort(keys[::-1])]

    def _frame(
        self, name: str, of: FrameRows[Any], order: NDArray[np.int64], place: Mapping[str, ExtensionArray]
    ) -> pd.DataFrame:
        """Return the rows of all trials. `place` has the columns that begin every row, with a value for each trial."""
        lengths = np.concatenate(self._lengths[name])
        firsts, lengths = (np.cumsum(lengths) - lengths)[order], lengths[order]
        trial = np.repeat(np.arange(len(order)), lengths)
        rows = np.arange(len(trial)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + firsts[trial]
        begin = {column: values.take(trial) for column, values in place.items()}
        return pd.DataFrame(begin | {column.name: _take(self._frames[name], column.name, rows) for column in of.columns})


def ranks(config: StoredConfig, column: str) -> dict[str, int]:
    """Return the place of each name in the order of the config.

    Args:
        config: The run's config.
        column: `scenario`, `architecture`, `model` or `plan`.

    Returns:
        Name -> place, from 0.
    """
    return {name: place for place, name in enumerate(config.names(column))}


def arrays(columns: Sequence[Column[Any] | Metric], values: Iterable[Iterable[Any]]) -> dict[str, ExtensionArray]:
    """Return columns made from their values, each with its dtype."""
    return {
        column.name: pd.array(list(cells), dtype=dtype_of(column.dtype)) for column, cells in zip(columns, values, strict=True)
    }


def _places(values: Sequence[Any], rank: Mapping[str, int]) -> NDArray[np.int64]:
    """Return each value's rank among all values."""
    every = sorted(set(values), key=lambda value: (rank.get(value, len(rank)), value))
    place = {value: number for number, value in enumerate(every)}
    return np.array([place[value] for value in values], dtype=np.int64)


def _append(pieces: ColumnBlocks, columns: Mapping[str, ExtensionArray], join: bool) -> None:
    """Append a block to each column; `join` the last JOINED blocks into one."""
    for name, values in columns.items():
        blocks = pieces.setdefault(name, [])
        blocks.append(values)
        if join:
            blocks[-JOINED:] = [_join(blocks[-JOINED:])]


def _join(blocks: Sequence[ExtensionArray]) -> ExtensionArray:
    if len(blocks) == 1:
        return blocks[0]
    joined: ExtensionArray = pd.concat([pd.Series(block, copy=False) for block in blocks], ignore_index=True).array
    return joined


def _take(pieces: ColumnBlocks, name: str, rows: NDArray[np.int64]) -> ExtensionArray:
    """Return these rows of a column. The column's blocks are not kept."""
    taken: ExtensionArray = _join(pieces.pop(name)).take(rows)
    return taken


def _values(pieces: Sequence[ExtensionArray]) -> list[Any]:
    return [value for piece in pieces for value in piece.tolist()]


@cache  # pandas searches all its types for a name each time
def dtype_of(kind: str) -> Any:
    """Return the pandas type of the column with this name."""
    return pd.api.types.pandas_dtype(kind)
