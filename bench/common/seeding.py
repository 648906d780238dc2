"""Reproducible chance: every draw is seeded by what it is about, never by the order of events."""

from __future__ import annotations

import hashlib
from random import Random


def seed_of(*parts: object) -> int:
    """Return a 64-bit seed that depends on every part and on nothing else, the same in every process."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def draw_for(*parts: object) -> Random:
    """Return a new random generator for these parts."""
    return Random(seed_of(*parts))
