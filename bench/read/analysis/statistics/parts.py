"""Estimate what one unit of each of several amounts took, if only the total is known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bench.read.analysis.statistics.bootstrap import Numbers
from bench.read.analysis.statistics.intervals import t_quantile


@dataclass(frozen=True)
class PartEstimate:
    """The estimate `value` for one unit, never below 0, with a 95% interval. Fewer than two clusters give no interval."""

    value: float
    low: float | None
    high: float | None


def parts_of(
    amounts: Sequence[Sequence[float]], totals: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[PartEstimate, ...] | None:
    """Return for each column of `amounts` what one unit took, so that rows times parts come nearest to `totals`. None if there
    are no more rows than columns.

    Non-negative least squares (Lawson and Hanson, Solving Least Squares Problems, 1974). The interval's width is from the
    jackknife that leaves out one cluster at a time, with Student's t (Efron and Stein, Annals of Statistics 9, 1981), of least
    squares without that bound: a part held at 0 would show no scatter. `reports/calibration` has its coverage.
    """
    from scipy import optimize  # noqa: PLC0415  it takes a fifth of a second, and comparing arms does not need it

    rows, sums = np.asarray(amounts, dtype=float), np.asarray(totals, dtype=float)
    if not len(rows) or len(rows) <= rows.shape[1]:
        return None
    whole = _everywhere(optimize.nnls(rows, sums)[0])
    without = _without_each(rows, sums, clusters)
    if len(without) < 2:
        return tuple(PartEstimate(float(value), None, None) for value in whole)
    scatter = ((without - without.mean(axis=0)) ** 2).sum(axis=0) * (len(without) - 1) / len(without)
    widths = _everywhere(t_quantile(len(without) - 1) * np.sqrt(scatter))
    return tuple(
        PartEstimate(float(value), max(0.0, float(value - width)), float(value + width))
        for value, width in zip(whole, widths, strict=True)
    )


def _without_each(rows: Numbers, sums: Numbers, clusters: Sequence[Hashable]) -> Numbers:
    """Return for each cluster the least squares of all rows but its own. A cluster's rows are first reduced to the triangle of
    their QR decomposition, which has the same least squares. The time is linear in rows and in clusters."""
    table, places = np.column_stack([rows, sums]), dict[Hashable, list[int]]()
    for place, name in enumerate(clusters):
        places.setdefault(name, []).append(place)
    triangles = [_triangle(table[rows]) for rows in places.values()]
    before = list(accumulate(triangles, _joined, initial=table[:0]))[:-1]
    behind = list(accumulate(reversed(triangles), _joined, initial=table[:0]))[-2::-1]
    rests = [np.vstack(pair) for pair in zip(before, behind, strict=True)]
    return np.array([np.linalg.lstsq(rest[:, :-1], rest[:, -1], rcond=None)[0] for rest in rests])


def _triangle(rows: Numbers) -> Numbers:
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _joined(rows: Numbers, others: Numbers) -> Numbers:
    return _triangle(np.vstack([rows, others]))


def _everywhere(values: Numbers) -> Numbers:
    """Round a number to ten significant digits, so that a table is the same everywhere: the last digits of linear algebra
    differ between processors."""
    return np.array([float(f"{value:.9e}") for value in values])
