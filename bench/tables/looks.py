"""Two looks at one population: instances of which all replies were taken over from an earlier run, and those asked for later.

Numbers that were looked at, and then taken further, are two samples. Whether they differ is tested before they are pooled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.analysis.arms import Arm, Arms, Condition, pairs_of, share_in
from bench.analysis.frames import Run
from bench.analysis.statistics import Share
from bench.experiment.config import FAULT_FREE

RESAMPLES = 9_999
Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class TwoLooks:
    """The trials without a fault of one condition.

    first   architecture -> what was solved of the instances that were taken over
    later   the same of those that were asked for later
    p       of a permutation of the instances: could the difference in solved trials be chance?
    """

    condition: Condition
    first: Mapping[str, Share]
    later: Mapping[str, Share]
    p: float


def looks(run: Run, arms: Arms) -> Iterator[TwoLooks]:
    """By condition without faults; none where fewer than two instances were taken over, or asked for later."""
    for condition, named in arms.items():
        taken, new = _parted(run, condition)
        if condition.plan == FAULT_FREE and min(len(taken), len(new)) > 1:
            first, later = ({name: _solved(arm, side) for name, arm in named.items()} for side in (taken, new))
            yield TwoLooks(condition, first, later, _p(named, taken, new))


def _parted(run: Run, condition: Condition) -> tuple[frozenset[str], frozenset[str]]:
    """The instances whose every call was answered before, and the others; nothing where the model took over no replies."""
    if not run.parameters_of(condition.model).cache_from or "instance" not in run.calls:
        return frozenset(), frozenset()
    asked = run.calls[run.calls["scenario"].eq(condition.scenario) & run.calls["model"].eq(condition.model)]
    reused = asked.groupby("instance")["reused"].all()
    return frozenset(reused.index[reused]), frozenset(reused.index[~reused])


def _solved(arm: Arm, instances: frozenset[str]) -> Share:
    seen = arm.usable[arm.usable["instance"].isin(instances)]
    return share_in(seen, seen["outcome"].eq("solved"))


def _p(arms: Mapping[str, Arm], taken: frozenset[str], new: frozenset[str]) -> float:
    """Two-sided, over how many trials each instance solved in all architectures."""
    solved = dict.fromkeys((*sorted(taken), *sorted(new)), 0)
    for arm in arms.values():
        for (instance, _), held in zip(pairs_of(arm.usable), arm.usable["outcome"].eq("solved"), strict=True):
            solved[instance] += bool(held)
    samples = [np.array([solved[instance] for instance in sorted(side)], dtype=float) for side in (taken, new)]
    rng = np.random.default_rng(0)
    from scipy import stats  # noqa: PLC0415  it takes half a second, and few runs were looked at twice

    tested = stats.permutation_test(samples, _gap, n_resamples=RESAMPLES, vectorized=True, rng=rng)
    return float(tested.pvalue)


def _gap(first: Values, other: Values, axis: int = -1) -> Values:
    return np.asarray(first.mean(axis=axis) - other.mean(axis=axis))
