"""Reproducible random draws. The seed of every draw depends on the draw's subject, never on the order of events."""

from __future__ import annotations

import hashlib
from random import Random


def seed_of(*parts: object) -> int:
    """Return a 64-bit seed that depends only on these parts, and is equal in every process."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def draw_for(*parts: object) -> Random:
    """Return a new random generator whose seed depends on these parts."""
    return Random(seed_of(*parts))
