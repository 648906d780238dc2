"""The failure rate from which one architecture is cheaper than another, with its uncertainty.

Architectures are compared by worth: solved tasks by price. Worth is the inverse of the price of a solved task; it stays finite
if nothing was solved, and orders two architectures as the price does. Between two measured rates it is a straight line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.read.analysis.arms import instances_of
from bench.read.analysis.statistics import percentiles, resampled
from bench.read.analysis.statistics.bootstrap import RESAMPLES, Numbers

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Trials:
    """What each trial of an architecture spent, and whether it was solved (0 or 1): a row for each repetition, a column for
    each rate. If there are several instances, a row holds the sums of one instance."""

    spent: Numbers
    solved: Numbers

    def worth(self) -> Numbers:
        """Return solved tasks divided by the price, at each failure rate."""
        return _worth(self.spent.sum(axis=0), self.solved.sum(axis=0))

    def worths(self, counts: Numbers) -> Numbers:
        """Return the worths in each resample. The argument says how often each row is in the resample."""
        return _worth(counts @ self.spent, counts @ self.solved)

    def dearness(self) -> tuple[float, float]:
        """Return a sort key: how dear an architecture is at the lowest rate. If two are equal there, the architecture that ends
        cheaper counts as dearer, since it is the one that overtakes."""
        worth = self.worth()
        return -float(worth[0]), float(worth[-1])


def trials_in_both(
    trials: pd.DataFrame, architectures: Sequence[str], rates: Mapping[str, float], column: str
) -> dict[str, Trials]:
    """Return architecture -> its trials at these failure rates, over the repetitions that both architectures have."""
    both = trials[trials["architecture"].isin(architectures) & trials["plan"].isin(list(rates))]
    both = both.assign(instance=instances_of(both))
    counts = both.groupby(["instance", "repetition"])["trial"].transform("size")
    complete = both[counts == len(architectures) * len(rates)]
    return {name: _grid(complete[complete["architecture"] == name], rates, column) for name in architectures}


@dataclass(frozen=True)
class Crossing:
    """The failure rate from which the architecture that was dearer at first is the cheaper of two.

    rate        -inf: already cheaper at the lowest rate; inf: never cheaper
    low, high   95% bootstrap interval (`percentiles`) over repetitions, or over instances; can be infinite like `rate`
    never       the share of resamples without a crossing
    """

    rate: float
    low: float
    high: float
    never: float


def crossing(rates: Sequence[float], cheaper: Trials, dearer: Trials, resamples: int = RESAMPLES) -> Crossing:
    """Return the crossing of two architectures; `cheaper` and `dearer` refer to the lowest of the `rates`.

    Repetitions are drawn together with all their rates and both architectures: both met the same schedule, and what they have
    in common cancels out.
    """
    crossing = crossing_of(rates, cheaper.worth(), dearer.worth())
    count = len(cheaper.spent)
    again = np.concatenate(
        [crossings_of(rates, cheaper.worths(counts), dearer.worths(counts)) for counts in resampled(count, resamples)]
    )
    return Crossing(crossing, *percentiles(again, count), float(np.isinf(again).mean()))


def crossing_of(rates: Sequence[float], cheaper: Numbers, dearer: Numbers) -> float:
    """Return the rate at which the worth of `dearer` first rises above the worth of `cheaper` by more than rounding."""
    return float(crossings_of(rates, cheaper[np.newaxis], dearer[np.newaxis])[0])


def crossings_of(rates: Sequence[float], cheaper: Numbers, dearer: Numbers) -> Numbers:
    """Return the crossing of each row of worths; columns are rates."""
    lead, at = dearer - cheaper, np.asarray(rates, float)
    above = lead > ROUNDING * np.maximum(cheaper, dearer)
    first = above.argmax(axis=1)
    ends = np.where(above.any(axis=1), -np.inf, np.inf)
    [between] = np.nonzero(first)  # rows that cross after the first rate
    place = first[between]
    behind = np.maximum(0.0, -lead[between, place - 1])
    share = behind / (behind + lead[between, place])
    ends[between] = at[place - 1] + share * (at[place] - at[place - 1])
    return ends


def _worth(spent: Numbers, solved: Numbers) -> Numbers:
    return np.divide(solved, spent, out=np.zeros_like(solved), where=spent > 0)


def _grid(trials: pd.DataFrame, rates: Mapping[str, float], column: str) -> Trials:
    """Return a row for each repetition; if there are several instances, a row for each instance with the sums of its
    repetitions."""
    unit = "instance" if trials["instance"].nunique() > 1 else "repetition"
    marked = trials.assign(solved=trials["outcome"].eq("solved").astype(float))
    spent, solved = (
        marked.pivot_table(index=unit, columns="plan", values=name, aggfunc="sum", sort=True).reindex(columns=list(rates))
        for name in (column, "solved")
    )
    return Trials(spent.to_numpy(float), solved.to_numpy(float))
