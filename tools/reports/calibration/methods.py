"""The intervals and tests, over many experiments at once: one row an experiment.

Those that the suite ships are written again here, by arrays; a test holds them to the shipped ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import stats

from bench.read.analysis.statistics.significance import generator, sign_flip_test

Values = np.ndarray
Ends = tuple[Values, Values]
LEVEL = 0.975
BOOTSTRAPS = 1999
"""Resamples of a bootstrap: no shipped interval of a mean is one, and more would move an end by little."""


def student(values: Values) -> Ends:
    n = values.shape[1]
    half = stats.t.ppf(LEVEL, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    centre = values.mean(axis=1)
    return centre - half, centre + half


def of_logarithm(values: Values) -> Ends:
    """Return Student's t interval of the mean's logarithm, by the delta method; the mean alone where it is 0."""
    return _stretched(values, lambda mean, error: (mean * np.exp(-error / mean), mean * np.exp(error / mean)))


def of_root(values: Values) -> Ends:
    """Return Student's t interval of the mean's square root, by the delta method."""
    return _stretched(
        values,
        lambda mean, error: (
            np.maximum(np.sqrt(mean) - error / np.sqrt(mean) / 2, 0.0) ** 2,
            (np.sqrt(mean) + error / np.sqrt(mean) / 2) ** 2,
        ),
    )


def of_logit(values: Values) -> Ends:
    """Return Student's t interval of the mean's logit, for values within 0 and 1; the mean alone where it is 0 or 1."""

    def stretched(mean: Values, error: Values) -> Ends:
        odds, factor = mean / (1 - mean), np.exp(error / (mean * (1 - mean)))
        low, high = odds / factor, odds * factor
        return low / (1 + low), high / (1 + high)

    return _stretched(values, stretched)


def _stretched(values: Values, stretch: Callable[[Values, Values], Ends]) -> Ends:
    n = values.shape[1]
    mean = values.mean(axis=1)
    error = stats.t.ppf(LEVEL, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = stretch(mean, error)
    equal = np.ptp(values, axis=1) == 0
    return np.where(equal, mean, low), np.where(equal, mean, high)


def percentile(values: Values) -> Ends:
    low, high = np.quantile(resampled(values), (1 - LEVEL, LEVEL), axis=1)
    return low, high


def bca(values: Values) -> Ends:
    """Return the BCa interval, or the percentile interval where BCa is undefined."""
    means = np.sort(resampled(values), axis=1)
    centre = values.mean(axis=1)[:, None]
    below = ((means < centre).sum(axis=1) + (means <= centre).sum(axis=1)) / (2 * means.shape[1])
    off = values - centre
    cubes, squares = (off**3).sum(axis=1), (off**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias, skew = stats.norm.ppf(below), cubes / (6 * squares**1.5)
        low, high = (_quantiles(means, _corrected(side, bias, skew)) for side in (1 - LEVEL, LEVEL))
    plain_low, plain_high = np.quantile(means, (1 - LEVEL, LEVEL), axis=1)
    undefined = ~(np.isfinite(low) & np.isfinite(high))
    return np.where(undefined, plain_low, low), np.where(undefined, plain_high, high)


def studentised(values: Values) -> Ends:
    """The bootstrap-t: Hall, Annals of Statistics 16 (1988). Without bound where a resample without spread reaches its tail."""
    n = values.shape[1]
    counts = _counts(n)
    # Centred first, or the difference of two large squares would be rounding alone.
    centre = values.mean(axis=1)[:, None]
    off = values - centre
    means = off @ counts.T / n
    spread = np.sqrt(np.maximum((off**2) @ counts.T / n - means**2, 0.0) / (n - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.nan_to_num(means / spread, nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = np.quantile(pivots, (1 - LEVEL, LEVEL), axis=1, method="nearest")
    error = values.std(axis=1, ddof=1) / math.sqrt(n)
    with np.errstate(over="ignore"):
        return centre[:, 0] - high * error, centre[:, 0] - low * error


def resampled(values: Values) -> Values:
    """Return the mean of each resample. All samples of one size get the same resamples."""
    return np.asarray(values @ _counts(values.shape[1]).T / values.shape[1])


@cache
def _counts(n: int) -> Values:
    """Return how often each value is in each resample, by n."""
    drawn = generator().integers(0, n, (BOOTSTRAPS, n))
    counts = np.zeros((BOOTSTRAPS, n))
    np.add.at(counts, (np.arange(BOOTSTRAPS)[:, None], drawn), 1.0)
    return counts


def _corrected(side: float, bias: Values, skew: Values) -> Values:
    moved = bias + stats.norm.ppf(side)
    return np.asarray(stats.norm.cdf(bias + moved / (1 - skew * moved)))


def _quantiles(ordered: Values, shares: Values) -> Values:
    """Return a quantile for each row, linear between neighbours; NaN where the share is NaN."""
    undefined = np.isnan(shares)
    place = np.where(undefined, 0.0, shares) * (ordered.shape[1] - 1)
    left = np.floor(place).astype(int)
    right = np.minimum(left + 1, ordered.shape[1] - 1)
    rows = np.arange(len(ordered))
    quantile = ordered[rows, left] + (place - left) * (ordered[rows, right] - ordered[rows, left])
    return np.where(undefined, np.nan, quantile)


def fieller(left: Values, right: Values) -> Ends:
    """Return Fieller's interval of the ratio of the means of two paired arms; NaN, as there is none, where the right's mean
    cannot be told from 0."""
    n = left.shape[1]
    t2 = stats.t.ppf(LEVEL, n - 1) ** 2 / n
    above, below = left.mean(axis=1), right.mean(axis=1)
    together = ((left - above[:, None]) * (right - below[:, None])).sum(axis=1) / (n - 1)
    a = below**2 - t2 * right.var(axis=1, ddof=1)
    b = above * below - t2 * together
    c = above**2 - t2 * left.var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
    return np.where(a > 0, low, np.nan), np.where(a > 0, high, np.nan)


def ratio_of_logarithm(left: Values, right: Values) -> Ends:
    """Return Student's t interval of the ratio's logarithm, by the delta method; NaN, as there is none, where a mean is 0."""
    n = left.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = left.mean(axis=1) / right.mean(axis=1)
        rest = (left - ratio[:, None] * right).std(axis=1, ddof=1)
        factor = np.exp(stats.t.ppf(LEVEL, n - 1) * rest / math.sqrt(n) / left.mean(axis=1))
        low, high = ratio / factor, ratio * factor
    return low, high


# Tests: the two-sided p of each row of paired differences


def sign_flip(differences: Values) -> Values:
    """Return the p of the shipped test, which is exact at every N."""
    return np.array([sign_flip_test(row).p for row in differences.tolist()])


def paired_t(differences: Values) -> Values:
    n = differences.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / math.sqrt(n))
    return np.where(np.isnan(t), 1.0, 2 * stats.t.sf(np.abs(t), n - 1))


def wilcoxon(differences: Values) -> Values:
    """Return the p of Wilcoxon's test. Zeros and ties are too few here to leave the exact distribution; where all are zeros
    nothing is found."""
    method = "exact" if differences.shape[1] <= 40 else "approx"
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(stats.wilcoxon(differences, axis=1, method=method).pvalue, nan=1.0))


INTERVALS: dict[str, Callable[[Values], Ends]] = {
    "Student t": student,
    "t of the root": of_root,
    "t of the logarithm": of_logarithm,
    "percentile": percentile,
    "BCa": bca,
    "bootstrap-t": studentised,
}
TESTS: dict[str, Callable[[Values], Values]] = {"sign-flip": sign_flip, "paired t": paired_t, "Wilcoxon": wilcoxon}
RATIOS: dict[str, Callable[[Values, Values], Ends]] = {"Fieller": fieller, "t of the logarithm": ratio_of_logarithm}
RESAMPLING = frozenset({"percentile", "BCa", "bootstrap-t", "sign-flip"})
"""Costly, so that fewer experiments are simulated."""
SHOWN = {"amount": "t of the logarithm", "score": "t of the logit", "difference": "Student t"}
"""What the suite ships, by kind."""
