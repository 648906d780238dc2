"""Chance that can be told again: every draw is seeded by what it is about, never by the order in which things happen."""

from __future__ import annotations

import hashlib
from random import Random


def seed_of(*parts: object) -> int:
    """A 64-bit seed that depends on every part and on nothing else, the same in every process."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def draw_for(*parts: object) -> Random:
    """A random generator of its own for these parts."""
    return Random(seed_of(*parts))
