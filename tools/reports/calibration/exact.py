"""Rates need no simulation: with so few outcomes their chances can be summed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from calibration.experiments import VARIANTS, Result
from scipy import stats

from bench.read.analysis.statistics import paired_rates, share_of

RATES = np.arange(1, 100) / 100
"""The true rates looked at; the lowest coverage among them is what counts."""
AGREEING = (0.3, 0.6, 0.9)
"""The share of pairs in which both arms fail, or both succeed."""


def exactly(sizes: Sequence[int] = VARIANTS) -> Iterator[Result]:
    for n in sizes:
        yield from wilson(n)
        yield from discordant(n)


def wilson(n: int) -> Iterator[Result]:
    """Yield the coverage of Wilson's interval, and for comparison of Clopper and Pearson's, which never holds the truth too
    seldom."""
    shares = [share_of(k, n) for k in range(n + 1)]
    conservative = [stats.binomtest(k, n).proportion_ci(0.95, method="exact") for k in range(n + 1)]
    ends = {
        "Wilson": [(share.low, share.high) for share in shares],
        "Clopper-Pearson": [(share.low, share.high) for share in conservative],
    }
    for name, intervals in ends.items():
        coverage = covered(np.array(intervals, dtype=float), n)
        for what, share in (("mean over rates 0.01 to 0.99", coverage.mean()), (_worst(coverage), coverage.min())):
            yield Result("coverage", "rate", what, what.startswith("mean"), n, name, float(share), 0)


def covered(intervals: np.ndarray, n: int) -> np.ndarray:
    """Return how often the interval of k of n holds the truth, by RATES. `intervals` has n + 1 rows: low, high."""
    chances = stats.binom.pmf(np.arange(n + 1)[:, None], n, RATES)
    # Wilson's ends for none and all are 0 and 1 but for rounding, and no rate looked at is as near to them.
    held = (intervals[:, :1] <= RATES) & (intervals[:, 1:] >= RATES)
    return np.asarray((chances * held).sum(axis=0))


def _worst(coverage: np.ndarray) -> str:
    return f"worst rate: {RATES[int(coverage.argmin())]:.2f}"


def discordant(n: int) -> Iterator[Result]:
    """Yield the coverage of the difference of two paired rates, and the errors of McNemar's test where there is no difference,
    by how often the pairs agree."""
    outcomes = np.array([(gained, lost) for gained in range(n + 1) for lost in range(n + 1 - gained)])
    low, high = np.array([_ends(int(gained), int(lost), n) for gained, lost in outcomes]).T
    refused = _mcnemar(outcomes) <= 0.05
    for agreeing in AGREEING:
        for difference in (0.0, (1 - agreeing) / 2):
            up, down = (1 - agreeing + difference) / 2, (1 - agreeing - difference) / 2
            all_three = np.column_stack((outcomes, n - outcomes.sum(axis=1)))
            chances = stats.multinomial.pmf(all_three, n, [up, down, agreeing])
            held = (low <= difference) & (difference <= high)
            world = f"{agreeing:.0%} of pairs agree, difference {difference:.2f}"
            share = float((chances * held).sum())
            yield Result("coverage", "difference of paired rates", world, True, n, "Bonett-Price", share, 0)
            if not difference:
                share = float((chances * refused).sum())
                yield Result("false positives", "test of paired rates", world, True, n, "McNemar, exact", share, 0)


def _ends(gained: int, lost: int, n: int) -> tuple[float, float]:
    """Return the ends of the shipped interval."""
    gains = {("", pair): pair < gained for pair in range(n)}
    losses = {("", pair): gained <= pair < gained + lost for pair in range(n)}
    difference = paired_rates(gains, losses)
    if difference.low is None or difference.high is None:
        raise ValueError(f"{n} pairs give no interval")
    return difference.low, difference.high


def _mcnemar(outcomes: np.ndarray) -> np.ndarray:
    """Return the two-sided p of the exact McNemar test (Psychometrika 12, 1947) by (gained, lost). No table shows it."""
    return np.asarray(np.minimum(1.0, 2 * stats.binom.cdf(outcomes.min(axis=1), outcomes.sum(axis=1), 0.5)))
