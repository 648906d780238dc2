"""Marks that figures of several studies share: a logarithmic axis, and means with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bench.read.analysis.statistics import Mean
from bench.read.render.marks import Sign, draw_value


def plain_log(ax: Axes) -> None:
    """Make the y axis logarithmic. Its labels are 1, 2 and 5 times each power of ten, written as plain numbers."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    ax.yaxis.set_minor_locator(NullLocator())


def draw_line(ax: Axes, points: Sequence[tuple[float, Mean]], sign: Sign) -> None:
    """Draw means with their intervals at these x positions, joined by straight lines."""
    ax.plot([x for x, _ in points], [mean.mean or 0.0 for _, mean in points], color=sign[1], lw=0.8, alpha=0.6)
    for x, mean in points:
        whisker(ax, x, mean, sign)


def whisker(ax: Axes, x: float, mean: Mean, sign: Sign) -> None:
    """Draw a mean with its interval; nothing if there is no mean."""
    if mean.mean is not None:
        draw_value(ax, x, (mean.mean, mean.low, mean.high), sign)
