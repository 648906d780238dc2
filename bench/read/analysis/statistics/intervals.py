"""Means with their 95% intervals: of differences, of amounts, and of scores."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from scipy import special

from bench.read.analysis.measure import Measure

CONFIDENCE = 0.95


@cache
def t_quantile(degrees: int) -> float:
    """Return the quantile of Student's t for a two-sided 95% interval, with this many degrees of freedom."""
    return float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2))


@dataclass(frozen=True)
class Mean:
    """A mean of n values with its 95% interval.

    sd          the standard deviation of the sample (n - 1); None below two values
    low, high   the interval; None below two values, and both the mean if all values are equal
    measure     what the values measure
    signed      whether the values can be negative, as differences can
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    measure: Measure = "spent"
    signed: bool = True


def mean_of(values: Iterable[float], measure: Measure = "spent") -> Mean:
    """Return the mean of values that can be negative, such as differences, with Student's t interval.

    `reports/calibration` says why this interval; `limits_of` says when it holds the truth too seldom.

    Source: Student, Biometrika 6 (1908): mean ± t(n - 1) sd / sqrt(n).
    Raises ValueError for a value that is not finite: the caller must leave such a value out.
    """
    return _mean_with_interval(_finite(values), measure, signed=True)


def amount_of(values: Iterable[float], measure: Measure = "spent") -> Mean:
    """Return the mean of values that cannot be negative, and, if they are scores, not above 1. The interval is Student's t of
    the logarithm, or of the logit for scores, so that its ends have the same bounds as the values.

    Raises ValueError for a value that is not finite, is negative, or is a score above 1.
    """
    numbers = _finite(values)
    if any(number < 0 or (measure == "score" and number > 1) for number in numbers):
        raise ValueError(f"a value of {measure} is out of its bounds")
    return _mean_with_interval(numbers, measure, signed=False)


def median(values: Sequence[float]) -> float | None:
    """Return the median of values; None if there are none."""
    return statistics.median(values) if values else None


def _finite(values: Iterable[float]) -> list[float]:
    """Return the values as floats. Raises ValueError if one is not finite."""
    numbers = [float(value) for value in values]
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError("a value is no finite number")
    return numbers


def _mean_with_interval(numbers: Sequence[float], measure: Measure, *, signed: bool) -> Mean:
    """Return the mean of the numbers with its interval."""
    n = len(numbers)
    if n == 0:
        return Mean(0, None, None, None, None, measure, signed)
    mean = math.fsum(numbers) / n
    if n == 1:
        return Mean(1, mean, None, None, None, measure, signed)
    if min(numbers) == max(numbers):
        return Mean(n, numbers[0], 0.0, numbers[0], numbers[0], measure, signed)
    sd = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (n - 1))
    error = t_quantile(n - 1) * sd / math.sqrt(n)
    kind: Literal["difference", "amount", "score"] = "difference" if signed else "score" if measure == "score" else "amount"
    return Mean(n, mean, sd, *ends(mean, error, kind), measure, signed)


def ends(mean: float, error: float, kind: Literal["difference", "amount", "score"]) -> tuple[float, float]:
    """Return the ends of a mean's interval. `error` is the standard error times the quantile of t.

    The interval of a difference is symmetric about the mean, that of an amount on the logarithmic scale, and that of a score on
    the logit scale. The delta method converts the error to this scale, by the scale's slope at the mean. The mean of an amount
    must be above 0, and that of a score between 0 and 1: otherwise all values are equal, and there is no interval.

    Source: Oehlert, A note on the delta method, The American Statistician 46 (1992).
    """
    if kind == "difference":
        return mean - error, mean + error
    if kind == "amount":
        factor = math.exp(error / mean)
        return mean / factor, mean * factor
    odds, factor = mean / (1 - mean), math.exp(error / (mean * (1 - mean)))
    return odds / factor / (1 + odds / factor), odds * factor / (1 + odds * factor)
