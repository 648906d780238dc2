"""The figure of first rounds, and which figures lead a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_ROUND, PRICE, Metric
from bench.read.render.drawing import (
    BLUE,
    Picture,
    finish,
    legend_below,
    names_below,
    panel_title,
    panels,
)
from bench.read.render.labels import counts_text, extremes_text, in_brackets, model_label, plan_phrase, slug
from bench.read.render.marks import errors_of
from bench.read.report.figure_part import FigurePart
from bench.read.tables.recovery_rates import recovery_figures
from bench.record.config import FAULT_FREE


def arm_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """Draw the first rounds of each model under each fault plan. Trials that ended in an error are left out."""
    for model in run.names("model"):
        drawn = _drawable(arms, model)
        plans = [plan for plan in run.names("plan") if any(condition.plan == plan for condition in drawn)]
        struck = [plan for plan in plans if plan != FAULT_FREE] or plans
        for plan in struck:
            chosen = {condition: named for condition, named in drawn.items() if condition.plan == plan}
            rounds = FIRST_ROUND.tokens.name
            noticed = {at: named for at, named in chosen.items() if any(arm.mean(rounds).n for arm in named.values())}
            if noticed:
                yield first_round(run, noticed)


def _in_world(run: Run) -> bool:
    return bool(run.trials["lives"].notna().any())


def _drawable(arms: Arms, model: str) -> Arms:
    """Return this model's conditions, with the arms that have a trial to show."""
    kept = {
        condition: {name: arm for name, arm in named.items() if len(arm.usable)}
        for condition, named in arms.items()
        if condition.model == model
    }
    return {condition: named for condition, named in kept.items() if named}


def first_round(run: Run, arms: Arms) -> Picture:
    """Draw each trial's first round after a fault, and the mean with its interval. Each scenario has a panel."""
    most_names = max(map(len, arms.values()))
    figure, axes = panels(len(arms), 3, max(3.4, 0.85 * most_names), 2.7)
    for (condition, named), ax in zip(arms.items(), axes, strict=True):
        for place, arm in enumerate(named.values()):
            _points(ax, place, arm)
        names_below(ax, list(named))
        panel_title(
            ax, condition.scenario, counts_text([arm.mean(FIRST_ROUND.tokens.name).n for arm in named.values()], "repairs")
        )
        ax.set_ylabel("tokens of the first repair")
        ax.set_ylim(bottom=0.0)
    legend_below(figure, max(axes, key=lambda ax: len(ax.get_legend_handles_labels()[0])), 2)
    condition = next(iter(arms))
    of_whom = in_brackets(f"{model_label(run, condition.model)}, {plan_phrase(condition.plan)}")
    title = f"The first repair after a failure took {_extremes(arms, FIRST_ROUND.tokens)} {of_whom}"
    caption = f"{title}. Squares are means with their 95% intervals, and each dot is a trial."
    return finish(figure, slug("first_round", condition.model, condition.plan), title, caption)


def _extremes(arms: Arms, metric: Metric) -> str:
    """Return in words the least and the greatest mean of the first panel that has a mean."""
    for condition, named in arms.items():
        means = {name: arm.mean(metric.name).mean for name, arm in named.items()}
        if extremes := extremes_text(means, lambda value: f"{value:,.0f}", " tokens"):
            return f"{extremes} on {condition.scenario}"
    return "what the panels show"


def _points(ax: Axes, place: int, arm: Arm) -> None:
    """Draw a dot for each trial, filled if its fault was effective. An unfilled dot is a trial in which the round would have
    come without the fault too."""
    trials = arm.usable[arm.usable[FIRST_ROUND.tokens.name].notna()]
    spread = pd.Series([place - 0.22 + 0.16 * (index % 5 - 2) / 4 for index in range(len(trials))], index=trials.index)
    effective = trials[PRICE.tokens.name].notna()
    kinds = (
        (effective, "#777777", "a trial that the fault spoiled"),
        (~effective, "none", "a trial bad without it, or not told"),
    )
    for chosen, fill, label in kinds:
        if chosen.any():
            values = trials.loc[chosen, FIRST_ROUND.tokens.name]
            new = label not in ax.get_legend_handles_labels()[1]
            look: dict[str, Any] = {"ms": 3.5, "mfc": fill, "mec": "#777777", "mew": 0.9, "clip_on": False}
            ax.plot(spread[chosen], values, "o", label=label if new else None, **look)
    mean = arm.mean(FIRST_ROUND.tokens.name)
    if mean.mean is not None:
        new_label = "mean and 95% interval" if place == 0 else None
        errors = errors_of((mean.mean, mean.low, mean.high))
        ax.errorbar([place], [mean.mean], yerr=errors, fmt="s", ms=5, color=BLUE, capsize=4, label=new_label)


PARTS = (
    FigurePart("recovery_in_world", lambda of: recovery_figures(of.run, of.arms) if _in_world(of.run) else (), leads=True),
    FigurePart("arms", lambda of: arm_figures(of.run, of.arms)),
    FigurePart("recovery", lambda of: () if _in_world(of.run) else recovery_figures(of.run, of.arms)),
)
