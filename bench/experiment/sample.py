"""Which of a pack's instances are run, where a config asks for so many."""

from __future__ import annotations

from collections.abc import Sequence

from bench.seeding import seed_of


def sample(names: Sequence[str], count: int | None, *parts: object) -> list[str]:
    """So many of the names, all of them for None, drawn for these parts and given in their own order.

    Each name has a rank that depends on it and on the parts alone, and the first in rank are taken: so a smaller sample is part
    of a larger one, and names that are added later change nothing in the order of the others.
    """
    taken = set(sorted(names, key=lambda name: seed_of(*parts, name))[:count])
    return [name for name in names if name in taken]
