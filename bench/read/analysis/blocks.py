"""Make a run's data frames block by block, so that memory holds the rows of all trials as columns, but only a block of
trials."""

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

TRIALS_PER_BLOCK = 2_000
"""The number of trials whose rows become columns together."""
BLOCKS_PER_JOIN = 16
"""The number of blocks that are joined into one: many small blocks would leave gaps in memory."""
SORT_COLUMNS = ("scenario", "model", "plan", "instance", "repetition", "architecture")
"""The columns by which rows are sorted, in order of precedence."""
CONFIG_COLUMNS = ("scenario", "model", "plan", "architecture")
"""The columns of names from the config, which are sorted in the config's order."""
ColumnBlocks = dict[str, list[ExtensionArray]]
"""Column -> its blocks of values, in order."""
PAIR_COLUMNS = ("scenario", "instance", "architecture", "model", "repetition")
"""The columns in which a trial and its control are equal."""


class TrialBlocks:
    """The rows of trials, in the order in which trials were added. A trial that is added again replaces its earlier rows.

    undetermined   the ids of trials with a fault whose impact is not known
    """

    def __init__(self) -> None:
        self.undetermined: set[str] = set()
        self._position_of: dict[str, int] = {}
        """Trial -> the number of its valid rows."""
        self._added = self._closed = 0
        self._open: list[TrialRows] = []
        self._trials: ColumnBlocks = {}
        self._frames: dict[str, ColumnBlocks] = {part.name: {} for part in FRAMES}
        self._lengths: dict[str, list[NDArray[np.int64]]] = {part.name: [] for part in FRAMES}

    def __len__(self) -> int:
        return len(self._position_of)

    def __contains__(self, trial: str) -> bool:
        return trial in self._position_of

    def remove(self, trial: str) -> None:
        """Leave the rows of a trial out, since a trial with another id replaces it."""
        del self._position_of[trial]
        self.undetermined.discard(trial)

    def add(self, trial: TrialRows) -> None:
        """Append the rows of one trial. If the trial was added before, only the later rows count."""
        trial_id, *_ = trial.place
        self.undetermined.discard(trial_id)
        if trial.undetermined:
            self.undetermined.add(trial_id)
        self._position_of[trial_id] = self._added
        self._added += 1
        self._open.append(trial)
        if len(self._open) == TRIALS_PER_BLOCK:
            self._close()

    def controls(self) -> dict[str, str]:
        """Return undetermined trial -> its control, the same trial without faults. A trial without a control is left out."""
        self._close()
        ids, plans, *keys = (_values(self._trials[name]) for name in ("trial", "plan", *PAIR_COLUMNS))
        trials = list(zip(ids, plans, zip(*keys, strict=True), strict=True))
        controls = {key: trial for trial, plan, key in trials if plan == FAULT_FREE}
        return {trial: controls[key] for trial, _, key in trials if trial in self.undetermined and key in controls}

    def frames(self, config: StoredConfig) -> dict[str, pd.DataFrame]:
        """Return the data frames by name, `trials` first. Call it once: it frees the collected rows.

        Args:
            config: The run's config, which gives the order of the rows.
        """
        self._close()
        order = self._order(config)
        columns = {column.name: _take(self._trials, column.name, order) for column in (*PLACE, *METRICS)}
        place = {column.name: columns[column.name] for column in PLACE}
        frames = {part.name: self._frame(part.name, part.rows, order, place) for part in FRAMES}
        return {"trials": pd.DataFrame(columns), **frames}

    def _close(self) -> None:
        """Convert the rows of the open trials to a block of columns."""
        trials, self._open = self._open, []
        if not trials:
            return
        self._closed += 1
        join = self._closed % BLOCKS_PER_JOIN == 0
        place = zip(*(trial.place for trial in trials), strict=True)
        metrics = zip(*(trial.trial for trial in trials), strict=True)
        _append(self._trials, arrays(PLACE, place) | arrays([*METRICS], metrics), join)
        for part in FRAMES:
            rows_by_trial = [trial.frames[part.name] for trial in trials]
            self._lengths[part.name].append(np.array(list(map(len, rows_by_trial)), dtype=np.int64))
            by_name: dict[str, Iterable[Any]] = dict.fromkeys(part.rows.names, ())
            if any(rows_by_trial):
                values_by_column = zip(*itertools.chain.from_iterable(rows_by_trial), strict=True)
                by_name = dict(zip(part.rows.names, values_by_column, strict=True))
            columns = arrays(part.rows.columns, (by_name[column.name] for column in part.rows.columns))
            _append(self._frames[part.name], columns, join)

    def _order(self, config: StoredConfig) -> NDArray[np.int64]:
        """Return the row numbers of the trials' valid rows, in sorted order."""
        valid = np.fromiter(self._position_of.values(), np.int64)
        keys = []
        for name in reversed(SORT_COLUMNS):
            values, rank = _values(self._trials[name]), ranks(config, name) if name in CONFIG_COLUMNS else {}
            distinct = sorted(set(values), key=lambda value: (rank.get(value, len(rank)), value))
            numbers = {value: number for number, value in enumerate(distinct)}
            keys.append(np.array([numbers[value] for value in values], dtype=np.int64)[valid])
        return valid[np.lexsort(keys)]

    def _frame(
        self, name: str, part_rows: FrameRows[Any], order: NDArray[np.int64], place: Mapping[str, ExtensionArray]
    ) -> pd.DataFrame:
        """Return the frame of this name with the rows of all trials, in the order of the trials. `place` has the columns that
        begin every row, with a value for each trial."""
        lengths = np.concatenate(self._lengths[name])
        # The number of each trial's first row as stored, and the number of its rows, both in the new order.
        firsts, lengths = (np.cumsum(lengths) - lengths)[order], lengths[order]
        trial = np.repeat(np.arange(len(order)), lengths)
        # For each new row: its number within its trial, counted from the trial's first stored row.
        rows = np.arange(len(trial)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + firsts[trial]
        head = {column: values.take(trial) for column, values in place.items()}
        return pd.DataFrame(head | {column.name: _take(self._frames[name], column.name, rows) for column in part_rows.columns})


def ranks(config: StoredConfig, column: str) -> dict[str, int]:
    """Return the rank of each name in the order of the config.

    Args:
        config: The run's config.
        column: `scenario`, `architecture`, `model` or `plan`.

    Returns:
        Name -> rank, from 0.
    """
    return {name: rank for rank, name in enumerate(config.names(column))}


def arrays(columns: Sequence[Column[Any] | Metric], values: Iterable[Iterable[Any]]) -> dict[str, ExtensionArray]:
    """Return columns made from their values, each with its dtype."""
    return {
        column.name: pd.array(list(cells), dtype=dtype_of(column.dtype)) for column, cells in zip(columns, values, strict=True)
    }


def _append(blocks_by_column: ColumnBlocks, columns: Mapping[str, ExtensionArray], join: bool) -> None:
    """Append a block to each column. If `join`, the last BLOCKS_PER_JOIN blocks become one."""
    for name, values in columns.items():
        blocks = blocks_by_column.setdefault(name, [])
        blocks.append(values)
        if join:
            blocks[-BLOCKS_PER_JOIN:] = [_join(blocks[-BLOCKS_PER_JOIN:])]


def _join(blocks: Sequence[ExtensionArray]) -> ExtensionArray:
    """Return blocks of a column as one."""
    if len(blocks) == 1:
        return blocks[0]
    joined: ExtensionArray = pd.concat([pd.Series(block, copy=False) for block in blocks], ignore_index=True).array
    return joined


def _take(blocks_by_column: ColumnBlocks, name: str, rows: NDArray[np.int64]) -> ExtensionArray:
    """Return these rows of a column, and free its blocks."""
    values: ExtensionArray = _join(blocks_by_column.pop(name)).take(rows)
    return values


def _values(blocks: Sequence[ExtensionArray]) -> list[Any]:
    """Return all values of a column's blocks."""
    return [value for block in blocks for value in block.tolist()]


@cache  # pandas searches all its types for a name each time
def dtype_of(kind: str) -> Any:
    """Return the pandas type of this name."""
    return pd.api.types.pandas_dtype(kind)
