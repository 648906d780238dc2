"""The figure that compares models, over all trials that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST, measure_of
from bench.read.analysis.pairing import only
from bench.read.analysis.per_solved import per_solved
from bench.read.analysis.statistics import amount_of, by_unit
from bench.read.compare.models import ModelPair, pool
from bench.read.render.drawing import PALE, Picture, blank, finish
from bench.read.render.labels import listed, model_label
from bench.read.render.marks import ValueInterval, lying, signs_of

POOLED = {
    "solved": ("correct", "share solved"),
    "dollars": (COST.name, "dollars for a solved task"),
    "tokens": ("tokens", "tokens a trial"),
    "retry_tokens": ("retry_tokens", "retry tokens a trial"),
    "seconds": ("on_the_clock", "seconds a trial, of calls and waiting"),
}
"""Panel -> the column of its values, and the label of its axis."""
COLUMN = 3.8
"""Inches: the width of a column of a paper, and of a telephone's screen."""


def models_together(run: Run, pairs: Sequence[ModelPair]) -> Iterator[Picture]:
    """Draw what each model solved and took over all arms, a panel below the other: narrow enough for a column of a paper. No
    figure if there is nothing to compare."""
    if not pairs:
        return
    names = [pairs[0].first, *(pair.second for pair in pairs)]
    signs = signs_of(names)
    points = {
        panel: {name: point for name in names if (point := _pooled_point(only(run, "model", name), panel))} for panel in POOLED
    }
    drawn = {panel: of_panel for panel, of_panel in points.items() if of_panel}
    labels = ["\n".join(wrap(model_label(run, name), 18)) for name in names]
    lines = len(names) * max(label.count("\n") + 1 for label in labels)
    figure = blank(COLUMN, 0.7 + len(drawn) * (0.45 + 0.2 * lines))
    for ax, (panel, of_panel) in zip(figure.subplots(len(drawn), 1, squeeze=False).flatten(), drawn.items(), strict=True):
        for place, name in enumerate(names):
            if name in of_panel:
                lying(ax, -place, of_panel[name], signs[name])
        ax.set_yticks([-place for place in range(len(names))], labels)
        ax.set_ylim(0.6 - len(names), 0.6)
        ax.set_xlim(*((-0.03, 1.03) if panel == "solved" else (0.0, 1.03 * ax.get_xlim()[1])))
        ax.set_xlabel(POOLED[panel][1])
        ax.grid(axis="x", color=PALE, lw=0.6)
    others = listed([model_label(run, pair.second) for pair in pairs])
    title = f"{model_label(run, names[0])} beside {others}, over the {pairs[0].measures['retry_tokens'].pairs} trials of each"
    caption = (
        "Points are means, or the share that is solved, with 95% intervals: of each model by itself, not of the difference"
    )
    yield finish(figure, "models", title, f"{title}. {caption}.")


def _pooled_point(run: Run, panel: str) -> ValueInterval | None:
    column = POOLED[panel][0]
    if panel == "dollars":
        spent = per_solved(run.trials, column)
        return None if spent.value is None else (spent.value, spent.low, spent.high)
    timed = replace(run, trials=run.trials.assign(on_the_clock=run.trials["api_seconds"] + run.trials["waiting_seconds"]))
    mean = amount_of(list(by_unit(pool(timed, column)).values()), measure_of(column))
    return None if mean.mean is None else (mean.mean, mean.low, mean.high)
