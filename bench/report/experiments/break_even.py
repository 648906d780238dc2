"""The figure and the tables of `bench.analysis.experiments.break_even`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes

from bench.analysis.experiments.break_even import BreakEven, Overtaking, Point, break_even
from bench.analysis.frames import Run
from bench.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.render.labels import model_label, slug
from bench.render.table import Cell, Number, Rate, Spent, Table
from bench.report.experiments.by_model import by_model
from bench.report.experiments.looks import plain_log, signs_of

NOTES = (
    "spent per solved task: all that the trials spent by those solved, with Fieller's 95% interval over the trials; it has no "
    "upper end where too few were solved",
    "closed form: for a model that is right whenever no fault strikes, priced with the calls of the trials without faults "
    "(derivation: bench/analysis/experiments/closed_forms.py); what lies above it is what the model's own failures add",
    "a reply that is struck at one rate is struck at every higher one, for every architecture: where chance puts one point "
    "above or below its closed form, it puts its neighbours there, too",
)
CROSSING_NOTES = (
    "the second is dearer than the first at the lowest rate, and cheaper from this one on; straight lines between the rates "
    "that were run",
    "95% percentile bootstrap interval over repetitions, each drawn with all its rates and both architectures",
)


def tables(run: Run) -> Iterator[Table]:
    found = break_even(run)
    yield from _curves(run, found)
    yield _crossings(run, found)


def _curves(run: Run, found: Sequence[BreakEven]) -> Iterator[Table]:
    for one in found:
        rows: list[tuple[Cell, ...]] = [
            (name, Number(point.rate, 3), Rate(point.solved), *_spent(one, point))
            for name, points in one.curves.items()
            for point in points
        ]
        title = one.measure.title
        yield Table(
            name=slug("experiment", "break_even", one.scenario, one.model, one.measure.column),
            title=f"Break-even: {title} per solved task, {one.scenario}, {model_label(run, one.model)}",
            columns=("Architecture", "Failure rate", "Solved", f"{title} per solved", "Closed form"),
            rows=tuple(rows),
            notes=NOTES,
        )


def _spent(one: BreakEven, point: Point) -> tuple[Cell, Cell]:
    digits = one.measure.digits
    return Spent(point.spent, digits), "–" if point.expected is None else Number(point.expected, digits)


def _crossings(run: Run, found: Sequence[BreakEven]) -> Table:
    rows = [
        (one.scenario, model_label(run, one.model), one.measure.title, *_overtaking(pair, _highest(one)))
        for one in found
        for pair in one.overtakings
    ]
    return Table(
        name="experiment-break_even-crossings",
        title="Break-even: the failure rate from which on the second is cheaper per solved task",
        columns=(
            *("Scenario", "Model", "Measure", "First", "Second", "From rate", "Low", "High"),
            *("Resamples without a crossing", "By the closed forms"),
        ),
        rows=tuple(rows),
        notes=CROSSING_NOTES,
    )


def _overtaking(pair: Overtaking, highest: float) -> tuple[Cell, ...]:
    ends = [_rate(value, highest) for value in (pair.found.rate, pair.found.low, pair.found.high)]
    expected = "–" if pair.expected is None else _rate(pair.expected, highest)
    return (pair.first, pair.second, *ends, Number(pair.found.never, 1, percent=True), expected)


def _rate(value: float, highest: float) -> Cell:
    if math.isinf(value):
        return f"not up to {highest:g}" if value > 0 else "from the lowest on"
    return Number(value, 3)


def _highest(one: BreakEven) -> float:
    return max(point.rate for points in one.curves.values() for point in points)


def pictures(run: Run) -> Iterator[Picture]:
    """One figure for each model: a row of panels for each scenario, in it one for each measure."""
    for model, own in by_model(run, break_even(run)):
        yield _figure(run, model, own)


def _figure(run: Run, model: str, found: Sequence[BreakEven]) -> Picture:
    across = len({one.measure for one in found})
    figure, axes = panels(len(found), across, 3.7, 2.9)
    signs = signs_of(run.names("architecture"))
    for one, ax in zip(found, axes, strict=True):
        for place, (name, points) in enumerate(one.curves.items()):
            _curve(ax, points, *signs[name], shift=0.004 * (place - (len(one.curves) - 1) / 2))
        _marks(ax, one.overtakings)
        panel_title(ax, one.scenario, f"N = {_trials(one)} a point".replace(" ", "\N{NO-BREAK SPACE}"))
        plain_log(ax)
        ax.set_xlabel("failure rate by subtask and attempt")
        ax.set_ylabel(f"{one.measure.title.lower()} per solved task")
        ax.grid(color=PALE, lw=0.6)
    legend_of_points(figure, signs)
    title = f"Break-even: what a solved task costs by failure rate, {model_label(run, model)}"
    said = (
        "Points are measured, with 95% intervals (open above where too few were solved); dashed lines are the closed forms; "
        "grey bands are the 95% intervals of the rates at which one architecture overtakes another."
    )
    return finish(figure, slug("experiment", "break_even", model), title, f"{title}. {said}")


def _curve(ax: Axes, points: Sequence[Point], marker: str, colour: str, shift: float) -> None:
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
        found = pair.found
        if 0 < found.rate < math.inf:
            right = ax.get_xlim()[1]
            ax.axvspan(max(0.0, found.low), min(right, found.high), color=PALE, alpha=0.6, lw=0, zorder=0)
            ax.axvline(found.rate, color="#777777", lw=0.8, ls=":")


def _trials(one: BreakEven) -> str:
    numbers = sorted({point.spent.trials for points in one.curves.values() for point in points})
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
