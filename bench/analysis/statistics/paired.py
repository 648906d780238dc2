"""Two arms pair by pair: their difference, and the ratio of their means. Of several instances each counts once (`by_unit`)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats

from bench.analysis.statistics.clusters import Pair, by_unit, in_common
from bench.analysis.statistics.intervals import CONFIDENCE, Mean, mean_of

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class PairedMean:
    """The mean of the differences over so many pairs, and how many values had none to be paired with."""

    difference: Mean
    pairs: int
    unpaired: int


def paired_difference(values: Mapping[Pair, float], others: Mapping[Pair, float]) -> PairedMean:
    """`values` less `others`, pair by pair; the interval is that of the mean difference."""
    both, _ = in_common(values, others)
    return PairedMean(mean_of(differences_of(values, others)), len(both), len(values) + len(others) - 2 * len(both))


def differences_of(values: Mapping[Pair, float], others: Mapping[Pair, float]) -> list[float]:
    """The difference of each unit: of a pair, or of several instances the mean of each one's pairs."""
    ours, theirs = in_common(values, others)
    return list(by_unit({pair: ours[pair] - theirs[pair] for pair in ours}).values())


@dataclass(frozen=True)
class Ratio:
    """The mean of some values by that of the others.

    pairs       units that have both: pairs of trials, trials with two values, or instances
    ratio       None without a pair, or where the others' mean is 0
    low, high   None below two pairs, and where the others' mean cannot be told from 0: then no bound on the ratio holds
    """

    pairs: int
    ratio: float | None
    low: float | None
    high: float | None


def ratio_of_means(values: Mapping[Key, float], others: Mapping[Key, float]) -> Ratio:
    """The ratio of the paired means with Fieller's 95% interval: all r for which a paired t test of `values` - r `others`
    finds no difference. The keys are units: of several instances, their names.

    Source: Fieller, Some problems in interval estimation, JRSS B 16 (1954).
    Raises ValueError for a value that is no finite number.
    """
    keys = [key for key in values if key in others]
    pairs = len(keys)
    above, below = mean_of(values[key] for key in keys), mean_of(others[key] for key in keys)
    if above.mean is None or not below.mean:
        return Ratio(pairs, None, None, None)
    ratio = above.mean / below.mean
    if pairs < 2:
        return Ratio(pairs, ratio, None, None)
    spread = np.cov([values[key] for key in keys], [others[key] for key in keys])
    low, high = _fieller(above.mean, below.mean, spread / pairs, float(stats.t.ppf((1 + CONFIDENCE) / 2, pairs - 1)) ** 2)
    return Ratio(pairs, ratio, low, high)


def _fieller(above: float, below: float, spread: np.ndarray, t2: float) -> tuple[float | None, float | None]:
    """The two roots r of (above - r below)^2 = t2 Var(above - r below); `spread` is the covariance of the two means."""
    a = below**2 - t2 * float(spread[1, 1])
    b = above * below - t2 * float(spread[0, 1])
    c = above**2 - t2 * float(spread[0, 0])
    if a <= 0:
        return None, None
    root = math.sqrt(max(0.0, b**2 - a * c))
    return (b - root) / a, (b + root) / a
