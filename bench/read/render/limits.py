"""The notes below a table on the limits of its numbers, one for each kind of limit, and a sentence for all tables on how often
intervals hold the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from bench.read.analysis.statistics import Limit, Limited, RateDifference, Ratio, limits_of
from bench.read.render.cells import BoundedNumber, Estimate, Rate, RateGap, Spent
from bench.read.render.table import Table


def limit_notes(numbers: Iterable[Limited]) -> tuple[str, ...]:
    """Return a note for each kind of limit of these numbers: the limit at the smallest N, and whether the limit is weaker at a
    larger N."""
    limits_by_kind: dict[tuple[str, str], dict[int, Limit]] = {}
    for number in numbers:
        n = number.pairs if isinstance(number, Ratio | RateDifference) else number.n
        for limit in limits_of(number):
            if limit.code != "coverage":
                limits_by_kind.setdefault((limit.code, limit.about), {})[n] = limit
    return tuple(
        limit_by_n[min(limit_by_n)].text + ("; the limit is weaker at larger N" if len(limit_by_n) > 1 else "")
        for limit_by_n in limits_by_kind.values()
    )


def coverage_sentence(numbers: Iterable[Limited], opening: str = "With so few trials some intervals are too narrow") -> str:
    """Return a sentence that some intervals are too narrow, with the worst case; "" if none is."""
    limits = chain.from_iterable(map(limits_of, numbers))
    coverages = [limit.measured for limit in limits if limit.code == "coverage" and limit.measured is not None]
    if not coverages:
        return ""
    share = f"{min(coverages):.0%} of cases instead of 95%"
    return f"{opening}. In simulated experiments the worst of them held the truth in {share}."


def numbers_in(table: Table) -> Iterator[Limited]:
    """Yield the measured number of each cell that has an interval."""
    for row in table.rows:
        for cell in row:
            match cell:
                case Estimate():
                    yield cell.mean
                case Rate():
                    yield cell.share
                case RateGap():
                    yield cell.gap
                case BoundedNumber() if cell.limited is not None:
                    yield cell.limited
                case Spent() if cell.per_solved.value is not None:
                    yield cell.per_solved.ratio
