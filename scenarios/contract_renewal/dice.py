"""Random draws that are the same on every machine and in every version of Python: each is a digest of a seed and its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from bench.common.seeding import seed_of

T = TypeVar("T")


class Dice:
    """A source of reproducible draws. `random.Random` promises the same numbers in every version only for `random()`, so it is
    not used here."""

    def __init__(self, *seed: object):
        self._seed, self._thrown = seed, 0

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        self._thrown += 1
        return seed_of("contract_renewal", *self._seed, self._thrown) % bound

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]
