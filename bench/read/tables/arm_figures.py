"""The figure of each arm's first rounds after a fault, and the order of a report's figures."""

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
from bench.read.render.figure_part import FigurePart
from bench.read.render.labels import counts_text, extremes_text, in_brackets, model_label, plan_phrase, slug
from bench.read.render.marks import errors_of
from bench.read.tables.recovery_rates import recovery_figures
from bench.record.config import FAULT_FREE


def arm_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """Yield a figure of the first rounds for each model and fault plan. Trials that ended in an error are left out."""
    for model in run.names("model"):
        drawable = _drawable(arms, model)
        plans = [plan for plan in run.names("plan") if any(condition.plan == plan for condition in drawable)]
        # The plan without faults has a figure only if it is the only plan.
        for plan in [plan for plan in plans if plan != FAULT_FREE] or plans:
            with_rounds = {
                condition: by_architecture
                for condition, by_architecture in drawable.items()
                if condition.plan == plan and any(arm.mean(FIRST_ROUND.tokens.name).n for arm in by_architecture.values())
            }
            if with_rounds:
                yield first_round(run, with_rounds)


def _has_world(run: Run) -> bool:
    """Whether a trial of the run was in a world."""
    return bool(run.trials["lives"].notna().any())


def _drawable(arms: Arms, model: str) -> Arms:
    """Return this model's conditions with their arms, without arms in which every trial ended in an error."""
    drawable = {
        condition: {name: arm for name, arm in by_architecture.items() if len(arm.usable)}
        for condition, by_architecture in arms.items()
        if condition.model == model
    }
    return {condition: by_architecture for condition, by_architecture in drawable.items() if by_architecture}


def first_round(run: Run, arms: Arms) -> Picture:
    """Draw the tokens of each trial's first round after a fault, and each arm's mean with its interval. Each scenario has a
    panel."""
    inches_for_names = 0.85 * max(map(len, arms.values()))
    figure, axes = panels(len(arms), 3, max(3.4, inches_for_names), 2.7)
    for (condition, by_architecture), ax in zip(arms.items(), axes, strict=True):
        for x, arm in enumerate(by_architecture.values()):
            _draw_trials(ax, x, arm)
        names_below(ax, list(by_architecture))
        counts = [arm.mean(FIRST_ROUND.tokens.name).n for arm in by_architecture.values()]
        panel_title(ax, condition.scenario, counts_text(counts, "repairs"))
        ax.set_ylabel("tokens of the first repair")
        ax.set_ylim(bottom=0.0)
    legend_below(figure, max(axes, key=lambda ax: len(ax.get_legend_handles_labels()[0])), 2)
    condition = next(iter(arms))
    subject = in_brackets(f"{model_label(run, condition.model)}, {plan_phrase(condition.plan)}")
    title = f"The first repair after a failure took {_extremes(arms, FIRST_ROUND.tokens)} {subject}"
    caption = f"{title}. Squares are means with their 95% intervals, and each dot is a trial."
    return finish(figure, slug("first_round", condition.model, condition.plan), title, caption)


def _extremes(arms: Arms, metric: Metric) -> str:
    """Return in words the least and the greatest mean of the first condition that has a mean."""
    for condition, by_architecture in arms.items():
        means = {name: arm.mean(metric.name).mean for name, arm in by_architecture.items()}
        if extremes := extremes_text(means, lambda value: f"{value:,.0f}", " tokens"):
            return f"{extremes} on {condition.scenario}"
    return "what the panels show"


def _draw_trials(ax: Axes, x: int, arm: Arm) -> None:
    """Draw the mean of an arm's first rounds at x, and left of it a dot for each trial, filled if its fault was effective. An
    unfilled dot is a trial that would have had the round without the fault too, or of which this is not known."""
    trials = arm.usable[arm.usable[FIRST_ROUND.tokens.name].notna()]
    # Five columns of dots, so that equal values do not hide each other.
    dots_x = pd.Series([x - 0.22 + 0.16 * (index % 5 - 2) / 4 for index in range(len(trials))], index=trials.index)
    effective = trials[PRICE.tokens.name].notna()
    kinds = (
        (effective, "#777777", "a trial that the fault spoiled"),
        (~effective, "none", "a trial bad without it, or not told"),
    )
    for is_drawn, fill, label in kinds:
        if is_drawn.any():
            values = trials.loc[is_drawn, FIRST_ROUND.tokens.name]
            is_new = label not in ax.get_legend_handles_labels()[1]
            style: dict[str, Any] = {"ms": 3.5, "mfc": fill, "mec": "#777777", "mew": 0.9, "clip_on": False}
            ax.plot(dots_x[is_drawn], values, "o", label=label if is_new else None, **style)
    mean = arm.mean(FIRST_ROUND.tokens.name)
    if mean.mean is not None:
        errors = errors_of((mean.mean, mean.low, mean.high))
        mean_label = "mean and 95% interval" if x == 0 else None
        ax.errorbar([x], [mean.mean], yerr=errors, fmt="s", ms=5, color=BLUE, capsize=4, label=mean_label)


PARTS = (
    FigurePart("recovery_in_world", lambda of: recovery_figures(of.run, of.arms) if _has_world(of.run) else (), leads=True),
    FigurePart("arms", lambda of: arm_figures(of.run, of.arms)),
    FigurePart("recovery", lambda of: () if _has_world(of.run) else recovery_figures(of.run, of.arms)),
)
