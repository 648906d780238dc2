"""Rates, paired differences of two rates, and the effect of trials that ended in an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from scipy import special

from bench.read.analysis.statistics.clusters import Pair, effective_number, in_common
from bench.read.analysis.statistics.intervals import CONFIDENCE

NORMAL = float(special.ndtri((1 + CONFIDENCE) / 2))
"""The quantile of the normal distribution for a two-sided 95% interval."""


@dataclass(frozen=True)
class Share:
    """A rate k / n with Wilson's 95% interval. All values are None if n is 0. If the interval treats instances as the units and
    not the n values, `instances` is the number of instances. An exact interval is never too narrow."""

    k: int
    n: int
    rate: float | None
    low: float | None
    high: float | None
    instances: int | None = None
    is_exact: bool = False


@cache
def share_of(k: int, n: int) -> Share:
    """Return k of n. Source: Wilson, Probable inference, JASA 22 (1927). Raises ValueError unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if n == 0:
        return Share(k, n, None, None, None)
    return Share(k, n, k / n, *wilson(k / n, n))


@cache
def exact_share(k: int, n: int) -> Share:
    """Return k of n with the exact interval instead of Wilson's, for rates near 0 and 1 that need a guarantee.

    Source: Clopper and Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934). Raises ValueError unless 0 <= k
    <= n.
    """
    share = share_of(k, n)
    if n == 0:
        return share
    low, high = _clopper_pearson(k, n)
    return replace(share, low=low, high=high, is_exact=True)


def share_by_instance(instances: Sequence[str], held: Sequence[bool]) -> Share:
    """Return the share of values that held; each belongs to the instance at its place. Wilson's interval takes their
    `effective_number`. For one instance that is their number, and the result is `share_of`."""
    n, k = len(held), sum(map(bool, held))
    number = effective_number(instances, [float(success) for success in held])
    if number == n:
        return share_of(k, n)
    low, high = wilson(k / n, number)
    return Share(k, n, k / n, low, high, len(set(instances)))


def exact_share_by_instance(instances: Sequence[str], held: Sequence[bool]) -> Share:
    """Return the exact share of values that held; each belongs to the instance at its place. Clopper and Pearson's interval
    takes their `effective_number`: one for each instance if all or none held, which hides how alike they are.

    Source: Korn and Graubard, Survey Methodology 24 (1998).
    """
    n, k = len(held), sum(map(bool, held))
    number = effective_number(instances, [float(success) for success in held])
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
    z2 = NORMAL**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return centre - half if rate > 0 else 0.0, centre + half if rate < 1 else 1.0


@dataclass(frozen=True)
class RateDifference:
    """The rate of one arm minus the rate of another, over the same `pairs`.

    gained, lost   pairs in which only the one, or only the other, held: only these differ
    difference     (gained - lost) / pairs; None without a pair, as is its interval
    """

    pairs: int
    gained: int
    lost: int
    difference: float | None
    low: float | None
    high: float | None
    unpaired: int


def paired_rates(values: Mapping[Pair, bool], others: Mapping[Pair, bool]) -> RateDifference:
    """Return `values` minus `others`, pair by pair. With several instances the number of pairs is the `effective_number` of
    their differences.

    Source: the interval is Bonett and Price's, Statistical Methods in Medical Research 21 (2012), a Wald interval with one pair
    added to each kind of discordant ones.
    """
    ours, theirs = in_common(values, others)
    pairs, unpaired = len(ours), len(values) + len(others) - 2 * len(ours)
    if not pairs:
        return RateDifference(0, 0, 0, None, None, None, unpaired)
    differences = [int(ours[pair]) - int(theirs[pair]) for pair in ours]
    gained, lost = differences.count(1), differences.count(-1)
    part = effective_number([instance for instance, _ in ours], differences) / pairs
    low, high = _bonett_price(gained * part, lost * part, pairs * part)
    return RateDifference(pairs, gained, lost, (gained - lost) / pairs, low, high, unpaired)


def unpaired_rates(share: Share, other: Share) -> tuple[float, float] | None:
    """Return the 95% interval of `share` minus `other`, for rates that are not paired. None if either rate has no values.

    Source: Newcombe, Interval estimation for the difference between independent proportions, Statistics in Medicine 17 (1998),
    method 10, of each rate's own interval.
    """
    rates = (share.rate, share.low, share.high, other.rate, other.low, other.high)
    if any(rate is None for rate in rates):
        return None
    p, low, high, q, under, over = (rate for rate in rates if rate is not None)
    return p - q - math.hypot(p - low, over - q), p - q + math.hypot(high - p, q - under)


def _bonett_price(gained: float, lost: float, pairs: float) -> tuple[float, float]:
    up, down = (gained + 1) / (pairs + 2), (lost + 1) / (pairs + 2)
    half = NORMAL * math.sqrt((up + down - (up - down) ** 2) / (pairs + 2))
    return max(-1.0, up - down - half), min(1.0, up - down + half)


@dataclass(frozen=True)
class Denominators:
    """The share solved under three ways to count trials that ended in an error: left out, as failures (the worst case), or as
    solved (`best`)."""

    left_out: Share
    as_failures: Share
    best: Share


def ranking_depends(first: Denominators, second: Denominators) -> bool:
    """Return whether the treatment of errors decides which of two arms has the higher rate.

    The arms are compared in each way alike, and each arm's worst case with the other's best. If a rate does not exist, because
    every trial ended in an error, the ranking depends on nothing else.
    """
    ways = (
        (first.left_out, second.left_out),
        (first.as_failures, second.as_failures),
        (first.best, second.best),
        (first.as_failures, second.best),
        (first.best, second.as_failures),
    )
    return len({_order(way, other) for way, other in ways}) > 1


def _order(share: Share, other: Share) -> int | None:
    if share.rate is None or other.rate is None:
        return None
    # Cross-multiplied, so that equal rates compare as equal.
    left, right = share.k * other.n, other.k * share.n
    return (left > right) - (left < right)
