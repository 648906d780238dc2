"""Two arms compared pair by pair: the difference of their means, and the ratio. If there are several instances, each counts
once (`by_unit`)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.read.analysis.measure import Measure
from bench.read.analysis.statistics.clusters import Pair, by_unit, in_common
from bench.read.analysis.statistics.intervals import Mean, amount_of, ends, mean_of, t_quantile

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class PairedMean:
    """The mean of the differences of the pairs, and the number of values without a partner."""

    difference: Mean
    pairs: int
    unpaired: int


def paired_difference(values: Mapping[Pair, float], others: Mapping[Pair, float], measure: Measure = "spent") -> PairedMean:
    """Return `values` minus `others`, pair by pair, with the interval of the mean difference."""
    both, _ = in_common(values, others)
    difference = mean_of(differences_of(values, others), measure)
    return PairedMean(difference, len(both), len(values) + len(others) - 2 * len(both))


def differences_of(values: Mapping[Pair, float], others: Mapping[Pair, float]) -> list[float]:
    """Return the difference of each pair, or each instance's mean difference if there are several."""
    ours, theirs = in_common(values, others)
    return list(by_unit({pair: ours[pair] - theirs[pair] for pair in ours}).values())


@dataclass(frozen=True)
class Ratio:
    """The mean of some values divided by the mean of others. No value is negative.

    pairs       units with both values: pairs of trials, trials, or instances
    ratio       None without a pair, or if the others' mean is 0
    low, high   None below two pairs, and if the ratio is 0, which has no logarithm; both the ratio if it is the same in all
                pairs
    """

    pairs: int
    ratio: float | None
    low: float | None
    high: float | None


def ratio_of_means(values: Mapping[Key, float], others: Mapping[Key, float]) -> Ratio:
    """Return the ratio of the paired means with the 95% interval of its logarithm, by Student's t and the delta method. The
    logarithm's standard error is the standard error of the mean of `values` - ratio `others`, divided by the mean of `values`.
    The keys are units: with several instances, their names.

    Source: Cochran, Sampling Techniques, 3rd edition (1977), section 6.4, for the standard error of a ratio.
    Raises ValueError for a value that is not finite, or is negative.
    """
    keys = [key for key in values if key in others]
    pairs = len(keys)
    above, below = amount_of(values[key] for key in keys), amount_of(others[key] for key in keys)
    if above.mean is None or not below.mean:
        return Ratio(pairs, None, None, None)
    ratio = above.mean / below.mean
    rest = mean_of(values[key] - ratio * others[key] for key in keys)
    if rest.sd is None or not ratio:
        return Ratio(pairs, ratio, None, None)
    error = t_quantile(pairs - 1) * rest.sd / math.sqrt(pairs)
    return Ratio(pairs, ratio, *ends(ratio, error / below.mean, "amount"))


def ratio_of_sums(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Return the sum of `above`, whose values can be negative, divided by the sum of `below`.

    The 95% interval is by Student's t and the delta method.

    Each unit is a cluster: an instance with all its trials, or a trial if there is one instance. There is no interval below two
    units, or if all units have the same ratio, which shows no spread.

    Source: Cochran, Sampling Techniques, 3rd edition (1977), section 6.4. `reports/calibration` says why
    Student's t for what has a sign.
    Raises ValueError for a unit whose `below` is not above 0.
    """
    units = len(below)
    if not all(amount > 0 for amount in below):
        raise ValueError("a unit has nothing to put its total by")
    if not units:
        return Ratio(0, None, None, None)
    whole = math.fsum(below)
    ratio = math.fsum(above) / whole
    if units == 1 or len({value / by for value, by in zip(above, below, strict=True)}) == 1:
        return Ratio(units, ratio, None, None)
    rest = mean_of(value - ratio * by for value, by in zip(above, below, strict=True))
    error = t_quantile(units - 1) * (rest.sd or 0.0) * math.sqrt(units) / whole
    return Ratio(units, ratio, ratio - error, ratio + error)
