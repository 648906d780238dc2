"""The marks of figures: a different sign for each name, and values with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from matplotlib.axes import Axes

from bench.read.render.cells import is_too_wide
from bench.read.render.drawing import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

Sign = tuple[str, str]
"""A marker and a colour."""
ValueInterval = tuple[float, float | None, float | None]
"""A value, and the ends of its interval."""
SHAPES, COLOURS = "osD^vPX*ph<>d", (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
"""13 shapes and 6 colours have no common divisor, so they give 78 signs. The first 13 differ in grey too."""


def signs_of(names: Sequence[str]) -> dict[str, Sign]:
    """Return a different sign for each name."""
    return dict(zip(names, zip(cycle(SHAPES), cycle(COLOURS), strict=False), strict=False))


def draw_value(ax: Axes, x: float, point: ValueInterval, sign: Sign) -> None:
    """Draw a value at x, with its interval if tables show such an interval."""
    ax.errorbar([x], [point[0]], yerr=errors_of(point), fmt=sign[0], ms=4.5, color=sign[1], capsize=3, lw=1)


def errors_of(point: ValueInterval, is_rate: bool = False) -> list[list[float]] | None:
    """Return the lengths of a value's whiskers, below and above, as matplotlib's `yerr`. None if the value has no interval, or
    if it is an amount whose interval is too wide to be shown."""
    value, low, high = point
    if low is None or high is None or (not is_rate and is_too_wide(value, low, high)):
        return None
    # By a rounding error, Wilson's interval may not include the rate itself.
    return [[max(0.0, value - low)], [max(0.0, high - value)]]
