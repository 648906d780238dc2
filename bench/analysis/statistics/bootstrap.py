"""Resampling units, each with all that was measured of it, so that what its values have in common cancels out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import stats

from bench.analysis.statistics.intervals import CONFIDENCE
from bench.analysis.statistics.significance import DRAWN, RESAMPLES, generator

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def resampled(units: int, resamples: int = RESAMPLES) -> Iterator[Places]:
    """The places of the units in each resample, some resamples at a time: as many places across as there are units."""
    rng, at_once = generator(), max(1, DRAWN // units)
    for begun in range(0, resamples, at_once):
        yield rng.integers(units, size=(min(at_once, resamples - begun), units))


def percentiles(again: Numbers, units: int) -> tuple[float, float]:
    """The 95% interval of a number that came out as `again` in the resamples of so many units, two at least: its expanded
    percentile interval. The plain one is too short for few units, as it would be for a mean with the normal quantile and the
    uncorrected variance; this one goes as far out in the tails as Student's t does.

    Its ends are numbers that came out, never between two of them, of which one may be infinite.

    Source: Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015), section 5.3.
    """
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, units - 1)) * math.sqrt(units / (units - 1))
    ordered = np.sort(again)
    beyond = int(stats.norm.sf(reach) * len(ordered))
    return float(ordered[beyond]), float(ordered[-1 - beyond])
