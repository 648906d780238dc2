"""Two groups of trials that are no pairs: those that were tried again, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from bench.analysis.statistics.rates import Share
from bench.analysis.statistics.seeded import RESAMPLES, generator


@dataclass(frozen=True)
class Groups:
    """Do two groups differ? All None where one of them is empty.

    p       of the Mann-Whitney test, two-sided
    delta   Cliff's: the chance that a value of the one group lies above one of the other's, less the chance that it lies below
    """

    n: int
    others: int
    p: float | None
    delta: float | None


def groups_differ(
    values: Sequence[float], others: Sequence[float], rng: np.random.Generator | None = None, resamples: int = RESAMPLES
) -> Groups:
    """Do `values`, say the tokens of trials that were tried again, differ from `others`, those of the rest?

    By permutation, so that it holds in small groups and with ties: exact where there are no more than `resamples` ways to
    draw the groups, from as many random ones otherwise.

    Sources: Mann and Whitney, Annals of Mathematical Statistics 18 (1947); Cliff, Psychological Bulletin 114 (1993).
    """
    n, m = len(values), len(others)
    if not n or not m:
        return Groups(n, m, None, None)
    if min(n, m) == 1:  # scipy permutes groups of two at least
        alone, rest = (values[0], others) if n == 1 else (others[0], values)
        delta = _delta_of(alone, rest)
        return Groups(n, m, _p_of_one(alone, rest), delta if n == 1 else -delta)
    method = stats.PermutationMethod(n_resamples=resamples, rng=rng or generator())
    found = stats.mannwhitneyu(values, others, method=method)
    return Groups(n, m, float(found.pvalue), 2 * float(found.statistic) / (n * m) - 1)


def _delta_of(alone: float, rest: Sequence[float]) -> float:
    return (sum(alone > other for other in rest) - sum(alone < other for other in rest)) / len(rest)


def _p_of_one(alone: float, rest: Sequence[float]) -> float:
    """Any of all values might have been the one that stands alone: the share of those that lie as far out as it does."""
    pooled = [alone, *rest]
    deltas = [abs(_delta_of(one, pooled[:place] + pooled[place + 1 :])) for place, one in enumerate(pooled)]
    return sum(delta >= deltas[0] for delta in deltas) / len(pooled)


def rates_differ(one: Share, other: Share) -> float | None:
    """Fisher's exact test of two rates that are not paired: p, two-sided; None where one is of nothing.

    Source: Fisher, Statistical Methods for Research Workers, 5th edition (1934), by scipy.
    """
    if not one.n or not other.n:
        return None
    return float(stats.fisher_exact([[one.k, one.n - one.k], [other.k, other.n - other.k]]).pvalue)
