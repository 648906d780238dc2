"""What a solved task costs: all that an arm spent, on its failures as well, by what it solved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from bench.analysis.statistics import ratio_of_means


@dataclass(frozen=True)
class PerSolved:
    """`spent` over `trials` trials, of which `solved` were solved.

    spent       None where it is unknown, and then all others of it are
    value       spent by solved; None where nothing was solved
    low, high   95% interval of that ratio (Fieller's, over the trials); None where there is none: below two trials, and where
                so few were solved that their share cannot be told from 0, so that there is no upper bound
    """

    spent: float | None
    solved: int
    trials: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


def per_solved(trials: pd.DataFrame, column: str) -> PerSolved:
    """Of all these trials that were to solve something, errors among them, for they were paid as well."""
    trials = trials[trials["outcome"] != "ungraded"]
    spent = dict(enumerate(trials[column].tolist()))
    solved = {trial: float(outcome == "solved") for trial, outcome in enumerate(trials["outcome"])}
    count = int(sum(solved.values()))
    if any(math.isnan(one) for one in spent.values()):
        return PerSolved(None, count, len(solved))
    total, found = math.fsum(spent.values()), ratio_of_means(spent, solved)
    return PerSolved(total, count, len(solved), found.ratio, found.low, found.high)
