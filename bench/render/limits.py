"""What the numbers of a table do not hold, said below it: once for each kind of limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bench.analysis.statistics import Limit, Mean, Ratio, Share, limits_of
from bench.render.table import Estimate, Rate, Table

Limited = Mean | Ratio | Share


def with_limits(table: Table) -> Table:
    """The table with the limits of its means and rates among its notes."""
    return replace(table, notes=(*table.notes, *noted(_numbers(table))))


def noted(numbers: Iterable[Limited]) -> tuple[str, ...]:
    """One note for each kind of limit: that of the smallest N, and whether there is one at a larger N as well."""
    kinds: dict[tuple[str, bool], dict[int, Limit]] = {}
    for number in numbers:
        n = number.pairs if isinstance(number, Ratio) else number.n
        for limit in limits_of(number):
            kinds.setdefault((limit.code, isinstance(number, Share)), {})[n] = limit
    return tuple(found[min(found)].text + ("; at larger N less so" if len(found) > 1 else "") for found in kinds.values())


def _numbers(table: Table) -> Iterator[Limited]:
    for row in table.rows:
        for cell in row:
            if isinstance(cell, Estimate):
                yield cell.mean
            elif isinstance(cell, Rate):
                yield cell.share
