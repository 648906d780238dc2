"""The noise floor: an architecture against itself.

An A/A comparison by split halves: the repetitions of one arm, each with seeds of its own, are dealt into two halves in every
way there is, and the halves' means are compared. Whatever differs is chance. It needs no trial beyond those of the run.

A half has half of the arm's trials and no twin in the other, so that this floor is about 1.4 times as high as that of two arms
of as many unpaired trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bench.analysis.statistics import CONFIDENCE, generator
from bench.analysis.statistics.seeded import RESAMPLES


@dataclass(frozen=True)
class NoiseFloor:
    """How far two halves of the same arm lie apart.

    half      trials in a half; where n is odd, one is left out of each split in turn
    splits    how many there are, or were drawn at random where there are more than RESAMPLES
    floor     95% of the splits lie no farther apart, in the measure's own unit; None below two values
    """

    n: int
    half: int
    splits: int
    floor: float | None


def split_half(values: Sequence[float], rng: np.random.Generator | None = None) -> NoiseFloor:
    """Raises ValueError for a value that is no finite number."""
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a value is no finite number")
    n, half = len(values), len(values) // 2
    if not half:
        return NoiseFloor(n, half, 0, None)
    sample = np.asarray(values, dtype=float)
    every = math.comb(n, half) * math.comb(n - half, half) // 2
    dealt = np.array(list(_every_split(n))) if every <= RESAMPLES else _random_splits(n, rng or generator())
    apart = np.abs(sample[dealt[:, :half]].mean(axis=1) - sample[dealt[:, half:]].mean(axis=1))
    return NoiseFloor(n, half, len(dealt), float(np.quantile(apart, CONFIDENCE, method="higher")))


def _every_split(n: int) -> Iterator[tuple[int, ...]]:
    """The places of the first half, then those of the second; each split once, whichever half is called the first."""
    half = n // 2
    for left_out in range(n) if n % 2 else (n,):
        first, *others = (place for place in range(n) if place != left_out)
        for chosen in combinations(others, half - 1):
            yield (first, *chosen, *(place for place in others if place not in chosen))


def _random_splits(n: int, rng: np.random.Generator) -> np.ndarray:
    places = np.tile(np.arange(n), (RESAMPLES, 1))
    return rng.permuted(places, axis=1)[:, : n // 2 * 2]
