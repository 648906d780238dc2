"""The minimal sufficient sets of parts. Every set without a smaller sufficient set in it is tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import combinations
from typing import TypeVar

Part = TypeVar("Part")


async def minimal_sets(
    parts: Sequence[Part], suffices: Callable[[frozenset[Part]], Awaitable[bool]]
) -> tuple[frozenset[Part], ...]:
    """Return all minimal sufficient sets of these parts, the smallest first.

    Args:
        parts: The parts that can be mended.
        suffices: A function that runs again with a set of parts mended, and returns whether the failure is gone.
    """
    minimal: list[frozenset[Part]] = []
    for size in range(1, len(parts) + 1):
        for mended in map(frozenset, combinations(parts, size)):
            if not any(smaller <= mended for smaller in minimal) and await suffices(mended):
                minimal.append(mended)
    return tuple(minimal)
