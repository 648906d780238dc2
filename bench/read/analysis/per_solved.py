"""The cost of a solved task: the cost of all trials of an arm divided by the number of its solved trials."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd

from bench.read.analysis.arms import instances_of
from bench.read.analysis.statistics import Ratio, ratio_of_means


@dataclass(frozen=True)
class PerSolved:
    """The cost of some trials, and the cost for each of them that was solved.

    spent       the cost of all these trials; None if it is unknown, and then the value and its interval are None too
    value       `spent` divided by `solved`; None if no trial was solved
    low, high   the 95% interval of the value, over trials, or over instances if there are several; None below two of these
    units       the number of trials or instances behind the interval
    """

    spent: float | None
    solved: int
    trials: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    units: int = 0

    @property
    def ratio(self) -> Ratio:
        """The value as a ratio with its interval."""
        return Ratio(self.units, self.value, self.low, self.high)


def spent_per_solved(trials: pd.DataFrame, column: str) -> PerSolved:
    """Return the sum of a column over trials, and the sum for each solved trial. Errors are included, because they were paid
    too."""
    trials = trials[[name for name in ("instance", "outcome", column) if name in trials]]  # a choice among few columns is fast
    trials = trials[trials["outcome"] != "ungraded"]
    solved = trials["outcome"].eq("solved")
    if trials[column].isna().any():
        return PerSolved(None, int(solved.sum()), len(trials))
    ratio = ratio_of_means(_by_unit(trials, trials[column]), _by_unit(trials, solved))
    return PerSolved(math.fsum(trials[column]), int(solved.sum()), len(trials), ratio.ratio, ratio.low, ratio.high, ratio.pairs)


def _by_unit(trials: pd.DataFrame, values: pd.Series[float] | pd.Series[bool]) -> dict[Hashable, float]:
    """Return the value of each trial, or the sum over the trials of each instance if there are several."""
    instances = instances_of(trials)
    if len(set(instances)) < 2:
        return dict(enumerate(map(float, values)))
    sums: dict[Hashable, float] = dict.fromkeys(instances, 0.0)
    for instance, value in zip(instances, values, strict=True):
        sums[instance] += float(value)
    return sums
