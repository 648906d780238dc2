"""Notes below a table on the limits of its numbers, one for each kind of limit. How often intervals hold the truth is said once
for all tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench.read.analysis.statistics import Limit, Limited, RateDifference, Ratio, limits_of
from bench.read.render.cells import BoundedNumber, Estimate, Rate, RateGap, Spent
from bench.read.render.table import Table


def limit_notes(numbers: Iterable[Limited]) -> tuple[str, ...]:
    """Return one note for each kind of limit. It gives the limit at the smallest N, and says whether the limit also holds at a
    larger N."""
    kinds: dict[tuple[str, str], dict[int, Limit]] = {}
    for number in numbers:
        n = number.pairs if isinstance(number, Ratio | RateDifference) else number.n
        for limit in limits_of(number):
            if limit.code != "coverage":
                kinds.setdefault((limit.code, limit.about), {})[n] = limit
    return tuple(
        limits[min(limits)].text + ("; the limit is weaker at larger N" if len(limits) > 1 else "") for limits in kinds.values()
    )


def coverage_sentence(numbers: Iterable[Limited], opening: str = "With so few trials some intervals are too narrow") -> str:
    """Return a sentence on intervals that are too narrow, with the worst case. "" if there are none."""
    measured = [limit.measured for number in numbers for limit in limits_of(number) if limit.code == "coverage"]
    known = [share for share in measured if share is not None]
    if not known:
        return ""
    share = f"{min(known):.0%} of cases instead of 95%"
    return f"{opening}. In simulated experiments the worst of them held the truth in {share}."


def numbers_in(table: Table) -> Iterator[Limited]:
    """Yield each number with an interval in the cells of a table."""
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
