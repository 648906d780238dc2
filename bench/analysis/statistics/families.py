"""Several tests at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def holm(p_values: Mapping[Key, float | None]) -> dict[Key, float | None]:
    """p-values adjusted so that the chance of any false finding in the family stays below the level each is compared with.

    The family is what was declared, not what came out: a test that could not be made (None) stays None and counts.
    In rising order the i-th of m becomes the greatest of (m - j + 1) p(j) over j <= i, at most 1.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    Raises ValueError for a p that is not within 0 and 1.
    """
    tested = {key: p for key, p in p_values.items() if p is not None}
    if not all(0 <= p <= 1 for p in tested.values()):
        raise ValueError("a p-value is not within 0 and 1")
    adjusted: dict[Key, float | None] = dict.fromkeys(p_values)
    highest = 0.0
    for rank, key in enumerate(sorted(tested, key=tested.__getitem__)):
        highest = min(1.0, max(highest, (len(p_values) - rank) * tested[key]))
        adjusted[key] = highest
    return adjusted
