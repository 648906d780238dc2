"""The figures of a scorecard: how often each system finishes right after a crash, its damage, and its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.read.render.drawing import BLUE, GREEN, PALE, VERMILION, Picture, finish, panels
from bench.read.render.labels import slug
from bench.read.render.marks import ValueInterval, errors_of
from bench.worlds.read.scorecard.card import ALL_CRASHES, Scorecard, ScorecardRow, Struck
from bench.worlds.read.scorecard.cells import ANY
from bench.worlds.read.scorecard.words import model

MEASURES = (
    ("finished right after a crash, %", BLUE, "Whiskers are 95% intervals."),
    ("effects damaged for 100 crashes", VERMILION, "Damage is what exceeds the same trials without a crash."),
    ("tokens, × the control", GREEN, "Tokens are divided by those of the same trials without a crash."),
)
"""Of each figure: what it shows, its colour, and what the caption says of it."""


def pictures(card: Scorecard) -> Iterator[Picture]:
    """Yield a figure of each measure, for each world and model with crashed trials. A narrow page shows them one below the
    other."""
    for world, name in dict.fromkeys((row.world, model(row)) for row in card.rows):
        rows = [row for row in card.rows if (row.world, model(row)) == (world, name)]
        if any(_crashed(row) for row in rows):
            yield from (_figure(world, name, rows, place) for place in range(len(MEASURES)))


def _figure(world: str, name: str, rows: Sequence[ScorecardRow], place: int) -> Picture:
    measure, colour, about = MEASURES[place]
    figure, [ax] = panels(1, 1, 4.6, 0.6 + 0.3 * len(rows))
    for y, row in enumerate(rows):
        crashed = _crashed(row)
        ends = _ends(crashed)[place] if crashed else None
        if ends is not None:
            ax.errorbar([ends[0]], [y], xerr=errors_of(ends, not place), fmt="o", ms=4.5, color=colour, capsize=3, lw=1)
        else:
            ax.text(0.02, y, "not measured", va="center", fontsize=7, transform=ax.get_yaxis_transform())
    ax.set_yticks(range(len(rows)), [row.system.replace("_", " ") for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="x", color=PALE, lw=0.6)
    if place:
        ax.axvline(place - 1, color=PALE, lw=1)
    else:
        ax.set_xlim(-3, 103)
    crashes = sorted({crashed.failures for row in rows if (crashed := _crashed(row))})
    shown = f"N = {crashes[0]}" if len(crashes) == 1 else f"N = {crashes[0]} to {crashes[-1]}"
    title = f"{world}, {name}: {measure}"
    return finish(figure, slug("scorecard", world, name, measure), title, f"{title}. {shown} crashes for each system. {about}")


def _crashed(row: ScorecardRow) -> Struck | None:
    crashed = row.struck_by(ALL_CRASHES)
    return crashed if crashed and crashed.trials else None


def _ends(crashed: Struck) -> tuple[ValueInterval | None, ValueInterval | None, ValueInterval | None]:
    right, harm, work = crashed.right, crashed.harm[ANY].per_100, crashed.work["tokens"]
    percent = [None if limit is None else 100 * limit for limit in (right.rate, right.low, right.high)]
    return _known(*percent), _known(harm.value, harm.low, harm.high), _known(work.value, work.low, work.high)


def _known(value: float | None, low: float | None, high: float | None) -> ValueInterval | None:
    return None if value is None else (value, low, high)
