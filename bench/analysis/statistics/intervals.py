"""A mean and its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean of n values with its 95% interval.

    sd          of the sample (n - 1); None below two values
    low, high   Student's interval of the mean; None below two values, and just the mean where all values are equal: a
                sample without spread shows none
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


def known(values: Iterable[float | None]) -> list[float]:
    """The values that are there: None, NaN and pandas' NA are left out, so that a `Mean` of the rest says of how many it is.

    Infinite values stay, for `mean_of` to refuse: they are no missing values but wrong ones.
    """
    return [float(value) for value in values if not pd.isna(value)]


def mean_of(values: Iterable[float]) -> Mean:
    """The mean that tables show, with Student's t interval.

    Of the methods in `reports/calibration` it is the one to be trusted at our sizes. Below ten values a bootstrap's interval,
    percentile or BCa, is too short on every kind of data; at thirty BCa gains a little where trials are rerun often, and loses
    more where tokens are merely lognormal. `limits_of` says where this one is too short as well.

    Source: Student, Biometrika 6 (1908): mean ± t(n - 1) sd / sqrt(n).
    Raises ValueError for a value that is no finite number: it has to be left out knowingly (`known`), not by this function.
    """
    numbers = _finite(values)
    n = len(numbers)
    plain = _without_interval(numbers)
    if plain.mean is None or plain.sd is None or plain.low is not None:
        return plain
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * plain.sd / math.sqrt(n)
    return Mean(n, plain.mean, plain.sd, plain.mean - half, plain.mean + half)


def median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _finite(values: Iterable[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError("a value is no finite number")
    return numbers


def _without_interval(numbers: Sequence[float]) -> Mean:
    """All that is known of a mean without an interval's method: all of it for equal values, or fewer than two."""
    n = len(numbers)
    if n == 0:
        return Mean(0, None, None, None, None)
    mean = math.fsum(numbers) / n
    if n == 1:
        return Mean(1, mean, None, None, None)
    if min(numbers) == max(numbers):
        return Mean(n, numbers[0], 0.0, numbers[0], numbers[0])
    return Mean(n, mean, math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (n - 1)), None, None)
