"""The figure and the table of `bench.analysis.experiments.depth`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes

from bench.analysis.experiments.depth import Struck, depth
from bench.analysis.frames import Run
from bench.report.drawing import PALE, Picture, finish, legend_of_points, panels
from bench.report.experiments.looks import Sign, signs_of, whisker
from bench.report.labels import model_label, slug, trials_in
from bench.report.table import Cell, Estimate, Rate, Table

NOTES = (
    "retry tokens of a trial whose fault strikes this one subtask; mean ± sd [95% interval]",
    "to the checkpoint: how many subtasks static had run, or was to run, before it looked, the failed one among them",
    "the packs have pipelines of four and five subtasks; nothing here speaks of longer ones",
)


def tables(run: Run) -> Iterator[Table]:
    rows: list[tuple[Cell, ...]] = [
        (
            *(one.scenario, model_label(run, one.model), f"{one.position} of {one.length}", one.subtask),
            *("–" if one.ahead is None else one.ahead, one.architecture),
            *(Estimate(one.retry_tokens, with_n=True), Rate(one.arm.solved())),
        )
        for one in depth(run)
    ]
    yield Table(
        name="experiment-depth",
        title="Depth: retry tokens by where in the pipeline the failure strikes",
        columns=("Scenario", "Model", "Position", "Subtask", "To the checkpoint", "Architecture", "Retry tokens", "Solved"),
        rows=tuple(rows),
        notes=NOTES,
    )


def pictures(run: Run) -> Iterator[Picture]:
    """One figure for each model, in it a panel for each scenario."""
    found = depth(run)
    for model in run.names("model"):
        own = [one for one in found if one.model == model]
        if own:
            yield _figure(run, model, own)


def _figure(run: Run, model: str, found: Sequence[Struck]) -> Picture:
    scenarios = list(dict.fromkeys(one.scenario for one in found))
    figure, axes = panels(len(scenarios), 2, 4.6, 3.0)
    signs = signs_of(run.names("architecture"))
    for scenario, ax in zip(scenarios, axes, strict=True):
        own = [one for one in found if one.scenario == scenario]
        _lines(ax, own, signs)
        ax.set_title(f"{scenario}, {trials_in(one.arm for one in own)}")
        subtasks = dict.fromkeys((one.position, one.subtask) for one in own)
        ax.set_xticks([position for position, _ in subtasks], [name.replace("_", "\n") for _, name in subtasks])
        ax.set_xlabel("the subtask whose first reply lacks a field")
        ax.set_ylabel("retry tokens a trial")
        ax.set_ylim(bottom=0)
        ax.grid(axis="y", color=PALE, lw=0.6)
    legend_of_points(figure, signs)
    title = f"Depth: what a failure costs by where it strikes, {model_label(run, model)}"
    return finish(figure, slug("experiment", "depth", model), title, f"{title}. Points are means with their 95% intervals.")


def _lines(ax: Axes, found: Sequence[Struck], signs: dict[str, Sign]) -> None:
    for place, (architecture, sign) in enumerate(signs.items()):
        own = [one for one in found if one.architecture == architecture]
        shift = 0.08 * (place - (len(signs) - 1) / 2)
        xs = [one.position + shift for one in own]
        ax.plot(xs, [one.retry_tokens.mean or 0.0 for one in own], color=sign[1], lw=0.8, alpha=0.6)
        for x, one in zip(xs, own, strict=True):
            whisker(ax, x, one.retry_tokens, sign)
