"""The figure in which models stand side by side, architecture by architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes

from bench.analysis.arms import Arm, Arms
from bench.analysis.frames import Run
from bench.render.drawing import (
    PALE,
    WIDEST,
    Picture,
    finish,
    legend_of_points,
    panel_title,
    panels,
    tick_labels,
)
from bench.render.labels import model_label, slug, trials_in
from bench.render.marks import Bounds, bounded, signs_of

COLUMNS = ("tokens", "retry_tokens", "latency_seconds", "solved")
TITLES = ("tokens a trial", "retry tokens a trial", "seconds a trial", "share solved")
SPREAD = 0.5
"""Of the room between two architectures, how much their models share."""


def model_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """One figure for each fault plan under which two models or more have trials that did not end in an error."""
    for plan in run.names("plan"):
        drawn = {condition: found for condition, found in arms.items() if condition.plan == plan and _usable(found)}
        if len({condition.model for condition in drawn}) > 1:
            yield _figure(run, plan, drawn)


def _usable(found: Mapping[str, Arm]) -> bool:
    return any(len(arm.usable) for arm in found.values())


def _figure(run: Run, plan: str, arms: Arms) -> Picture:
    """A row of panels for each scenario, in it one for each measure."""
    scenarios = list(dict.fromkeys(condition.scenario for condition in arms))
    names = [model for model in run.names("model") if any(condition.model == model for condition in arms)]
    signs = signs_of(names)
    width = max(2.9, 0.62 * len(run.names("architecture")))
    across = len(COLUMNS) if width * len(COLUMNS) <= WIDEST else len(COLUMNS) // 2
    figure, axes = panels(len(scenarios) * len(COLUMNS), across, width, 2.5)
    for place, ax in enumerate(axes):
        scenario, measure = scenarios[place // len(COLUMNS)], place % len(COLUMNS)
        own = {condition: found for condition, found in arms.items() if condition.scenario == scenario}
        _draw(ax, own, COLUMNS[measure], run.names("architecture"), signs)
        panel_title(ax, scenario, trials_in(arm for found in own.values() for arm in found.values()))
        ax.set_ylabel(TITLES[measure])
    legend_of_points(figure, {model_label(run, name): sign for name, sign in signs.items()})
    title = f"Models compared, fault plan {plan}: {', '.join(model_label(run, name) for name in names)}"
    said = "Points are means, and for solved the rate, each with its 95% interval; trials that ended in an error are left out."
    return finish(figure, slug("models", plan), title, f"{title}. {said}")


def _draw(ax: Axes, arms: Arms, column: str, order: Sequence[str], signs: Mapping[str, tuple[str, str]]) -> None:
    architectures = [name for name in order if any(name in found for found in arms.values())]
    step = SPREAD / len(signs)
    for place, (model, (marker, colour)) in enumerate(signs.items()):
        found = next((own for condition, own in arms.items() if condition.model == model), {})
        for at, architecture in enumerate(architectures):
            point = _point(found[architecture], column) if architecture in found else None
            if point:
                x = at + step * (place - (len(signs) - 1) / 2)
                bounded(ax, x, point, (marker, colour))
    ax.set_xticks(range(len(architectures)), tick_labels(architectures))
    ax.set_xlim(-0.6, len(architectures) - 0.4)
    ax.set_ylim(*((-0.03, 1.03) if column == "solved" else (min(0.0, ax.get_ylim()[0]), None)))
    ax.grid(axis="y", color=PALE, lw=0.6)


def _point(arm: Arm, column: str) -> Bounds | None:
    """The arm's mean of this column, or the rate of its solved trials; None where it has neither."""
    if column == "solved":
        share = arm.solved()
        return None if share.rate is None else (share.rate, share.low, share.high)
    mean = arm.mean(column)
    return None if mean.mean is None else (mean.mean, mean.low, mean.high)
