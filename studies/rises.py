"""How much an outcome rises between cells of an experiment. Each instance gives one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from bench.read.analysis.factors import pairs_that_could_differ
from bench.read.analysis.statistics import PairedTest, open_verdict, paired_test
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean

Levels = Mapping[str, object]
"""Factor -> its level."""


@dataclass(frozen=True)
class Rises:
    """How much an outcome rises in each instance, as the mean over the pairs that could differ.

    pairs          all pairs of trials
    could_differ   of these, the pairs in which the part had an occasion to act
    """

    by_instance: Mapping[str, float]
    pairs: int
    could_differ: int

    @property
    def contrast(self) -> BootstrapMean:
        return bootstrap_mean(self.by_instance)

    @cached_property
    def test(self) -> PairedTest:
        """The sign-flip test over instances."""
        values = {(instance, 1): value for instance, value in self.by_instance.items()}
        return paired_test(values, dict.fromkeys(values, 0.0))

    @property
    def p(self) -> float | None:
        """The p of the test; None without a pair."""
        return self.test.p

    def open_verdict(self, family: int, otherwise: str = "inconclusive") -> str:
        """Return the verdict where nothing was found among so many tests: that these instances cannot decide, or
        `otherwise`."""
        return open_verdict(self.test.pairs, self.test.least, family, "instances", otherwise)


def main_effect(
    trials: pd.DataFrame, outcome: str, part: str, level: object, reference: object, pairs: list[str]
) -> BootstrapMean:
    """Return how much the outcome rises if a part changes from its reference to a level, while all else stays equal.

    Args:
        trials: One row a trial.
        outcome: The column that rises.
        pairs: The columns that two trials must share to be compared, `instance` among them.
    """
    return rises(trials, outcome, part, level, reference, pairs).contrast


def rises(
    trials: pd.DataFrame,
    outcome: str,
    part: str,
    level: object,
    reference: object,
    pairs: list[str],
    acted: pd.Series[bool] | None = None,
) -> Rises:
    """Return the rises of an outcome as `main_effect` does, over the pairs that could differ.

    Args:
        acted: Of each trial, whether the part had an occasion to act. None: each pair could differ.
    """
    risen = _risen(trials, outcome, part, (level, reference), pairs)
    if acted is None:
        return Rises(_by_instance(risen), len(risen), len(risen))
    shared = [name for name in pairs if name != part]
    on_occasion = trials[acted & trials[part].isin((level, reference))].set_index(shared).index
    kept = risen.loc[pairs_that_could_differ(risen.to_dict(), dict.fromkeys(risen.index, 0.0), set(on_occasion))]
    return Rises(_by_instance(kept), len(risen), len(kept))


def interaction(
    trials: pd.DataFrame, outcome: str, parts: tuple[str, str], to: Levels, reference: Levels, pairs: list[str]
) -> BootstrapMean:
    """Return how much more the outcome rises if another part has its level than if that part has its reference."""
    part, other = parts
    rest = [name for name in pairs if name != other]
    with_other, without = (
        _risen(trials[trials[other] == levels[other]], outcome, part, (to[part], reference[part]), rest)
        for levels in (to, reference)
    )
    return bootstrap_mean(_by_instance((with_other - without).dropna()))


def _risen(trials: pd.DataFrame, outcome: str, part: str, levels: tuple[object, object], pairs: list[str]) -> pd.Series[float]:
    """Return the rise between each two trials that differ only in this part. The key of a rise is what the two trials share."""
    shared = [name for name in pairs if name != part]
    there, here = (trials[trials[part] == level].set_index(shared)[outcome].astype(float) for level in levels)
    return (there - here).dropna()


def _by_instance(risen: pd.Series[float]) -> dict[str, float]:
    means = risen.groupby(level="instance", sort=True).mean()
    return {str(instance): float(value) for instance, value in means.items()}
