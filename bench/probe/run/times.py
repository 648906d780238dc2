"""Find out how often an effect was applied to a value: a number is compared by its share, and a text by its parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from bench.record.probe.rows import Cell

SMALL = 1e-6
"""What is left over of sums of amounts that are no whole numbers."""
MOST_TIMES = 100
"""The most often that an effect is looked for in a number or a text."""
_long = re.compile(r"\(digest\) (\d+) bytes(?: of text)? [0-9a-f]+")


def added_part(former: Cell, later: Cell) -> Cell:
    """Return the part that an effect added to a value: a number, the text at its end, or the bytes by which a long value
    grew."""
    if isinstance(former, str) and isinstance(later, str) and later.startswith(former) and not _long.fullmatch(later):
        return later.removeprefix(former)
    return size_grown(former, later)


def size_grown(former: Cell, later: Cell) -> int | float | None:
    if _is_number(former) and _is_number(later):
        return later - former  # type: ignore[operator]
    if isinstance(former, str) and isinstance(later, str) and (_long.fullmatch(former) or _long.fullmatch(later)):
        return _size(later) - _size(former)
    return None


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _size(value: str) -> int:
    long = _long.fullmatch(value)
    return int(long[1]) if long else len(value.encode("utf-8", "surrogatepass"))


def times_in_number(
    more: float, parts: Sequence[int | float], likely: Sequence[int], only_likely: bool
) -> tuple[int, ...] | None:
    """Return how often each part stands in a number that is `more` beyond its clean value: as is likely, or else so that the
    fewest effects differ."""
    if _is_whole(sum((times - 1) * part for times, part in zip(likely, parts, strict=True)) - more, 0):
        return tuple(likely)
    if only_likely:
        return None
    best: tuple[int, tuple[int, ...]] | None = None
    for at, other in product(range(len(parts)), repeat=2):
        for stands in (1,) if at == other else (0, 2, 3):
            times = [1] * len(parts)
            times[at] = stands
            rest = 1 + (more - (stands - 1) * parts[at]) / parts[other] if parts[other] else -1.0
            if not (_is_whole(rest) and 0 <= rest <= MOST_TIMES):
                continue
            times[other] = round(rest)
            costs = sum(abs(count - 1) for count in times)
            if best is None or costs < best[0]:
                best = costs, tuple(times)
    return best[1] if best else None


def _is_whole(number: float, whole: int | None = None) -> bool:
    return abs(number - (round(number) if whole is None else whole)) < SMALL


def times_in_text(text: str, parts: Sequence[str], likely: Sequence[int]) -> tuple[int, ...] | None:
    """Return how often each part occurs in a text that consists of these parts, in any order; None if the text has other
    content. Equal parts share their occurrences: as is likely, or else evenly."""
    kinds = [part for part in dict.fromkeys(parts) if part]
    begun: dict[int, tuple[int, ...]] = {0: (0,) * len(kinds)}
    for end in range(len(text)):
        if (times := begun.get(end)) is None or sum(times) > MOST_TIMES:
            continue
        for at, part in enumerate(kinds):
            if text.startswith(part, end):
                longer = tuple(count + (place == at) for place, count in enumerate(times))
                begun.setdefault(end + len(part), longer)
    if (times := begun.get(len(text))) is None:
        return None
    counts = [0] * len(parts)
    for part, count in zip(kinds, times, strict=True):
        places = [at for at, other in enumerate(parts) if other == part]
        is_likely = sum(likely[at] for at in places) == count
        for nth, at in enumerate(places):
            counts[at] = likely[at] if is_likely else count // len(places) + (nth < count % len(places))
    return tuple(counts)
