"""Values of several instances of a pack. The instance is then the unit that counts once, because more repetitions of one task
say nothing about other tasks.

If a pack has one instance, its repetitions are the units, and nothing here changes a number.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from bench.read.analysis.statistics.intervals import t_quantile

Pair = tuple[str, int]
"""(instance, repetition): the key by which trials of two arms are paired."""
Value = TypeVar("Value")


def in_common(values: Mapping[Pair, Value], others: Mapping[Pair, Value]) -> tuple[dict[Pair, Value], dict[Pair, Value]]:
    """Return both mappings with only the pairs that both have, in the order of the first mapping."""
    pairs = [pair for pair in values if pair in others]
    return {pair: values[pair] for pair in pairs}, {pair: others[pair] for pair in pairs}


def by_unit(values: Mapping[Pair, float]) -> Mapping[Hashable, float]:
    """Return unit -> its value. If there are several instances, the unit is the instance, and its value is the mean of its
    repetitions. If there is one, the units are its repetitions.

    Student's t on the means of clusters with equal weights is a cluster interval without any resampling: Donald and Lang,
    Review of Economics and Statistics 89 (2007). `reports/calibration` has its coverage ("a task a value").
    """
    if len({instance for instance, _ in values}) < 2:
        return {pair: float(value) for pair, value in values.items()}
    by_instance: dict[str, list[float]] = {}
    for (instance, _), value in values.items():
        by_instance.setdefault(instance, []).append(value)
    return {instance: math.fsum(values) / len(values) for instance, values in by_instance.items()}


def effective_number(instances: Sequence[str], values: Sequence[float]) -> float:
    """Return the number of independent values for an interval of the mean of these values, each of the instance at its index:
    the `independent_number`, corrected for the small number of instances by the ratio of the quantiles of t.

    Source: Korn and Graubard, Survey Methodology 24 (1998).
    """
    n, clusters = len(values), len(set(instances))
    number = independent_number(instances, values)
    if clusters in (0, 1, n) or len(set(values)) == 1:
        return number
    return number * (t_quantile(n - 1) / t_quantile(clusters - 1)) ** 2


def independent_number(instances: Sequence[str], values: Sequence[float]) -> float:
    """Return how many independent values would give a mean with the same variance as these values, each of the instance at its
    index. All values count if each has a different instance, or if all have the same instance.

    Otherwise the number of values is divided by the design effect: the variance of the mean by instances over the variance for
    independent values, never below 1. Values without spread do not show the design effect: then each instance counts once.

    Source: Rao and Scott, Biometrics 48 (1992).
    """
    n, mean = len(values), math.fsum(values) / max(1, len(values))
    sums: dict[str, float] = {}
    for instance, value in zip(instances, values, strict=True):
        sums[instance] = sums.get(instance, 0.0) + value - mean
    clusters = len(sums)
    if clusters < 2 or clusters == n:
        return n
    squares = math.fsum((value - mean) ** 2 for value in values)
    if not squares:
        return clusters
    return n / max(1.0, clusters / (clusters - 1) * math.fsum(total**2 for total in sums.values()) / squares)
