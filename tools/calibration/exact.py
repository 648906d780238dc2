"""Rates need no simulation: with so few outcomes their chances can be summed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from calibration.experiments import VARIANTS, Result
from scipy import stats

from bench.analysis.statistics import paired_rates, rates_differ, share_of

RATES = np.arange(1, 100) / 100
"""The true rates looked at; the lowest coverage among them is what counts."""
AGREEING = (0.3, 0.6, 0.9)
"""The share of pairs in which both arms fail, or both succeed."""


def exactly() -> Iterator[Result]:
    for n in VARIANTS:
        yield from wilson(n)
    for n in VARIANTS[:-1]:
        yield from discordant(n)
        yield from unpaired(n)


def wilson(n: int) -> Iterator[Result]:
    """And the interval of Clopper and Pearson, which never holds the truth too seldom, for comparison."""
    shares = [share_of(k, n) for k in range(n + 1)]
    conservative = [stats.binomtest(k, n).proportion_ci(0.95, method="exact") for k in range(n + 1)]
    ends = {
        "Wilson": [(one.low, one.high) for one in shares],
        "Clopper-Pearson": [(one.low, one.high) for one in conservative],
    }
    for name, intervals in ends.items():
        coverage = covered(np.array(intervals, dtype=float), n)
        for what, share in (("mean over rates 0.01 to 0.99", coverage.mean()), (_worst(coverage), coverage.min())):
            yield Result("coverage", "rate", what, what.startswith("mean"), n, name, float(share), 0)


def covered(intervals: np.ndarray, n: int) -> np.ndarray:
    """How often the interval of k of n holds the truth, by RATES; `intervals` has n + 1 rows: low, high."""
    chances = stats.binom.pmf(np.arange(n + 1)[:, None], n, RATES)
    # Wilson's ends for none and all are 0 and 1 but for rounding, and no rate looked at is as near to them.
    held = (intervals[:, :1] <= RATES) & (intervals[:, 1:] >= RATES)
    return np.asarray((chances * held).sum(axis=0))


def _worst(coverage: np.ndarray) -> str:
    return f"worst rate: {RATES[int(coverage.argmin())]:.2f}"


def discordant(n: int) -> Iterator[Result]:
    """The difference of two paired rates, and McNemar's test where there is none, by how often the pairs agree."""
    outcomes = [(gained, lost) for gained in range(n + 1) for lost in range(n + 1 - gained)]
    found = [_rates(gained, lost, n) for gained, lost in outcomes]
    for agreeing in AGREEING:
        for difference in (0.0, (1 - agreeing) / 2):
            up, down = (1 - agreeing + difference) / 2, (1 - agreeing - difference) / 2
            chances = stats.multinomial.pmf([(g, lo, n - g - lo) for g, lo in outcomes], n, [up, down, agreeing])
            held = np.array([low <= difference <= high for low, high, _ in found])
            world = f"{agreeing:.0%} of pairs agree, difference {difference:.2f}"
            share = float((chances * held).sum())
            yield Result("coverage", "difference of paired rates", world, True, n, "Bonett-Price", share, 0)
            if not difference:
                share = float((chances * np.array([p <= 0.05 for _, _, p in found])).sum())
                yield Result("false positives", "test of paired rates", world, True, n, "McNemar, exact", share, 0)


def _rates(gained: int, lost: int, n: int) -> tuple[float, float, float]:
    """The shipped interval's ends, and the p of the exact McNemar test (Psychometrika 12, 1947), which no table shows."""
    one = {("", pair): pair < gained for pair in range(n)}
    other = {("", pair): gained <= pair < gained + lost for pair in range(n)}
    found = paired_rates(one, other)
    if found.low is None or found.high is None:
        raise ValueError(f"{n} pairs give no interval")
    return found.low, found.high, float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def unpaired(n: int) -> Iterator[Result]:
    """Fisher's test of two groups of n with the same rate."""
    shares = [share_of(k, n) for k in range(n + 1)]
    refused = np.array([[(rates_differ(one, other) or 0.0) <= 0.05 for other in shares] for one in shares])
    for rate in (0.1, 0.5):
        chances = stats.binom.pmf(np.arange(n + 1), n, rate)
        share = float(chances @ refused @ chances)
        yield Result("false positives", "test of unpaired rates", f"rate {rate}", True, n, "Fisher, exact", share, 0)
