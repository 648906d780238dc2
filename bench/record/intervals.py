"""Intervals of time in whole nanoseconds, so that the seconds of a recorded call are equal on any trial's clock."""

from __future__ import annotations

Interval = tuple[int, int]
"""The start and the end in nanoseconds."""
NANOSECONDS = 1_000_000_000


def covered_time(intervals: list[Interval]) -> int:
    """Return how much time these intervals cover. Time in several of them counts once. A start can be below 0."""
    covered, reached = 0, min(intervals, default=(0, 0))[0]
    for start, end in sorted(intervals):
        if end > reached:
            covered += end - max(start, reached)
            reached = end
    return covered


def in_seconds(nanoseconds: int) -> float:
    return nanoseconds / NANOSECONDS


def in_nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS)
