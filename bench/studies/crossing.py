"""From which rate on one architecture is cheaper than another, and how surely.

It compares solved tasks by price: the inverse of the price of a solved task, which stays finite where nothing was solved, and
orders two architectures as the price does. Between two measured rates it is taken as a straight line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.statistics import percentiles, resampled
from bench.analysis.statistics.bootstrap import RESAMPLES, Numbers

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Trials:
    """What each trial of an architecture spent, and whether it was solved (0 or 1): repetitions down, rates across. Of several
    instances a row has the sums of one."""

    spent: Numbers
    solved: Numbers

    def worth(self) -> Numbers:
        """Solved tasks by price, at each rate."""
        return _worth(self.spent.sum(axis=0), self.solved.sum(axis=0))

    def worths(self, counts: Numbers) -> Numbers:
        """The same of each resample, by how often each row is in it."""
        return _worth(counts @ self.spent, counts @ self.solved)

    def dearness(self) -> tuple[float, float]:
        """How dear it is at the lowest rate; of two that are equal there, the one that is cheaper in the end counts as dearer,
        so that it is the one to overtake."""
        worth = self.worth()
        return -float(worth[0]), float(worth[-1])


def trials_in_both(
    trials: pd.DataFrame, architectures: Sequence[str], rates: Mapping[str, float], column: str
) -> dict[str, Trials]:
    """Architecture -> its trials at these rates, in the instances' repetitions of which neither architecture misses one."""
    both = trials[trials["architecture"].isin(architectures) & trials["plan"].isin(list(rates))]
    both = both.assign(instance=instances_of(both))
    counts = both.groupby(["instance", "repetition"])["trial"].transform("size")
    complete = both[counts == len(architectures) * len(rates)]
    return {name: _grid(complete[complete["architecture"] == name], rates, column) for name in architectures}


@dataclass(frozen=True)
class Crossing:
    """The rate from which on the one that was dearer at first is the cheaper one.

    rate        -inf: already cheaper at the lowest rate; inf: never cheaper
    low, high   95% bootstrap interval (`percentiles`) over repetitions, or over instances; ends as `rate`
    never       the share of resamples without a crossing
    """

    rate: float
    low: float
    high: float
    never: float


def crossing(rates: Sequence[float], cheaper: Trials, dearer: Trials, resamples: int = RESAMPLES) -> Crossing:
    """`cheaper` and `dearer` at the lowest of the `rates`, over the same repetitions, which are drawn together with all their
    rates and both architectures: they met the same schedule, and what they have in common cancels out.
    """
    crossing = crossing_of(rates, cheaper.worth(), dearer.worth())
    count = len(cheaper.spent)
    again = np.concatenate(
        [crossings_of(rates, cheaper.worths(counts), dearer.worths(counts)) for counts in resampled(count, resamples)]
    )
    return Crossing(crossing, *percentiles(again, count), float(np.isinf(again).mean()))


def crossing_of(rates: Sequence[float], cheaper: Numbers, dearer: Numbers) -> float:
    """Where `dearer`'s worth first rises above `cheaper`'s, by more than rounding."""
    return float(crossings_of(rates, cheaper[np.newaxis], dearer[np.newaxis])[0])


def crossings_of(rates: Sequence[float], cheaper: Numbers, dearer: Numbers) -> Numbers:
    """The same of each row of worths: one crossing a row, rates across."""
    lead, at = dearer - cheaper, np.asarray(rates, float)
    above = lead > ROUNDING * np.maximum(cheaper, dearer)
    first = above.argmax(axis=1)
    ends = np.where(above.any(axis=1), -np.inf, np.inf)
    [between] = np.nonzero(first)  # rows in which it lies behind first, and rises above later
    place = first[between]
    behind = np.maximum(0.0, -lead[between, place - 1])
    share = behind / (behind + lead[between, place])
    ends[between] = at[place - 1] + share * (at[place] - at[place - 1])
    return ends


def _worth(spent: Numbers, solved: Numbers) -> Numbers:
    return np.divide(solved, spent, out=np.zeros_like(solved), where=spent > 0)


def _grid(trials: pd.DataFrame, rates: Mapping[str, float], column: str) -> Trials:
    """A row for each repetition; of several instances, one for each instance with the sums of its repetitions."""
    unit = "instance" if trials["instance"].nunique() > 1 else "repetition"
    marked = trials.assign(solved=trials["outcome"].eq("solved").astype(float))
    spent, solved = (
        marked.pivot_table(index=unit, columns="plan", values=name, aggfunc="sum", sort=True).reindex(columns=list(rates))
        for name in (column, "solved")
    )
    return Trials(spent.to_numpy(float), solved.to_numpy(float))
