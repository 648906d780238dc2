"""The figures and the tables of `bench.analysis.experiments.depth`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes

from bench.analysis.experiments.depth import Lengthened, Struck, depth
from bench.analysis.frames import Run
from bench.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.render.labels import model_label, slug, trials_in
from bench.render.table import Cell, Estimate, Rate, Table
from bench.report.experiments.by_model import by_model
from bench.report.experiments.looks import joined, signs_of

POSITION_NOTES = (
    "retry tokens of a trial whose fault strikes this one subtask; mean ± sd [95% interval]",
    "to the checkpoint: how many subtasks static had run, or was to run, before it looked, the failed one among them",
)
LENGTH_NOTES = (
    "retry tokens of a trial whose fault strikes the pipeline's first or last subtask; mean ± sd [95% interval]",
    "slope: retry tokens more by subtask added; least squares through the lengths of each repetition, then the mean over "
    "repetitions with Student's 95% interval",
)
LONGEST_NAMED = 8  # subtasks; in a longer pipeline their names have no room beside each other, and their numbers stand there
SAID = "Points are means with their 95% intervals, joined by straight lines."


def tables(run: Run) -> Iterator[Table]:
    found = depth(run)
    if found.positions:
        yield _positions_table(run, found.positions)
    if found.lengths:
        yield _lengths_table(run, found.lengths)


def _positions_table(run: Run, found: Sequence[Struck]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            *(one.scenario, model_label(run, one.model), f"{one.position} of {one.length}", one.subtask),
            *("–" if one.ahead is None else one.ahead, one.architecture),
            *(Estimate(one.retry_tokens, with_n=True), Rate(one.arm.solved())),
        )
        for one in found
    ]
    return Table(
        name="experiment-depth",
        title="Depth: retry tokens by where in the pipeline the failure strikes",
        columns=("Scenario", "Model", "Position", "Subtask", "To the checkpoint", "Architecture", "Retry tokens", "Solved"),
        rows=tuple(rows),
        notes=POSITION_NOTES,
    )


def _lengths_table(run: Run, found: Sequence[Lengthened]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            *(one.pack, model_label(run, one.model), one.end, one.architecture),
            "; ".join(f"{length}: {Estimate(arm.mean('retry_tokens')).text()}" for length, arm in one.lengths),
            Estimate(one.slope, 1, with_n=True),
        )
        for one in found
    ]
    return Table(
        name="experiment-depth-length",
        title="Depth: retry tokens by the length of the pipeline",
        columns=("Pack", "Model", "Struck subtask", "Architecture", "Retry tokens by number of subtasks", "Slope"),
        rows=tuple(rows),
        notes=LENGTH_NOTES,
    )


def pictures(run: Run) -> Iterator[Picture]:
    """For each model a figure by position, a panel for each scenario, and one by length, a panel for each pack and end."""
    found = depth(run)
    for model, struck in by_model(run, found.positions):
        yield _positions_figure(run, model, struck)
    for model, growth in by_model(run, found.lengths):
        yield _lengths_figure(run, model, growth)


def _positions_figure(run: Run, model: str, found: Sequence[Struck]) -> Picture:
    scenarios = list(dict.fromkeys(one.scenario for one in found))
    figure, axes = panels(len(scenarios), 2, 4.6, 3.0)
    signs = signs_of(run.names("architecture"))
    for scenario, ax in zip(scenarios, axes, strict=True):
        own = [one for one in found if one.scenario == scenario]
        for place, (architecture, sign) in enumerate(signs.items()):
            shift = 0.08 * (place - (len(signs) - 1) / 2)
            joined(ax, [(one.position + shift, one.retry_tokens) for one in own if one.architecture == architecture], sign)
        ax.set_title(f"{scenario}, {trials_in(one.arm for one in own)}")
        names = {one.position: one.subtask.replace("_", "\n") if one.length <= LONGEST_NAMED else one.position for one in own}
        ax.set_xticks(list(names), map(str, names.values()))
        _name_axes(ax, "the subtask whose first reply lacks a field")
    legend_of_points(figure, signs)
    title = f"Depth: what a failure costs by where it strikes, {model_label(run, model)}"
    return finish(figure, slug("experiment", "depth", model), title, f"{title}. {SAID}")


def _lengths_figure(run: Run, model: str, found: Sequence[Lengthened]) -> Picture:
    places = list(dict.fromkeys((one.pack, one.end) for one in found))
    figure, axes = panels(len(places), 2, 4.6, 3.0)
    signs = signs_of(run.names("architecture"))
    for (pack, end), ax in zip(places, axes, strict=True):
        own = [one for one in found if (one.pack, one.end) == (pack, end)]
        for one in own:
            joined(ax, [(length, arm.mean("retry_tokens")) for length, arm in one.lengths], signs[one.architecture])
        panel_title(ax, f"{pack}, {end} subtask struck", trials_in(arm for one in own for _, arm in one.lengths))
        ax.set_xticks(sorted({length for one in own for length, _ in one.lengths}))
        _name_axes(ax, "subtasks in the pipeline")
    legend_of_points(figure, signs)
    title = f"Depth: what a failure costs by the length of the pipeline, {model_label(run, model)}"
    return finish(figure, slug("experiment", "depth", "length", model), title, f"{title}. {SAID}")


def _name_axes(ax: Axes, x: str) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel("retry tokens a trial")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=PALE, lw=0.6)
