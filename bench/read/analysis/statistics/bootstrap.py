"""The bootstrap: resamples of units, each with all its measured values, and the interval of a number that was computed in each
resample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from bench.read.analysis.statistics.intervals import t_quantile
from bench.read.analysis.statistics.significance import generator

Numbers = npt.NDArray[np.float64]

RESAMPLES = 2000
MAX_DRAWS = 1 << 20
"""The most drawn units in memory."""


def resampled(units: int, resamples: int = RESAMPLES) -> Iterator[Numbers]:
    """Yield arrays of shape (some resamples, units): how often each resample has each unit. A resample's sum is then the
    product of its row with the units' values. The same resamples are yielded each time."""
    return (counts.astype(float) for counts in _resample_counts(units, resamples))


@lru_cache(1)  # the intervals of a table resample the same units
def _resample_counts(units: int, resamples: int) -> Sequence[npt.NDArray[np.integer[Any]]]:
    """Return the arrays that `resampled` yields, in the smallest type of integers."""
    rng, batch_size, batches = generator(), max(1, MAX_DRAWS // units), []
    for start in range(0, resamples, batch_size):
        size = min(batch_size, resamples - start)
        cells = rng.integers(units, size=(size, units)) + units * np.arange(size)[:, np.newaxis]
        counts = np.bincount(cells.ravel(), minlength=size * units).reshape(size, units)
        batches.append(counts.astype(np.min_scalar_type(counts.max())))
    return batches


def percentiles(resampled_values: Numbers, units: int) -> tuple[float, float]:
    """Return the 95% interval of a number by its values in resamples of at least two units: the expanded percentile interval.

    The plain percentile interval is too short for few units, as an interval of a mean would be with the normal quantile and the
    uncorrected variance. The expanded interval reaches as far into the tails as Student's t. Its ends are values of resamples,
    never between two values, because a value can be infinite.

    Source: Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015), section 5.3.
    """
    quantile = t_quantile(units - 1) * math.sqrt(units / (units - 1))
    ordered = np.sort(resampled_values)
    tail = int(special.ndtr(-quantile) * len(ordered))
    return float(ordered[tail]), float(ordered[-1 - tail])
