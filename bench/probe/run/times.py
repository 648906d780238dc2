"""Find out how often an effect was applied to a value: a number is compared by its share, and a text by its parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from bench.record.probe_rows import Cell

SMALL = 1e-6
"""What is left over of sums of amounts that are no whole numbers."""
MOST_TIMES = 100
"""The most often that an effect is looked for in a number or a text."""
TIME = (1.5e9, 2.3e9)
"""Seconds since 1970 that a clock can show, from 2017 to 2042."""
_decimal = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_long = re.compile(r"\(digest\) (\d+) bytes(?: of text)? [0-9a-f]+")


def added_part(former: Cell, later: Cell) -> Cell:
    """Return the part that an effect added to a value: a number, the text that it put in, or the bytes by which a long value
    grew."""
    if isinstance(former, str) and isinstance(later, str) and not _long.fullmatch(later):
        return inserted_text(former, later)
    return size_grown(former, later)


def inserted_text(former: str, later: str) -> str | None:
    """Return the text that stands in a later text, and without which it is the former one: at its end, at its beginning, or at
    one place between. None if more differs."""
    more = len(later) - len(former)
    start = next((at for at, (early, late) in enumerate(zip(former, later, strict=False)) if early != late), len(former))
    return later[start : start + more] if more >= 0 and later[start + more :] == former[start:] else None


def size_grown(former: Cell, later: Cell) -> int | float | None:
    """Return the number, or the bytes of a long value, by which a value grew. A number can be kept as a text."""
    early, late = number_of(former), number_of(later)
    if early is not None and late is not None:
        return late - early
    if isinstance(former, str) and isinstance(later, str) and (_long.fullmatch(former) or _long.fullmatch(later)):
        return _size(later) - _size(former)
    return None


def number_of(value: Cell) -> int | float | None:
    """Return a number, also if it is kept as a text; None for another value."""
    if isinstance(value, str):
        return float(value) if _decimal.fullmatch(value) else None
    return None if isinstance(value, bool) else value


def _size(value: str) -> int:
    long = _long.fullmatch(value)
    return int(long[1]) if long else len(value.encode("utf-8", "surrogatepass"))


def is_time(value: float) -> bool:
    """Return whether a number is a time: seconds, or thousandths to billionths of a second, since 1970."""
    return any(TIME[0] <= value / unit <= TIME[1] for unit in (1, 1e3, 1e6, 1e9))


def times_made(
    steps: Sequence[tuple[Cell, Cell]], stood: Cell, normal: Cell, now: Cell, likely: Sequence[int]
) -> tuple[int, ...] | None:
    """Return how often each effect was made, to explain a value; None if no number of times explains it.

    Args:
        steps: The value before and after each effect in the clean run.
        stood: What it was made from.
        normal: It at the end of the clean run.
        now: It at the end.
        likely: How often the effects were made according to the journal.
    """
    numbers = _times_in_number(steps, stood, normal, now, likely)
    if numbers and [*numbers] == [*likely]:
        return numbers
    parts = [added_part(stood if former is None else former, later) for former, later in steps]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts) and isinstance(stood, str) and isinstance(now, str):
        text = inserted_text(stood, now)
        if times := None if text is None else times_in_text(text, texts, likely):
            return times
    if numbers:
        return numbers
    values = [steps[0][0], *(later for _, later in steps)]
    if now in values[:-1]:
        stands = len(values) - 2 - values[:-1][::-1].index(now)
        return tuple(int(at < stands) for at in range(len(steps)))
    return None


def _times_in_number(
    steps: Sequence[tuple[Cell, Cell]], stood: Cell, normal: Cell, now: Cell, likely: Sequence[int]
) -> tuple[int, ...] | None:
    sizes = [size_grown(stood if former is None else former, later) for former, later in steps]
    more, known = size_grown(normal, now), [size for size in sizes if size is not None]
    if more is None or len(known) < len(steps):
        return None
    return times_in_number(more, known, likely, any(former is None for former, _ in steps))


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
