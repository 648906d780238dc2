"""Statistics as pure functions on numbers: each result carries its uncertainty, and None stands where there is none.

Nothing here returns NaN. What does not exist (the mean of nothing, the spread of one value) is None.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scipy import stats

CONFIDENCE = 0.95

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Mean:
    """A mean of n values with its 95% interval.

    sd          of the sample (n - 1); None below two values
    low, high   Student's t interval of the mean: it takes the values as draws from one distribution, near enough to normal;
                None below two values, and just the mean where all values are equal: a sample without spread shows none
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Share:
    """k of n, with Wilson's 95% interval of the rate; all None where n is 0."""

    k: int
    n: int
    rate: float | None
    low: float | None
    high: float | None


def mean_of(values: Iterable[float]) -> Mean:
    """Raises ValueError for a value that is no finite number: it has to be left out knowingly, not by this function."""
    numbers = [float(value) for value in values]
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError("a value is no finite number")
    n = len(numbers)
    if n == 0:
        return Mean(0, None, None, None, None)
    mean = math.fsum(numbers) / n
    if n == 1:
        return Mean(1, mean, None, None, None)
    if min(numbers) == max(numbers):
        return Mean(n, numbers[0], 0.0, numbers[0], numbers[0])
    sd = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (n - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * sd / math.sqrt(n)
    return Mean(n, mean, sd, mean - half, mean + half)


def share_of(k: int, n: int) -> Share:
    """Raises ValueError unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if n == 0:
        return Share(k, n, None, None, None)
    interval = stats.binomtest(k, n).proportion_ci(CONFIDENCE, method="wilson")
    return Share(k, n, k / n, float(interval.low), float(interval.high))


@dataclass(frozen=True)
class Paired:
    """The mean of the differences, and how many values had no twin to be compared with."""

    difference: Mean
    unpaired: int


def paired_difference(values: Mapping[Key, float], twins: Mapping[Key, float]) -> Paired:
    """`values` less `twins`, key by key; the interval is that of the mean difference."""
    both = [key for key in values if key in twins]
    differences = mean_of(values[key] - twins[key] for key in both)
    return Paired(differences, len(values) + len(twins) - 2 * len(both))


def median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
