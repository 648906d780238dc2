"""Chance that can be told again: every draw is seeded by what it is about, never by the order in which things happen."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random


def seed_of(*parts: object) -> int:
    """A 64-bit seed that depends on every part and on nothing else, the same in every process."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def draw_for(*parts: object) -> Random:
    """A random generator of its own for these parts."""
    return Random(seed_of(*parts))


def sample(names: Sequence[str], count: int | None, *parts: object) -> list[str]:
    """So many of the names, all of them for None, drawn for these parts and given in their own order.

    Each name has a rank that depends on it and on the parts alone, and the first in rank are taken: so a smaller sample is part
    of a larger one, and names that are added later change nothing in the order of the others.
    """
    taken = set(sorted(names, key=lambda name: seed_of(*parts, name))[:count])
    return [name for name in names if name in taken]
