"""A test whether two groups of instances differ: those whose replies all came from an earlier run, and those added later.

A run that was looked at and then extended has two samples, which may be pooled only if they do not differ.
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
    """What a condition without faults solved in each group of instances.

    first   architecture -> the share solved of the instances whose replies came from an earlier run
    later   architecture -> the share solved of the instances added later
    p       the p of a permutation test on the difference of the groups
    """

    condition: Condition
    first: Mapping[str, Share]
    later: Mapping[str, Share]
    p: float


def looks(run: Run, arms: Arms) -> Iterator[TwoLooks]:
    """Yield a comparison for each condition without faults in which both groups have at least two instances."""
    for condition, by_architecture in arms.items():
        reused, added = _groups(run, condition)
        if condition.plan == FAULT_FREE and min(len(reused), len(added)) > 1:
            first = {name: _share_solved(arm, reused) for name, arm in by_architecture.items()}
            later = {name: _share_solved(arm, added) for name, arm in by_architecture.items()}
            yield TwoLooks(condition, first, later, _p(by_architecture, reused, added))


def _groups(run: Run, condition: Condition) -> tuple[frozenset[str], frozenset[str]]:
    """Return the instances whose replies all came from an earlier run, and the other instances. Both are empty if the model
    reused no replies of an earlier run."""
    if not run.parameters_of(condition.model).cache_from or "instance" not in run.calls:
        return frozenset(), frozenset()
    calls = run.calls[run.calls["scenario"].eq(condition.scenario) & run.calls["model"].eq(condition.model)]
    reused = calls.groupby("instance")["reused"].all()
    return frozenset(reused.index[reused]), frozenset(reused.index[~reused])


def _share_solved(arm: Arm, instances: frozenset[str]) -> Share:
    """Return the share of an arm's trials on these instances that were solved."""
    trials = arm.usable[arm.usable["instance"].isin(instances)]
    return share_of_rows(trials, trials["outcome"].eq("solved"))


def _p(arms: Mapping[str, Arm], reused: frozenset[str], added: frozenset[str]) -> float:
    """Return the two-sided p of a permutation test on the number of trials solved by instance, over all architectures."""
    solved = dict.fromkeys((*sorted(reused), *sorted(added)), 0)
    for arm in arms.values():
        for (instance, _), is_solved in zip(pairs_of(arm.usable), arm.usable["outcome"].eq("solved"), strict=True):
            solved[instance] += bool(is_solved)
    samples = [np.array([solved[instance] for instance in sorted(group)], dtype=float) for group in (reused, added)]
    rng = np.random.default_rng(0)
    from scipy import stats  # noqa: PLC0415  it takes half a second, and few runs were looked at twice

    test_result = stats.permutation_test(samples, _gap, n_resamples=RESAMPLES, vectorized=True, rng=rng)
    return float(test_result.pvalue)


def _gap(first: Values, other: Values, axis: int = -1) -> Values:
    """Return the difference of the two samples' means."""
    return np.asarray(first.mean(axis=axis) - other.mean(axis=axis))
