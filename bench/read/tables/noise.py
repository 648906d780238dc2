"""The noise floor: how far an architecture differs from itself.

This is an A/A comparison by split halves. The repetitions of one arm, each with its own seeds, are dealt into two halves in
every possible way, and the halves' means are compared. Any difference is chance. No further trials are needed.

A half has half of the arm's trials and is unpaired, so this floor is about 1.4 times as high as the floor of two arms with N
unpaired trials each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bench.read.analysis.statistics import CONFIDENCE, generator

AT_ONCE = 1 << 20
"""The most places of values in memory."""
SPLITS = 1_999
"""With this many random splits, between 94% and 96% of all splits lie below the 95% point, in 19 of 20 cases."""


@dataclass(frozen=True, eq=False)
class Halves:
    """The ways to deal n values into two halves of `half` values. If n is odd, each way leaves out one value.

    splits   how many: all splits, or SPLITS random ones if there are more; none if n is below 2
    random   whether they are random
    """

    n: int
    half: int
    splits: int
    random: bool

    def dealt(self) -> Iterator[np.ndarray]:
        """Yield the ways to deal the values, AT_ONCE values at a time, a row for each way: the places of the first half's
        values, then of the second half's values."""
        if not self.random:
            yield np.array(list(_every_split(self.n)), dtype=int)
            return
        rng, rows = generator(), max(1, AT_ONCE // self.n)
        for begun in range(0, self.splits, rows):
            places = np.tile(np.arange(self.n), (min(rows, self.splits - begun), 1))
            yield rng.permuted(places, axis=1)[:, : 2 * self.half]

    def floor(self, values: Sequence[float]) -> float | None:
        """Return the distance between the means of two halves that 95% of the splits do not exceed, in the unit of the values.

        None if n is below 2. Raises ValueError if a value is not finite or if there are not n values.
        """
        return self.floors([values])[0]

    def floors(self, samples: Sequence[Sequence[float]]) -> list[float | None]:
        """Return the floor of each of several samples. Dealing takes longer than comparing, so all samples share one deal."""
        for values in samples:
            if len(values) != self.n:
                raise ValueError(f"{len(values)} values, but the halves are of {self.n}")
            if not all(math.isfinite(value) for value in values):
                raise ValueError("a value is no finite number")
        if not self.half:
            return [None] * len(samples)
        arrays = [np.asarray(values, dtype=float) for values in samples]
        apart: list[list[np.ndarray]] = [[] for _ in samples]
        for dealt in self.dealt():
            for sample, distances in zip(arrays, apart, strict=True):
                means = sample.take(dealt).reshape(len(dealt), 2, self.half).mean(axis=2)
                distances.append(np.abs(means[:, 0] - means[:, 1]))
        return [float(np.quantile(np.concatenate(distances), CONFIDENCE, method="higher")) for distances in apart]


def halves_of(n: int) -> Halves:
    """Return the halves of n trials."""
    half = n // 2
    if not half:
        return Halves(n, half, 0, random=False)
    every = math.comb(n, half) * math.comb(n - half, half) // 2
    return Halves(n, half, min(every, SPLITS), random=every > SPLITS)


def _every_split(n: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of the first half, then of the second. Halves are not swapped, so each split comes once."""
    half = n // 2
    for left_out in range(n) if n % 2 else (n,):
        first, *others = (place for place in range(n) if place != left_out)
        for chosen in combinations(others, half - 1):
            yield (first, *chosen, *(place for place in others if place not in chosen))
