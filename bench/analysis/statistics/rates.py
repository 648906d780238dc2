"""Rates, and how two of them differ pair by pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from scipy import stats

from bench.analysis.statistics.intervals import CONFIDENCE

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Share:
    """k of n, with Wilson's 95% interval of the rate; all None where n is 0."""

    k: int
    n: int
    rate: float | None
    low: float | None
    high: float | None


def share_of(k: int, n: int) -> Share:
    """Source: Wilson, Probable inference, JASA 22 (1927), by scipy. Raises ValueError unless 0 <= k <= n."""
    _require_share(k, n)
    if n == 0:
        return Share(k, n, None, None, None)
    interval = stats.binomtest(k, n).proportion_ci(CONFIDENCE, method="wilson")
    return Share(k, n, k / n, float(interval.low), float(interval.high))


@dataclass(frozen=True)
class RateDifference:
    """The rate of one arm less that of another over the same `pairs`.

    gained, lost   pairs in which only the one, or only the other, held: all that tells the two apart
    difference     (gained - lost) / pairs; None without a pair, as are its interval and p
    p              of the exact McNemar test, two-sided
    """

    pairs: int
    gained: int
    lost: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    unpaired: int


def paired_rates(values: Mapping[Key, bool], twins: Mapping[Key, bool]) -> RateDifference:
    """`values` less `twins`, key by key.

    Sources: the interval is Bonett and Price's, Statistical Methods in Medical Research 21 (2012), a Wald interval with one
    pair added to each kind of discordant ones; the test McNemar's, Psychometrika 12 (1947), exact by the binomial.
    """
    keys = [key for key in values if key in twins]
    pairs, unpaired = len(keys), len(values) + len(twins) - 2 * len(keys)
    gained = sum(values[key] and not twins[key] for key in keys)
    lost = sum(twins[key] and not values[key] for key in keys)
    if not pairs:
        return RateDifference(0, 0, 0, None, None, None, None, unpaired)
    low, high = _bonett_price(gained, lost, pairs)
    p = float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return RateDifference(pairs, gained, lost, (gained - lost) / pairs, low, high, p, unpaired)


def _bonett_price(gained: int, lost: int, pairs: int) -> tuple[float, float]:
    up, down = (gained + 1) / (pairs + 2), (lost + 1) / (pairs + 2)
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * math.sqrt((up + down - (up - down) ** 2) / (pairs + 2))
    return max(-1.0, up - down - half), min(1.0, up - down + half)


def pass_at_k(solved: int, n: int, k: int) -> float | None:
    """The chance that at least one of k trials solves the task, estimated without bias from `solved` of n; None above n.

    Source: Chen et al., Evaluating large language models trained on code (2021): 1 - C(n - c, k) / C(n, k).
    Raises ValueError for k < 1, or unless 0 <= solved <= n.
    """
    _require_share(solved, n)
    drawn = _draws(n, k)
    return None if drawn is None else 1 - math.comb(n - solved, k) / drawn


def pass_hat_k(solved: int, n: int, k: int) -> float | None:
    """The chance that all of k trials solve the task, estimated without bias from `solved` of n; None above n.

    Source: Yao et al., tau-bench (2024), pass^k: C(c, k) / C(n, k).
    Raises ValueError for k < 1, or unless 0 <= solved <= n.
    """
    _require_share(solved, n)
    drawn = _draws(n, k)
    return None if drawn is None else math.comb(solved, k) / drawn


def _draws(n: int, k: int) -> int | None:
    if k < 1:
        raise ValueError(f"k is {k}: at least one trial has to be drawn")
    return math.comb(n, k) or None


def _require_share(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
