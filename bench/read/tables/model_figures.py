"""The figures that compare models: over all trials that they share, and architecture by architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap

from matplotlib.axes import Axes

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST, measure_of
from bench.read.analysis.pairing import only
from bench.read.analysis.per_solved import per_solved
from bench.read.analysis.statistics import amount_of, by_unit
from bench.read.compare.models import ModelPair, pooled
from bench.read.render.drawing import PALE, WIDEST, Picture, blank, finish, legend_of_points, names_below, panel_title, panels
from bench.read.render.labels import each_arm, listed, model_label, slug, trials_in, under
from bench.read.render.marks import Sign, ValueInterval, bounded, lying, signs_of

TITLES = {
    "solved": "share solved",
    "dollars": "dollars for a solved task",
    "tokens": "tokens a trial",
    "retry_tokens": "retry tokens a trial",
    "latency_seconds": "seconds a trial",
}
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
SPREAD = 0.5
"""The share of the room between two architectures that their models' points fill."""


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
    mean = amount_of(list(by_unit(pooled(timed, column)).values()), measure_of(column))
    return None if mean.mean is None else (mean.mean, mean.low, mean.high)


def model_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """Draw a figure for each fault plan under which at least two models have trials without an error."""
    for plan in run.names("plan"):
        drawn = {
            condition: named
            for condition, named in arms.items()
            if condition.plan == plan and any(len(arm.usable) for arm in named.values())
        }
        if len({condition.model for condition in drawn}) > 1:
            yield _figure(run, plan, drawn)


def _figure(run: Run, plan: str, arms: Arms) -> Picture:
    """Draw a row of panels for each scenario, with a panel for each measure."""
    scenarios = list(dict.fromkeys(condition.scenario for condition in arms))
    names = [model for model in run.names("model") if any(condition.model == model for condition in arms)]
    signs = signs_of(names)
    width = max(2.9, 0.85 * len(run.names("architecture")))
    columns = [column for column in TITLES if column != "dollars" or any(_point(arm, column) for arm in each_arm(arms))]
    across = len(columns) if width * len(columns) <= WIDEST else -(-len(columns) // 2)
    figure, axes = panels(len(scenarios) * len(columns), across, width, 2.5)
    for place, ax in enumerate(axes):
        scenario, column = scenarios[place // len(columns)], columns[place % len(columns)]
        of_scenario = {condition: named for condition, named in arms.items() if condition.scenario == scenario}
        _draw(ax, of_scenario, column, run.names("architecture"), signs)
        panel_title(ax, scenario, trials_in(arm for named in of_scenario.values() for arm in named.values()))
        ax.set_ylabel(TITLES[column])
    legend_of_points(figure, {model_label(run, name): sign for name, sign in signs.items()})
    solved = listed([_solved(run, name, arms) for name in names])
    condition = under(plan)
    title = f"{condition[0].upper()}{condition[1:]}, architectures solved {solved}"
    caption = (
        "Each point is a mean, or the share that is solved, with its 95% interval. Trials that ended in an error are left out"
    )
    paid = ", but their cost is counted" if "dollars" in columns else ""
    return finish(figure, slug("models", plan), title, f"{title}. {caption}{paid}.")


def _solved(run: Run, model: str, arms: Arms) -> str:
    """Return in words what the worst and the best architecture of a model solved."""
    shares = [arm.solved() for arm in each_arm(arms) if arm.condition.model == model]
    least, most = (choose(shares, key=lambda share: share.rate or 0.0) for choose in (min, max))
    counts = dict.fromkeys(f"{share.k}/{share.n}" for share in (least, most))
    return f"{' to '.join(counts)} with {model_label(run, model)}"


def _draw(ax: Axes, arms: Arms, column: str, order: Sequence[str], signs: Mapping[str, Sign]) -> None:
    architectures = [name for name in order if any(name in named for named in arms.values())]
    step = SPREAD / len(signs)
    for place, (model, sign) in enumerate(signs.items()):
        named = next((named for condition, named in arms.items() if condition.model == model), {})
        for at, architecture in enumerate(architectures):
            point = _point(named[architecture], column) if architecture in named else None
            if point:
                bounded(ax, at + step * (place - (len(signs) - 1) / 2), point, sign)
    names_below(ax, architectures)
    ax.set_ylim(*((-0.03, 1.03) if column == "solved" else (min(0.0, ax.get_ylim()[0]), None)))


def _point(arm: Arm, column: str) -> ValueInterval | None:
    """Return the arm's mean of this column, its share solved, or its dollars per solved task. None if it has none."""
    if column == "dollars":
        spent = per_solved(arm.trials, COST.name)
        return None if spent.value is None else (spent.value, spent.low, spent.high)
    if column == "solved":
        share = arm.solved()
        return None if share.rate is None else (share.rate, share.low, share.high)
    mean = arm.mean(column)
    return None if mean.mean is None else (mean.mean, mean.low, mean.high)
