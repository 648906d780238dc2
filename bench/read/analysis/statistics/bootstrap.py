"""Resample units with all their measured values, so that what the values share cancels out."""

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
DRAWN = 1 << 20
"""The most places of units in memory."""


def resampled(units: int, resamples: int = RESAMPLES) -> Iterator[Numbers]:
    """Yield how often each unit is in each resample: resamples down, units across, some resamples at a time. A resample's sums
    are then a product of matrices."""
    return (counts.astype(float) for counts in _declared_counts(units, resamples))


@lru_cache(1)  # the intervals of a table resample the same units
def _declared_counts(units: int, resamples: int) -> Sequence[npt.NDArray[np.integer[Any]]]:
    rng, at_once, drawn = generator(), max(1, DRAWN // units), []
    for begun in range(0, resamples, at_once):
        count = min(at_once, resamples - begun)
        places = rng.integers(units, size=(count, units)) + units * np.arange(count)[:, np.newaxis]
        counts = np.bincount(places.ravel(), minlength=count * units).reshape(count, units)
        drawn.append(counts.astype(np.min_scalar_type(counts.max())))
    return drawn


def percentiles(again: Numbers, units: int) -> tuple[float, float]:
    """Return the 95% interval of a number that had the values `again` in the resamples of at least two units: its expanded
    percentile interval. The plain interval is too short for few units, as an interval of a mean would be with the normal
    quantile and the uncorrected variance. This one reaches as far into the tails as Student's t.

    Its ends are values of `again`, never between two values, because one of them can be infinite.

    Source: Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015), section 5.3.
    """
    reach = t_quantile(units - 1) * math.sqrt(units / (units - 1))
    ordered = np.sort(again)
    beyond = int(special.ndtr(-reach) * len(ordered))
    return float(ordered[beyond]), float(ordered[-1 - beyond])
