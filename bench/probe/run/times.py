"""Finds out how often an effect was applied to a value: from the amounts that it adds to a number, and from the parts that it
adds to a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from bench.record.probe_rows import Cell

ROUNDING_ERROR = 1e-6
"""The largest rounding error in a sum of amounts that are no whole numbers."""
MAX_TIMES = 100
"""The largest count of an effect in a number or a text that is tried."""
CLOCK_RANGE_S = (1.5e9, 2.3e9)
"""The range of numbers that count as a clock's seconds since 1970: from 2017 to 2042."""
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
    pairs = enumerate(zip(before, after, strict=False))
    start = next((index for index, (old_letter, new_letter) in pairs if old_letter != new_letter), len(before))
    return after[start : start + length] if length >= 0 and after[start + length :] == before[start:] else None


def growth(before: Cell, after: Cell) -> int | float | None:
    """Return the number by which a number grew, or the bytes by which a long value grew; None for other values. A number may be
    stored as text."""
    number_before, number_after = number_of(before), number_of(after)
    if number_before is not None and number_after is not None:
        return number_after - number_before
    if isinstance(before, str) and isinstance(after, str) and (_long_value.fullmatch(before) or _long_value.fullmatch(after)):
        return _size(after) - _size(before)
    return None


def number_of(value: Cell) -> int | float | None:
    """Return the number that a value is, or that it stores as text; None for other values."""
    if isinstance(value, str):
        return float(value) if _decimal.fullmatch(value) else None
    return None if isinstance(value, bool) else value


def _size(value: str) -> int:
    """Return the number of bytes of a text; of a long value, of which only the size and the digest are known, its size."""
    long = _long_value.fullmatch(value)
    return int(long[1]) if long else len(value.encode("utf-8", "surrogatepass"))


def is_time(value: float) -> bool:
    """Return whether a number is a time: seconds, or thousandths to billionths of a second, since 1970."""
    return any(CLOCK_RANGE_S[0] <= value / unit <= CLOCK_RANGE_S[1] for unit in (1, 1e3, 1e6, 1e9))


def effect_counts(
    steps: Sequence[tuple[Cell, Cell]], initial: Cell, clean_value: Cell, value: Cell, likely: Sequence[int]
) -> tuple[int, ...] | None:
    """Return how often each effect was applied, if the counts explain the value at the end of the cell; None if no counts do.

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
        counts = None if text is None else counts_in_text(text, texts, likely)
        if counts:
            return counts
    if numbers:
        return numbers
    values_before = [steps[0][0], *(after for _, after in steps[:-1])]
    for applied in reversed(range(len(steps))):  # the value is an earlier one: the later effects are lost
        if value == values_before[applied]:
            return (1,) * applied + (0,) * (len(steps) - applied)
    return None


def _counts_by_number(
    steps: Sequence[tuple[Cell, Cell]], initial: Cell, clean_value: Cell, value: Cell, likely: Sequence[int]
) -> tuple[int, ...] | None:
    """Return how often each effect was applied to a number; None if the value is no number, or no counts explain it."""
    growths = [growth(initial if before is None else before, after) for before, after in steps]
    excess, amounts = growth(clean_value, value), [amount for amount in growths if amount is not None]
    if excess is None or len(amounts) < len(steps):
        return None
    return counts_in_number(excess, amounts, likely, any(before is None for before, _ in steps))


def counts_in_number(
    excess: float, amounts: Sequence[int | float], likely: Sequence[int], only_likely: bool
) -> tuple[int, ...] | None:
    """Return how often each effect was applied to a number that exceeds its clean value by `excess`. The likely counts are
    taken if they explain the excess; otherwise the counts of at most two effects differ from 1, by as little as possible. None
    if no counts explain it.

    Args:
        excess: The value minus the clean value, in which each effect was applied once.
        amounts: The amount that each effect adds.
        likely: How often each effect is likely to have been applied.
        only_likely: Whether no other counts are tried.
    """
    likely_excess = sum((count - 1) * amount for count, amount in zip(likely, amounts, strict=True))
    if abs(likely_excess - excess) < ROUNDING_ERROR:
        return tuple(likely)
    explanations = list[tuple[int, ...]]()
    for first, second in () if only_likely else product(range(len(amounts)), repeat=2):
        for first_count in (1,) if first == second else (0, 2, 3):
            counts = [1] * len(amounts)
            counts[first] = first_count
            rest = excess - (first_count - 1) * amounts[first]
            second_count = 1 + rest / amounts[second] if amounts[second] else -1.0
            if abs(second_count - round(second_count)) < ROUNDING_ERROR and 0 <= second_count <= MAX_TIMES:
                counts[second] = round(second_count)
                explanations.append(tuple(counts))
    return min(explanations, key=lambda counts: sum(abs(count - 1) for count in counts), default=None)


def counts_in_text(text: str, parts: Sequence[str], likely: Sequence[int]) -> tuple[int, ...] | None:
    """Return how often each part is in a text that consists of these parts in any order; None if the text has other content.

    Of equal parts each gets its likely count if these add up to the number in the text; otherwise the number is divided evenly.
    """
    distinct_parts = [part for part in dict.fromkeys(parts) if part]
    counts_by_end: dict[int, tuple[int, ...]] = {0: (0,) * len(distinct_parts)}
    for end in range(len(text)):
        if (counts_before := counts_by_end.get(end)) is None or sum(counts_before) > MAX_TIMES:
            continue
        for index, part in enumerate(distinct_parts):
            if text.startswith(part, end):
                longer = tuple(count + (other == index) for other, count in enumerate(counts_before))
                counts_by_end.setdefault(end + len(part), longer)
    if (distinct_counts := counts_by_end.get(len(text))) is None:
        return None
    counts = [0] * len(parts)
    for part, count in zip(distinct_parts, distinct_counts, strict=True):
        indexes = [index for index, candidate in enumerate(parts) if candidate == part]
        is_likely = sum(likely[index] for index in indexes) == count
        for nth, index in enumerate(indexes):
            counts[index] = likely[index] if is_likely else count // len(indexes) + (nth < count % len(indexes))
    return tuple(counts)
