"""Finds out how often an effect was applied to a value: a number is compared by the added amounts, and a text by the added
parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from bench.record.probe_rows import Cell

ROUNDING_ERROR = 1e-6
"""What is left over of sums of amounts that are no whole numbers."""
MAX_TIMES = 100
"""The most often that an effect is looked for in a number or a text."""
CLOCK_RANGE_S = (1.5e9, 2.3e9)
"""Seconds since 1970 that a clock can show, from 2017 to 2042."""
_decimal = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_long_value = re.compile(r"\(digest\) (\d+) bytes(?: of text)? [0-9a-f]+")


def added_part(before: Cell, after: Cell) -> Cell:
    """Return what an effect added to a value: a number, the inserted text, or the number of bytes by which a long value
    grew."""
    if isinstance(before, str) and isinstance(after, str) and not _long_value.fullmatch(after):
        return inserted_text(before, after)
    return growth(before, after)


def inserted_text(before: str, after: str) -> str | None:
    """Return the text whose insertion at one place turns one text into the other; None if they differ in another way."""
    length = len(after) - len(before)
    start = next(
        (
            index
            for index, (letter_before, letter_after) in enumerate(zip(before, after, strict=False))
            if letter_before != letter_after
        ),
        len(before),
    )
    return after[start : start + length] if length >= 0 and after[start + length :] == before[start:] else None


def growth(before: Cell, after: Cell) -> int | float | None:
    """Return the number, or the bytes of a long value, by which a value grew; None if it is neither. A number may be stored
    as text."""
    number_before, number_after = number_of(before), number_of(after)
    if number_before is not None and number_after is not None:
        return number_after - number_before
    if isinstance(before, str) and isinstance(after, str) and (_long_value.fullmatch(before) or _long_value.fullmatch(after)):
        return _size(after) - _size(before)
    return None


def number_of(value: Cell) -> int | float | None:
    """Return a number, also if it is stored as text; None for another value."""
    if isinstance(value, str):
        return float(value) if _decimal.fullmatch(value) else None
    return None if isinstance(value, bool) else value


def _size(value: str) -> int:
    """Return the bytes of a text."""
    long = _long_value.fullmatch(value)
    return int(long[1]) if long else len(value.encode("utf-8", "surrogatepass"))


def is_time(value: float) -> bool:
    """Return whether a number is a time: seconds, or thousandths to billionths of a second, since 1970."""
    return any(CLOCK_RANGE_S[0] <= value / unit <= CLOCK_RANGE_S[1] for unit in (1, 1e3, 1e6, 1e9))


def effect_counts(
    steps: Sequence[tuple[Cell, Cell]], initial: Cell, clean_value: Cell, value: Cell, likely: Sequence[int]
) -> tuple[int, ...] | None:
    """Return how often each effect was applied, so that the value is explained; None if no counts explain it.

    Args:
        steps: The value before and after each effect in the clean run.
        initial: The value before the first effect.
        clean_value: The value at the end of the clean run.
        value: The value at the end of the cell.
        likely: How often the effects were applied according to the journal.
    """
    numbers = _counts_by_number(steps, initial, clean_value, value, likely)
    if numbers and [*numbers] == [*likely]:
        return numbers
    parts = [added_part(initial if before is None else before, after) for before, after in steps]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts) and isinstance(initial, str) and isinstance(value, str):
        text = inserted_text(initial, value)
        if times := None if text is None else counts_in_text(text, texts, likely):
            return times
    if numbers:
        return numbers
    values = [steps[0][0], *(after for _, after in steps)]
    if value in values[:-1]:
        count_done = len(values) - 2 - values[:-1][::-1].index(value)
        return tuple(int(at < count_done) for at in range(len(steps)))
    return None


def _counts_by_number(
    steps: Sequence[tuple[Cell, Cell]], initial: Cell, clean_value: Cell, value: Cell, likely: Sequence[int]
) -> tuple[int, ...] | None:
    """Return how often each effect was applied to a number; None if the value is no number, or no counts explain it."""
    sizes = [growth(initial if before is None else before, after) for before, after in steps]
    excess, known = growth(clean_value, value), [size for size in sizes if size is not None]
    if excess is None or len(known) < len(steps):
        return None
    return counts_in_number(excess, known, likely, any(before is None for before, _ in steps))


def counts_in_number(
    excess: float, parts: Sequence[int | float], likely: Sequence[int], only_likely: bool
) -> tuple[int, ...] | None:
    """Return how often each part is in a number that exceeds its clean value by `excess`: as often as is likely, or else so
    that the fewest effects differ.

    Args:
        excess: The value minus the clean value.
        parts: The amount that each effect adds.
        likely: How often each effect is likely in it.
        only_likely: Whether no other counts are tried.
    """
    if _is_whole(sum((times - 1) * part for times, part in zip(likely, parts, strict=True)) - excess, 0):
        return tuple(likely)
    if only_likely:
        return None
    best: tuple[int, tuple[int, ...]] | None = None
    for first, second in product(range(len(parts)), repeat=2):
        for first_count in (1,) if first == second else (0, 2, 3):
            times = [1] * len(parts)
            times[first] = first_count
            rest = 1 + (excess - (first_count - 1) * parts[first]) / parts[second] if parts[second] else -1.0
            if not (_is_whole(rest) and 0 <= rest <= MAX_TIMES):
                continue
            times[second] = round(rest)
            costs = sum(abs(count - 1) for count in times)
            if best is None or costs < best[0]:
                best = costs, tuple(times)
    return best[1] if best else None


def _is_whole(number: float, whole: int | None = None) -> bool:
    """Return whether a number is whole, or equals `whole`, but for rounding errors."""
    return abs(number - (round(number) if whole is None else whole)) < ROUNDING_ERROR


def counts_in_text(text: str, parts: Sequence[str], likely: Sequence[int]) -> tuple[int, ...] | None:
    """Return how often each part is in a text that consists of these parts in any order; None if it has other content. Equal
    parts share their occurrences: as is likely, or else evenly."""
    kinds = [part for part in dict.fromkeys(parts) if part]
    counts_by_end: dict[int, tuple[int, ...]] = {0: (0,) * len(kinds)}
    for end in range(len(text)):
        if (times := counts_by_end.get(end)) is None or sum(times) > MAX_TIMES:
            continue
        for index, part in enumerate(kinds):
            if text.startswith(part, end):
                longer = tuple(count + (place == index) for place, count in enumerate(times))
                counts_by_end.setdefault(end + len(part), longer)
    if (times := counts_by_end.get(len(text))) is None:
        return None
    counts = [0] * len(parts)
    for part, count in zip(kinds, times, strict=True):
        places = [index for index, candidate in enumerate(parts) if candidate == part]
        is_likely = sum(likely[index] for index in places) == count
        for nth, index in enumerate(places):
            counts[index] = likely[index] if is_likely else count // len(places) + (nth < count % len(places))
    return tuple(counts)
