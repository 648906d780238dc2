"""Tests whether a difference could be chance: the sign-flip test of pairs, and Holm's correction of several tests."""

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
    """Return a new random generator with the declared seed, which draws the same numbers each time."""
    return np.random.default_rng(SEED)


# Pairs

GRID_STEPS = 1 << 20
"""The number of steps into which the sum of all sizes of differences is divided, if the differences have no common denominator.
Then p is rounded up by less than a step for each pair."""
DENOMINATORS = range(1, 61)
"""The common denominators that are tried. For differences with such a denominator, as means of few whole numbers have, p is
exact."""
PAIRS_PER_HALVING = 512
"""The number of differences after which counts of assignments are divided, before they grow beyond what a float can hold."""
RELATIVE_ROUNDING = 1e-6
"""Two sums that differ by less than this share of the sum of all sizes are taken as equal."""


@dataclass(frozen=True)
class PairedTest:
    """The result of a test whether a difference could be chance.

    pairs    the number of pairs, or of instances if there are several
    p        the two-sided p; None without a pair
    least    the least p that the pairs that differ can give: above 0.05 the test cannot find anything at that level
    differ   the number of pairs that differ: only these count for the test
    """

    pairs: int
    p: float | None
    least: float | None
    differ: int = 0


def paired_test(values: Mapping[Pair, float], others: Mapping[Pair, float]) -> PairedTest:
    """Return the sign-flip test of the mean difference.

    If the arms do not differ, each difference is as likely with the other sign. p is the share of all assignments of signs
    whose mean is at least as far from zero as the observed mean. The test assumes symmetry, but no distribution. If there are
    several instances, the mean difference of each counts once.

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
    """Return the share of all assignments of signs whose sum is at least as far from 0, on the side of the observed sum.

    A sum is that far if the sizes with the opposite sign add up to no more than in the observed assignment (`minority`). The
    number of assignments by this part is the convolution of one step for each difference. It is exact if the differences have
    a common denominator; else it is on a grid (GRID_STEPS).
    """
    signed = np.asarray(differences, dtype=float)
    sizes = np.abs(signed[signed != 0])
    minority = max(0.0, float(sizes.sum() - abs(signed.sum()))) / 2
    if denominator := _denominator(sizes, minority):
        steps, most = np.rint(sizes * denominator).astype(np.int64), round(minority * denominator)
    else:
        steps = np.floor(sizes / sizes.sum() * GRID_STEPS).astype(np.int64)
        most = math.floor(minority / sizes.sum() * GRID_STEPS * (1 + RELATIVE_ROUNDING)) + 1
    assignments, spare = np.zeros((2, most + 1))  # by the steps of the minority
    assignments[0], reached = 1.0, 0
    for number, step in enumerate(np.sort(steps), 1):  # the smallest first: fewer sums are reached before a large step
        if step <= most:
            reached = min(reached + int(step), most)
            spare[:step] = assignments[:step]
            np.add(assignments[step : reached + 1], assignments[: reached + 1 - step], out=spare[step : reached + 1])
            assignments, spare = spare, assignments  # numpy copies an array that is added to itself, which takes twice as long
        if number % PAIRS_PER_HALVING == 0:
            assignments[: reached + 1] *= 0.5**PAIRS_PER_HALVING
    return float(assignments.sum()) * 0.5 ** (len(steps) % PAIRS_PER_HALVING)


def _denominator(sizes: np.ndarray, minority: float) -> int | None:
    """Return the least number that makes all these sizes whole; None if there is none for which the convolution is short
    enough."""
    for number in DENOMINATORS:
        if minority * number > 2 * GRID_STEPS:
            return None
        scaled = sizes * number
        whole = np.rint(scaled)
        if whole.all() and (np.abs(scaled - whole) <= RELATIVE_ROUNDING).all():  # a size that is nearly 0 is no 0
            return number
    return None


# Several tests at once


def holm(p_values: Mapping[Key, float | None]) -> dict[Key, float | None]:
    """Return p-values adjusted so that the chance of any false finding in the family stays below the level.

    The family is all tests that were declared: a test that could not be made (None) counts, and stays None. In rising order the
    i-th p of m becomes the greatest of (m - j + 1) p(j) over j <= i, at most 1.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    Raises ValueError for a p that is not within 0 and 1.
    """
    p_by_test = {key: p for key, p in p_values.items() if p is not None}
    if not all(0 <= p <= 1 for p in p_by_test.values()):
        raise ValueError("a p-value is not within 0 and 1")
    adjusted: dict[Key, float | None] = dict.fromkeys(p_values)
    highest = 0.0
    for rank, key in enumerate(sorted(p_by_test, key=p_by_test.__getitem__)):
        highest = min(1.0, max(highest, (len(p_values) - rank) * p_by_test[key]))
        adjusted[key] = highest
    return adjusted
