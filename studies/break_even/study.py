"""Break-even: the price of a solved task at each failure rate, and the rate at which one architecture overtakes another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import share_of_rows
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import SPENT, Metric
from bench.read.analysis.per_solved import PerSolved, spent_per_solved
from bench.read.analysis.plans import single_faults
from bench.read.analysis.statistics import Share
from bench.read.claims.closed_forms import calls_of
from bench.read.render.cells import Cell, Number, Rate, Spent
from bench.read.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.marks import signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.config import FAULT_FREE
from bench.record.plan_entries import EVERY

from ..by_model import by_model
from ..marks import plain_log
from .closed_forms import ClosedForm, priced_forms
from .crossing import Crossing, crossing, crossing_of, trials_in_both

GRID = 501
"""Number of rates at which closed forms are compared."""


@dataclass(frozen=True)
class RatePoint:
    """One rate of a curve. `expected` comes from the closed form; None if there is none."""

    rate: float
    solved: Share
    spent: PerSolved
    expected: float | None


@dataclass(frozen=True)
class Overtaking:
    """`second` is dearer than `first` at the lowest rate. `expected` is where the closed forms cross; None without them."""

    first: str
    second: str
    measured: Crossing
    expected: float | None


@dataclass(frozen=True)
class PriceCurves:
    """One measure in one scenario with one model: a curve for each architecture, and their crossings."""

    scenario: str
    model: str
    measure: Metric
    curves: Mapping[str, tuple[RatePoint, ...]]
    overtakings: tuple[Overtaking, ...]


@lru_cache(maxsize=1)  # a report's table and figure share the curves
def price_curves(run: Run) -> list[PriceCurves]:
    """Return the curves by scenario, model and measure. An unknown measure, such as cost without prices, is left out.

    Raises ResultsError if the run has fewer than two failure rates.
    """
    rates = failure_rates(run)
    all_curves = []
    for (scenario, model), trials in run.trials.groupby(["scenario", "model"], sort=False):
        calls = run.calls[(run.calls["scenario"] == scenario) & (run.calls["model"] == model)]
        for measure in SPENT:
            if trials[measure.name].notna().all():
                names = [name for name in run.names("architecture") if name in set(trials["architecture"])]
                forms = priced_forms(run, str(scenario), calls, measure)
                curves = {name: _curve(calls_of(trials, name), rates, measure.name, forms.get(name)) for name in names}
                overtakings = _overtakings(trials, names, rates, measure.name, forms)
                all_curves.append(PriceCurves(str(scenario), str(model), measure, curves, overtakings))
    return all_curves


def failure_rates(run: Run) -> dict[str, float]:
    """Return plan -> the chance that a reply's part for a subtask is struck, ascending; 0 for the plan without faults.

    Raises ResultsError if there are fewer than two such plans.
    """
    rates = {
        plan: fault.probability
        for plan, fault in single_faults(run).items()
        if fault.probability and fault.point == "output" and fault.subtask == EVERY
    }
    if FAULT_FREE in run.names("plan"):
        rates[FAULT_FREE] = 0.0
    if len(rates) < 2:
        raise ResultsError("needs two plans or more with one output fault each, of a probability, at every subtask")
    return dict(sorted(rates.items(), key=lambda item: item[1]))


def _curve(trials: pd.DataFrame, rates: Mapping[str, float], column: str, form: ClosedForm | None) -> tuple[RatePoint, ...]:
    points = []
    for plan, rate in rates.items():
        struck = trials[trials["plan"] == plan]
        spent = spent_per_solved(struck, column)
        graded = struck[struck["outcome"] != "ungraded"]
        solved = share_of_rows(graded, graded["outcome"].eq("solved"))
        points.append(RatePoint(rate, solved, spent, form(rate).per_solved if form else None))
    return tuple(points)


def _overtakings(
    trials: pd.DataFrame, names: Sequence[str], rates: Mapping[str, float], column: str, forms: Mapping[str, ClosedForm]
) -> tuple[Overtaking, ...]:
    pairs = []
    for pair in combinations(names, 2):
        both = trials_in_both(trials, pair, rates, column)
        if len(both[pair[0]].spent) > 1:
            first, second = sorted(pair, key=lambda name: both[name].dearness())
            expected = _expected(forms[first], forms[second], max(rates.values())) if {*pair} <= forms.keys() else None
            result = crossing(list(rates.values()), both[first], both[second])
            pairs.append(Overtaking(first, second, result, expected))
    return tuple(pairs)


def _expected(first: ClosedForm, second: ClosedForm, highest: float) -> float:
    rates = np.linspace(0.0, highest, GRID).tolist()
    worths = [np.array([1 / form(rate).per_solved for rate in rates]) for form in (first, second)]
    return crossing_of(rates, *worths)


# Tables and figures

NOTES = (
    "spent per solved task: all that the trials spent by those solved, with its 95% interval over the trials",
    "closed form: for a model that is right whenever no fault strikes, priced with the calls of the trials without faults "
    "(derivation: studies/break_even/closed_forms.py); what lies above it is what the model's own failures add",
    "a reply that is struck at one rate is struck at every higher one, for every architecture: where chance puts one point "
    "above or below its closed form, it puts its neighbours there, too",
)
CROSSING_NOTES = (
    "the second is dearer than the first at the lowest rate, and cheaper from this one on; straight lines between the rates "
    "that were run",
    "95% expanded percentile bootstrap interval over repetitions, each drawn with all its rates and both architectures",
)


def tables(run: Run) -> Iterator[Table]:
    curves = price_curves(run)
    yield from _curves(run, curves)
    yield _crossings(run, curves)


def _curves(run: Run, all_curves: Sequence[PriceCurves]) -> Iterator[Table]:
    for curves in all_curves:
        title = curves.measure.title
        yield table_of(
            slug("study", "break_even", curves.scenario, curves.model, curves.measure.name),
            f"Break-even: {title} per solved task, {curves.scenario}, {model_label(run, curves.model)}",
            _curve_columns(title, curves.measure.digits),
            ((name, point) for name, points in curves.curves.items() for point in points),
            NOTES,
        )


def _curve_columns(title: str, digits: int) -> tuple[TableColumn[tuple[str, RatePoint]], ...]:
    """Return the columns of a table whose rows are points of named curves."""
    columns = (
        TableColumn[RatePoint]("Failure rate", lambda point: Number(point.rate, 3)),
        TableColumn[RatePoint]("Solved", lambda point: Rate(point.solved)),
        TableColumn[RatePoint](f"{title} per solved", lambda point: Spent(point.spent, digits)),
        TableColumn[RatePoint]("Closed form", lambda point: "–" if point.expected is None else Number(point.expected, digits)),
    )
    return TableColumn("Architecture", lambda named: named[0]), *(column.of(lambda named: named[1]) for column in columns)


def _crossings(run: Run, all_curves: Sequence[PriceCurves]) -> Table:
    of_curves = (
        TableColumn[PriceCurves]("Scenario", lambda curves: curves.scenario),
        TableColumn[PriceCurves]("Model", lambda curves: model_label(run, curves.model)),
        TableColumn[PriceCurves]("Measure", lambda curves: curves.measure.title),
    )
    columns = (
        *(column.of(_curves_of) for column in of_curves),
        TableColumn[OvertakenCurves]("First", lambda overtaken: overtaken[1].first),
        TableColumn[OvertakenCurves]("Second", lambda overtaken: overtaken[1].second),
        TableColumn[OvertakenCurves]("From rate", lambda overtaken: _rate(overtaken, overtaken[1].measured.rate)),
        TableColumn[OvertakenCurves]("Low", lambda overtaken: _rate(overtaken, overtaken[1].measured.low)),
        TableColumn[OvertakenCurves]("High", lambda overtaken: _rate(overtaken, overtaken[1].measured.high)),
        TableColumn[OvertakenCurves](
            "Resamples without a crossing", lambda overtaken: Number(overtaken[1].measured.never, 1, percent=True)
        ),
        TableColumn[OvertakenCurves]("By the closed forms", lambda overtaken: _rate(overtaken, overtaken[1].expected)),
    )
    crossings = ((curves, pair) for curves in all_curves for pair in curves.overtakings)
    title = "Break-even: the failure rate from which on the second is cheaper per solved task"
    return table_of("study-break_even-crossings", title, columns, crossings, CROSSING_NOTES)


OvertakenCurves = tuple[PriceCurves, Overtaking]
"""All curves of a measure, and one crossing of two of them."""


def _curves_of(overtaken: OvertakenCurves) -> PriceCurves:
    return overtaken[0]


def _rate(overtaken: OvertakenCurves, value: float | None) -> Cell:
    if value is None:
        return "–"
    if math.isinf(value):
        highest = max(point.rate for points in overtaken[0].curves.values() for point in points)
        return f"not up to {highest:g}" if value > 0 else "from the lowest on"
    return Number(value, 3)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: a row of panels for each scenario, with a panel for each measure."""
    for model, of_model in by_model(run, price_curves(run)):
        yield _figure(run, model, of_model)


def _figure(run: Run, model: str, all_curves: Sequence[PriceCurves]) -> Picture:
    across = len({curves.measure for curves in all_curves})
    figure, axes = panels(len(all_curves), across, 3.7, 2.9)
    signs = signs_of(run.names("architecture"))
    for curves, ax in zip(all_curves, axes, strict=True):
        for place, (name, points) in enumerate(curves.curves.items()):
            _draw_curve(ax, points, *signs[name], shift=0.004 * (place - (len(curves.curves) - 1) / 2))
        _marks(ax, curves.overtakings)
        panel_title(ax, curves.scenario, f"N = {_trials(curves)} a point".replace(" ", "\N{NO-BREAK SPACE}"))
        plain_log(ax)
        ax.set_xlabel("failure rate by subtask and attempt")
        ax.set_ylabel(f"{curves.measure.title.lower()} per solved task")
        ax.grid(color=PALE, lw=0.6)
    legend_of_points(figure, signs)
    title = f"Break-even: what a solved task costs by failure rate, {model_label(run, model)}"
    caption = (
        "Points are measured, with 95% intervals (open above where too few were solved); dashed lines are the closed forms; "
        "grey bands are the 95% intervals of the rates at which one architecture overtakes another."
    )
    return finish(figure, slug("study", "break_even", model), title, f"{title}. {caption}")


def _draw_curve(ax: Axes, points: Sequence[RatePoint], marker: str, colour: str, shift: float) -> None:
    for point in points:
        spent = point.spent
        if spent.value is not None:
            low = spent.low or spent.value
            high = spent.high or spent.value
            errors = [[spent.value - low], [high - spent.value]]
            face = colour if spent.high is not None else "white"
            ax.errorbar([point.rate + shift], [spent.value], errors, fmt=marker, ms=4, color=colour, mfc=face, capsize=2, lw=1)
    expected = [(point.rate, point.expected) for point in points if point.expected is not None and point.expected < math.inf]
    if expected:
        ax.plot(*zip(*expected, strict=True), "--", lw=1, color=colour)


def _marks(ax: Axes, overtakings: Sequence[Overtaking]) -> None:
    for pair in overtakings:
        crossing = pair.measured
        if 0 < crossing.rate < math.inf:
            right = ax.get_xlim()[1]
            ax.axvspan(max(0.0, crossing.low), min(right, crossing.high), color=PALE, alpha=0.6, lw=0, zorder=0)
            ax.axvline(crossing.rate, color="#777777", lw=0.8, ls=":")


def _trials(curves: PriceCurves) -> str:
    numbers = sorted({point.spent.trials for points in curves.curves.values() for point in points})
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
