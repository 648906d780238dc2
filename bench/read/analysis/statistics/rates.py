"""Rates and differences of two rates, with their 95% intervals, and the three ways to count trials that ended in an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from scipy import special

from bench.read.analysis.statistics.clusters import Pair, effective_number, in_common
from bench.read.analysis.statistics.intervals import CONFIDENCE

NORMAL_QUANTILE = float(special.ndtri((1 + CONFIDENCE) / 2))
"""The quantile of the normal distribution for a two-sided 95% interval."""


@dataclass(frozen=True)
class Share:
    """A rate k / n with a 95% interval: Wilson's, or if `is_exact` Clopper and Pearson's, which is never too narrow. The rate
    and its interval are None if n is 0. `instances` is the number of instances if the interval counts these instead of n
    values."""

    k: int
    n: int
    rate: float | None
    low: float | None
    high: float | None
    instances: int | None = None
    is_exact: bool = False


@cache
def share_of(k: int, n: int) -> Share:
    """Return the rate k / n with Wilson's interval: Probable inference, JASA 22 (1927). Raises ValueError unless 0 <= k <=
    n."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if n == 0:
        return Share(k, n, None, None, None)
    return Share(k, n, k / n, *wilson(k / n, n))


@cache
def exact_share(k: int, n: int) -> Share:
    """Return the rate k / n with the exact interval instead of Wilson's, for rates near 0 and 1 that need a guarantee.

    Source: Clopper and Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934). Raises ValueError unless 0 <= k
    <= n.
    """
    share = share_of(k, n)
    if n == 0:
        return share
    low, high = _clopper_pearson(k, n)
    return replace(share, low=low, high=high, is_exact=True)


def share_by_instance(instances: Sequence[str], values: Sequence[bool]) -> Share:
    """Return the share of values that are true, each of the instance at its index. Wilson's interval counts their
    `effective_number`. For one instance this is the number of values, and the result is `share_of`."""
    n, k = len(values), sum(map(bool, values))
    number = effective_number(instances, list(map(float, values)))
    if number == n:
        return share_of(k, n)
    low, high = wilson(k / n, number)
    return Share(k, n, k / n, low, high, len(set(instances)))


def exact_share_by_instance(instances: Sequence[str], values: Sequence[bool]) -> Share:
    """Return the share of values that are true, each of the instance at its index. Clopper and Pearson's interval counts their
    `effective_number`. If all or none are true, the effective number is the number of instances, because equal values do not
    show how alike the trials of an instance are.

    Source: Korn and Graubard, Survey Methodology 24 (1998).
    """
    n, k = len(values), sum(map(bool, values))
    number = effective_number(instances, list(map(float, values)))
    if number == n:
        return exact_share(k, n)
    return Share(k, n, k / n, *_clopper_pearson(k / n * number, number), len(set(instances)), is_exact=True)


def _clopper_pearson(k: float, n: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of k of n, which can be fractions: quantiles of two beta distributions."""
    below = (1 - CONFIDENCE) / 2
    low = float(special.betaincinv(k, n - k + 1, below)) if k > 0 else 0.0
    high = float(special.betainccinv(k + 1, n - k, below)) if k < n else 1.0
    return low, high


def wilson(rate: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of a rate. n can be a fraction. If the rate is 0 or 1, the interval ends there."""
    z2 = NORMAL_QUANTILE**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    margin = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return centre - margin if rate > 0 else 0.0, centre + margin if rate < 1 else 1.0


@dataclass(frozen=True)
class RateDifference:
    """The rate of one arm minus the rate of another, over the same `pairs`.

    gained, lost   the number of pairs in which only the first arm, or only the other, succeeded
    difference     (gained - lost) / pairs; None without a pair, as is its interval
    unpaired       the number of values without a partner
    """

    pairs: int
    gained: int
    lost: int
    difference: float | None
    low: float | None
    high: float | None
    unpaired: int


def paired_rates(values: Mapping[Pair, bool], others: Mapping[Pair, bool]) -> RateDifference:
    """Return the rate of `values` minus the rate of `others`, over the pairs that both have. With several instances the
    interval counts the `effective_number` of the pairs' differences.

    Source: the interval is Bonett and Price's, Statistical Methods in Medical Research 21 (2012), a Wald interval with one pair
    added to each of the two kinds of discordant pairs.
    """
    ours, theirs = in_common(values, others)
    pairs, unpaired = len(ours), len(values) + len(others) - 2 * len(ours)
    if not pairs:
        return RateDifference(0, 0, 0, None, None, None, unpaired)
    differences = [int(ours[pair]) - int(theirs[pair]) for pair in ours]
    gained, lost = differences.count(1), differences.count(-1)
    effective_share = effective_number([instance for instance, _ in ours], differences) / pairs
    low, high = _bonett_price(gained * effective_share, lost * effective_share, pairs * effective_share)
    return RateDifference(pairs, gained, lost, (gained - lost) / pairs, low, high, unpaired)


def unpaired_rates(share: Share, other: Share) -> tuple[float, float] | None:
    """Return the 95% interval of `share` minus `other`, for rates that are not paired. None if either rate has no values.

    Source: Newcombe, Interval estimation for the difference between independent proportions, Statistics in Medicine 17 (1998),
    method 10, of each rate's own interval.
    """
    rates = (share.rate, share.low, share.high, other.rate, other.low, other.high)
    if any(rate is None for rate in rates):
        return None
    p, low, high, q, other_low, other_high = (rate for rate in rates if rate is not None)
    return p - q - math.hypot(p - low, other_high - q), p - q + math.hypot(high - p, q - other_low)


def _bonett_price(gained: float, lost: float, pairs: float) -> tuple[float, float]:
    """Return Bonett and Price's interval of a paired difference of rates. The numbers of pairs can be fractions."""
    up, down = (gained + 1) / (pairs + 2), (lost + 1) / (pairs + 2)
    margin = NORMAL_QUANTILE * math.sqrt((up + down - (up - down) ** 2) / (pairs + 2))
    return max(-1.0, up - down - margin), min(1.0, up - down + margin)


@dataclass(frozen=True)
class Denominators:
    """The share solved for each of three ways to count trials that ended in an error: left out, as failures (the worst case),
    or as solved (`best`)."""

    left_out: Share
    as_failures: Share
    best: Share


def ranking_depends(first: Denominators, second: Denominators) -> bool:
    """Whether the way to count errors decides which of two arms has the higher rate.

    The arms are compared with the same way for both, and each arm's worst case with the other's best. A comparison with a rate
    that does not exist, because every trial ended in an error, counts as an order of its own.
    """
    comparisons = (
        (first.left_out, second.left_out),
        (first.as_failures, second.as_failures),
        (first.best, second.best),
        (first.as_failures, second.best),
        (first.best, second.as_failures),
    )
    return len({_order(share, other) for share, other in comparisons}) > 1


def _order(share: Share, other: Share) -> int | None:
    """Return 1 if the first rate is higher, -1 if it is lower, 0 if both are equal; None if one does not exist."""
    if share.rate is None or other.rate is None:
        return None
    # Cross-multiplied, so that equal rates compare as equal.
    left, right = share.k * other.n, other.k * share.n
    return (left > right) - (left < right)
