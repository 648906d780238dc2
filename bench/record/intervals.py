"""Intervals of time in whole nanoseconds, so that the seconds of a recorded call are equal on any trial's clock."""

from __future__ import annotations

Interval = tuple[int, int]
"""The start and the end in nanoseconds."""
NANOSECONDS = 1_000_000_000


def union(intervals: list[Interval]) -> list[Interval]:
    """Return disjoint intervals, in order, that cover the same time as these intervals."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def total(intervals: list[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def in_seconds(nanoseconds: int) -> float:
    return nanoseconds / NANOSECONDS


def in_nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS)
