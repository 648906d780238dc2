"""The figure and the table of `bench.analysis.experiments.context`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.experiments.context import Growth, context
from bench.analysis.frames import Run
from bench.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.render.labels import model_label, slug, trials_in
from bench.render.table import Cell, Estimate, Table
from bench.report.experiments.by_model import by_model
from bench.report.experiments.looks import joined, signs_of

NOTES = (
    "retry tokens of a trial, mean ± sd [95% interval]; the slope is retry tokens more by token of document",
    "slope: least squares through the sizes of each repetition, then the mean over repetitions with Student's 95% interval; a "
    "slope of 0 means that what failed does not read the documents, and is asked again alone",
)


def tables(run: Run) -> Iterator[Table]:
    rows: list[tuple[Cell, ...]] = [
        (
            *(one.pack, model_label(run, one.model), one.plan, one.architecture),
            "; ".join(f"{tokens}: {Estimate(arm.mean('retry_tokens')).text()}" for tokens, arm in one.sizes),
            Estimate(one.slope, 3, with_n=True),
        )
        for one in context(run)
    ]
    yield Table(
        name="experiment-context",
        title="Context: retry tokens by document tokens",
        columns=("Pack", "Model", "Fault plan", "Architecture", "Retry tokens by tokens of all documents", "Slope"),
        rows=tuple(rows),
        notes=NOTES,
    )


def pictures(run: Run) -> Iterator[Picture]:
    """One figure for each model: a panel for each pack and fault plan."""
    for model, own in by_model(run, context(run)):
        yield _figure(run, model, own)


def _figure(run: Run, model: str, found: Sequence[Growth]) -> Picture:
    places = list(dict.fromkeys((one.pack, one.plan) for one in found))
    figure, axes = panels(len(places), 3, 3.9, 3.0)
    signs = signs_of(run.names("architecture"))
    for (pack, plan), ax in zip(places, axes, strict=True):
        own = [one for one in found if (one.pack, one.plan) == (pack, plan)]
        for one in own:
            joined(ax, [(tokens, arm.mean("retry_tokens")) for tokens, arm in one.sizes], signs[one.architecture])
        panel_title(ax, f"{pack}, {plan}", trials_in(arm for one in own for _, arm in one.sizes))
        ax.set_xlabel("tokens of all documents")
        ax.set_ylabel("retry tokens a trial")
        ax.set_ylim(bottom=0)
        ax.grid(color=PALE, lw=0.6)
    legend_of_points(figure, signs)
    title = f"Context: what a failure costs by how much there is to read, {model_label(run, model)}"
    said = "Points are means with their 95% intervals, joined by straight lines."
    return finish(figure, slug("experiment", "context", model), title, f"{title}. {said}")
