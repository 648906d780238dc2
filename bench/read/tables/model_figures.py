"""The figure that compares models, architecture by architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST
from bench.read.analysis.per_solved import per_solved
from bench.read.render.drawing import WIDEST, Picture, finish, legend_of_points, names_below, panel_title, panels
from bench.read.render.labels import each_arm, listed, model_label, slug, trials_in, under
from bench.read.render.marks import Sign, ValueInterval, bounded, signs_of

TITLES = {
    "solved": "share solved",
    "dollars": "dollars for a solved task",
    "tokens": "tokens a trial",
    "retry_tokens": "retry tokens a trial",
    "latency_seconds": "seconds a trial",
}
SPREAD = 0.5
"""The share of the room between two architectures that their models' points fill."""


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
