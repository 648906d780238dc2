"""Compare two groups of instances from one population: instances whose replies all came from an earlier run, and instances that
were asked later.

Numbers that were looked at and then extended are two samples. A test says whether they differ before they are pooled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.read.analysis.arms import Arm, Arms, Condition, pairs_of, share_of_rows
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Share
from bench.record.config import FAULT_FREE

RESAMPLES = 9_999
Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class TwoLooks:
    """The trials without faults of one condition.

    first   architecture -> the share solved of the instances taken over
    later   architecture -> the share solved of the instances asked later
    p       from a permutation of the instances: could the difference be chance?
    """

    condition: Condition
    first: Mapping[str, Share]
    later: Mapping[str, Share]
    p: float


def looks(run: Run, arms: Arms) -> Iterator[TwoLooks]:
    """Yield both groups for each condition without faults in which each group has at least two instances."""
    for condition, named in arms.items():
        taken, new = _groups(run, condition)
        if condition.plan == FAULT_FREE and min(len(taken), len(new)) > 1:
            first, later = ({name: _share_solved(arm, side) for name, arm in named.items()} for side in (taken, new))
            yield TwoLooks(condition, first, later, _p(named, taken, new))


def _groups(run: Run, condition: Condition) -> tuple[frozenset[str], frozenset[str]]:
    """Return the instances whose every reply was taken over, and the other instances. Both are empty if the model took over no
    replies."""
    if not run.parameters_of(condition.model).cache_from or "instance" not in run.calls:
        return frozenset(), frozenset()
    asked = run.calls[run.calls["scenario"].eq(condition.scenario) & run.calls["model"].eq(condition.model)]
    reused = asked.groupby("instance")["reused"].all()
    return frozenset(reused.index[reused]), frozenset(reused.index[~reused])


def _share_solved(arm: Arm, instances: frozenset[str]) -> Share:
    seen = arm.usable[arm.usable["instance"].isin(instances)]
    return share_of_rows(seen, seen["outcome"].eq("solved"))


def _p(arms: Mapping[str, Arm], taken: frozenset[str], new: frozenset[str]) -> float:
    """Return the two-sided p of a permutation test on the number of trials solved by instance, over all architectures."""
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
