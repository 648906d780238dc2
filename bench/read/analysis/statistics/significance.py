"""Tests whether a difference could be chance: in pairs, and in several tests at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from bench.read.analysis.statistics.clusters import Pair
from bench.read.analysis.statistics.paired import differences_of

Key = TypeVar("Key", bound=Hashable)

SEED = 260515425


def generator() -> np.random.Generator:
    """Return a new generator with the declared seed. Every call without a generator draws the same numbers."""
    return np.random.default_rng(SEED)


# Pairs

GRID = 1 << 20
"""Steps of the sum of all distances from 0, where values have no common denominator: p is rounded up by less than a step a
pair."""
DENOMINATORS = range(1, 61)
"""Of means of so many whole numbers, p is exact."""
HALVED_AT_ONCE = 512
"""The differences after which counts of assignments become shares, before they grow beyond what a float holds."""
NEAR = 1e-6
"""Two values that differ by less than this share of the sum of all distances are equal."""


@dataclass(frozen=True)
class PairedTest:
    """A test whether a difference could be chance.

    pairs    with several instances, instances
    p        two-sided; None without a pair
    least    the least p that the pairs that differ can give: above 0.05 the test cannot find anything at that level
    differ   the pairs that differ: only these count for the test
    """

    pairs: int
    p: float | None
    least: float | None
    differ: int = 0


def paired_test(values: Mapping[Pair, float], others: Mapping[Pair, float]) -> PairedTest:
    """Return the sign-flip test of the mean difference.

    If the arms do not differ, each difference is as likely with the other sign. p is the share of all assignments of signs
    whose mean is at least as far from zero as the observed one. The test assumes symmetry, but no distribution. With several
    instances each one's mean difference counts once.

    Source: Fisher, The Design of Experiments (1935), section 21.
    """
    return sign_flip_test(differences_of(values, others))


def sign_flip_test(differences: Sequence[float]) -> PairedTest:
    """Return the sign-flip test of differences of independent units."""
    if not differences:
        return PairedTest(0, None, None)
    differ = sum(map(bool, differences))
    return PairedTest(len(differences), min(1.0, 2 * _one_sided(tuple(differences))), min(1.0, 2 / 2**differ), differ)


@lru_cache(256)  # the claims of a report compare the same values many times
def _one_sided(differences: tuple[float, ...]) -> float:
    """Return the share of all assignments of signs whose sum is at least as far on the side of the observed sum.

    A sum is that far if what the smaller side's sign holds is no more than observed. The distribution of that part is the
    convolution of one step for each difference: of whole numbers, or of their means, exactly; else on a grid (`GRID`).
    """
    signed = np.asarray(differences, dtype=float)
    sizes = np.abs(signed[signed != 0])
    smaller = max(0.0, float(sizes.sum() - abs(signed.sum()))) / 2
    scale = _denominator(sizes, smaller)
    steps = np.rint(sizes * scale).astype(np.int64) if scale else np.floor(sizes / sizes.sum() * GRID).astype(np.int64)
    reach = round(smaller * scale) if scale else math.floor(smaller / sizes.sum() * GRID * (1 + NEAR)) + 1
    ways = np.zeros(reach + 1)
    ways[0], reached = 1.0, 0
    for number, step in enumerate(np.sort(steps), 1):  # the smallest first: fewer sums are reached before a large step
        if step <= reach:
            reached = min(reached + int(step), reach)
            ways[step : reached + 1] += ways[: reached + 1 - step]
        if number % HALVED_AT_ONCE == 0:
            ways[: reached + 1] *= 0.5**HALVED_AT_ONCE
    return float(ways.sum()) * 0.5 ** (len(steps) % HALVED_AT_ONCE)


def _denominator(sizes: np.ndarray, smaller: float) -> int | None:
    """Return the least number that makes all these sizes whole, if their convolution is short enough."""
    for number in DENOMINATORS:
        if smaller * number > 2 * GRID:
            return None
        whole = np.rint(sizes * number)  # a size that is nearly 0 is no 0
        if whole.all() and np.allclose(sizes * number, whole, rtol=0.0, atol=NEAR):
            return number
    return None


# Several tests at once


def holm(p_values: Mapping[Key, float | None]) -> dict[Key, float | None]:
    """Return p-values adjusted so that the chance of any false finding in the family stays below the level.

    The family is what was declared: a test that could not be made (None) stays None and counts.
    In rising order the i-th of m becomes the greatest of (m - j + 1) p(j) over j <= i, at most 1.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    Raises ValueError for a p that is not within 0 and 1.
    """
    tested = {key: p for key, p in p_values.items() if p is not None}
    if not all(0 <= p <= 1 for p in tested.values()):
        raise ValueError("a p-value is not within 0 and 1")
    adjusted: dict[Key, float | None] = dict.fromkeys(p_values)
    highest = 0.0
    for rank, key in enumerate(sorted(tested, key=tested.__getitem__)):
        highest = min(1.0, max(highest, (len(p_values) - rank) * tested[key]))
        adjusted[key] = highest
    return adjusted
