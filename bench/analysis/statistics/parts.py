"""What each unit of several amounts took of a total that only is known as a whole."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from bench.analysis.statistics.intervals import t_quantile


@dataclass(frozen=True)
class Part:
    """`value` a unit, with its 95% interval, never below 0; no interval where there are fewer than two clusters."""

    value: float
    low: float | None
    high: float | None


def parts_of(
    amounts: Sequence[Sequence[float]], totals: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[Part, ...] | None:
    """For each column of `amounts` what one unit of it took, so that rows times parts come nearest to `totals`. None where
    there are no more rows than columns.

    Non-negative least squares (Lawson and Hanson, Solving Least Squares Problems, 1974). The interval's width is the
    jackknife's that leaves out one cluster at a time, with Student's t (Efron and Stein, Annals of Statistics 9, 1981), of
    least squares without that bound: a part that is held at 0 would show no scatter. `reports/calibration` has
    its coverage.
    """
    rows, sums = np.asarray(amounts, dtype=float), np.asarray(totals, dtype=float)
    if not len(rows) or len(rows) <= rows.shape[1]:
        return None
    whole = _everywhere(optimize.nnls(rows, sums)[0])
    names = list(dict.fromkeys(clusters))
    if len(names) < 2:
        return tuple(Part(float(value), None, None) for value in whole)
    kept = [np.array([one != name for one in clusters]) for name in names]
    without = np.array([np.linalg.lstsq(rows[own], sums[own], rcond=None)[0] for own in kept])
    scatter = ((without - without.mean(axis=0)) ** 2).sum(axis=0) * (len(names) - 1) / len(names)
    widths = _everywhere(t_quantile(len(names) - 1) * np.sqrt(scatter))
    return tuple(
        Part(float(value), max(0.0, float(value - width)), float(value + width))
        for value, width in zip(whole, widths, strict=True)
    )


def _everywhere(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """To ten significant digits: linear algebra gives the last ones otherwise on one processor than on another, and a table
    must be the same on all."""
    return np.array([float(f"{value:.9e}") for value in values])
