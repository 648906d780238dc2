"""The comparison of two arms over pairs of trials: the difference of their means, and the ratio. If there are several
instances, each counts once (`by_unit`)."""

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
    """The mean of the differences of pairs. `pairs` is their number, `unpaired` the number of values without a partner."""

    difference: Mean
    pairs: int
    unpaired: int


def paired_difference(values: Mapping[Pair, float], others: Mapping[Pair, float], measure: Measure = "spent") -> PairedMean:
    """Return the mean of `values` minus `others` over the pairs that both have, with its interval."""
    both, _ = in_common(values, others)
    difference = mean_of(differences_of(values, others), measure)
    return PairedMean(difference, len(both), len(values) + len(others) - 2 * len(both))


def differences_of(values: Mapping[Pair, float], others: Mapping[Pair, float]) -> list[float]:
    """Return `values` minus `others` for each pair that both have, or the mean of this for each instance if there are
    several."""
    ours, theirs = in_common(values, others)
    return list(by_unit({pair: ours[pair] - theirs[pair] for pair in ours}).values())


@dataclass(frozen=True)
class Ratio:
    """The mean of some values divided by the mean of others. No value is negative.

    pairs       the number of units with both values: pairs of trials, trials, or instances
    ratio       the ratio; None without a pair, or if the others' mean is 0
    low, high   the interval; None below two pairs, or if the ratio is 0, which has no logarithm; both equal the ratio if all
                pairs have the same
    """

    pairs: int
    ratio: float | None
    low: float | None
    high: float | None


def ratio_of_means(values: Mapping[Key, float], others: Mapping[Key, float]) -> Ratio:
    """Return the mean of `values` divided by the mean of `others`, over the units (keys) that both have.

    The interval is that of the ratio's logarithm, by Student's t and the delta method: the logarithm's standard error is the
    standard error of the mean of `values` - ratio * `others`, divided by the mean of `values`.

    Source: Cochran, Sampling Techniques, 3rd edition (1977), section 6.4, for the standard error of a ratio.
    Raises ValueError for a value that is not finite, or is negative.
    """
    keys = [key for key in values if key in others]
    pairs = len(keys)
    numerator, denominator = amount_of(values[key] for key in keys), amount_of(others[key] for key in keys)
    if numerator.mean is None or not denominator.mean:
        return Ratio(pairs, None, None, None)
    ratio = numerator.mean / denominator.mean
    residuals = mean_of(values[key] - ratio * others[key] for key in keys)
    if residuals.sd is None or not ratio:
        return Ratio(pairs, ratio, None, None)
    error = t_quantile(pairs - 1) * residuals.sd / math.sqrt(pairs)
    return Ratio(pairs, ratio, *ends(ratio, error / denominator.mean, "amount"))


def ratio_of_sums(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Return the sum of the numerators, which can be negative, divided by the sum of the denominators. A unit's numerator and
    denominator have the same index.

    A unit is a cluster: an instance with all its trials, or a trial if there is one instance. The 95% interval is by Student's
    t and the delta method. There is none below two units, or if all units have the same ratio, which shows no spread.

    Source: Cochran, Sampling Techniques, 3rd edition (1977), section 6.4. `reports/calibration` says why Student's t is used
    for values that can be negative. Raises ValueError for a denominator that is not above 0."""
    units, pairs = len(denominators), list(zip(numerators, denominators, strict=True))
    if not all(denominator > 0 for denominator in denominators):
        raise ValueError("a unit has nothing to put its total by")
    if not units:
        return Ratio(0, None, None, None)
    total = math.fsum(denominators)
    ratio = math.fsum(numerators) / total
    if units == 1 or len({numerator / denominator for numerator, denominator in pairs}) == 1:
        return Ratio(units, ratio, None, None)
    residuals = mean_of(numerator - ratio * denominator for numerator, denominator in pairs)
    error = t_quantile(units - 1) * (residuals.sd or 0.0) * math.sqrt(units) / total
    return Ratio(units, ratio, ratio - error, ratio + error)
