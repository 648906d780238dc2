"""Context: the price of a failure by the size of the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, Arms, Condition, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Mean, by_unit, mean_of
from bench.read.render.cells import Estimate
from bench.read.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.read.render.labels import model_label, slug, trial_counts_text
from bench.read.render.marks import signs_of
from bench.read.render.table import Table, TableColumn, table_of

from ..by_model import by_model
from ..marks import draw_line


@dataclass(frozen=True)
class Growth:
    """One architecture on one pack in several sizes, under one fault plan.

    sizes    (tokens of all documents, the arm of that size), ascending
    slope    additional retry tokens for each token of document: a straight line through the sizes of each repetition by least
             squares, then the mean of the repetitions' slopes, which is the slope of all repetitions together
    """

    pack: str
    model: str
    plan: str
    architecture: str
    sizes: tuple[tuple[int, Arm], ...]
    slope: Mean


def context(run: Run) -> list[Growth]:
    """Return the growths by pack, model, fault plan and architecture.

    Raises ResultsError if no pack was run in at least two sizes, or the run does not say how large its documents are.
    """
    arms = arms_of(run)
    packs = {pack: sizes for pack, sizes in _sizes(run).items() if len(sizes) > 1}
    if not packs:
        raise ResultsError("needs a pack in two sizes or more, and a manifest that tells the tokens of its documents")
    return [
        growth
        for pack, sizes in packs.items()
        for model in run.names("model")
        for plan in run.names("plan")
        for architecture in run.names("architecture")
        if (growth := _growth(arms, pack, sizes, model, plan, architecture))
    ]


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    """Return pack -> scenario -> tokens of its documents, ascending."""
    known = {name: run.pack(name).document_tokens for name in run.names("scenario")}
    packs: dict[str, dict[str, int]] = {}
    for scenario in sorted((name for name, tokens in known.items() if tokens), key=lambda name: known[name]):
        packs.setdefault(scenario.partition(":")[0], {})[scenario] = known[scenario]
    return packs


def _growth(arms: Arms, pack: str, sizes: Mapping[str, int], model: str, plan: str, architecture: str) -> Growth | None:
    growths = tuple(
        (tokens, arm)
        for scenario, tokens in sizes.items()
        if (arm := arms.get(Condition(scenario, model, plan), {}).get(architecture)) is not None and len(arm.usable)
    )
    return Growth(pack, model, plan, architecture, growths, slope_of(growths)) if len(growths) > 1 else None


def slope_of(sizes: Sequence[tuple[int, Arm]]) -> Mean:
    """Return the mean slope over repetitions that have all sizes, by instance if there are several, with Student's interval."""
    xs = [tokens for tokens, _ in sizes]
    columns = [arm.by_pair("retry_tokens") for _, arm in sizes]
    whole = sorted(set.intersection(*(set(column) for column in columns)))
    middle = sum(xs) / len(xs)
    weights = [(x - middle) / sum((other - middle) ** 2 for other in xs) for x in xs]
    slopes = {pair: sum(weight * column[pair] for weight, column in zip(weights, columns, strict=True)) for pair in whole}
    return mean_of(by_unit(slopes).values(), "retry")


# Tables and figures

NOTES = (
    "retry tokens of a trial, mean ± sd [95% interval]; the slope is retry tokens more by token of document",
    "slope: least squares through the sizes of each repetition, then the mean over repetitions with Student's 95% interval; a "
    "slope of 0 means that what failed does not read the documents, and is asked again alone",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[Growth]("Pack", lambda growth: growth.pack),
        TableColumn[Growth]("Model", lambda growth: model_label(run, growth.model)),
        TableColumn[Growth]("Fault plan", lambda growth: growth.plan),
        TableColumn[Growth]("Architecture", lambda growth: growth.architecture),
        TableColumn[Growth](
            "Retry tokens by tokens of all documents",
            lambda growth: "; ".join(f"{tokens}: {Estimate(arm.mean('retry_tokens')).text()}" for tokens, arm in growth.sizes),
        ),
        TableColumn[Growth]("Slope", lambda growth: Estimate(growth.slope, 3, with_n=True)),
    )
    yield table_of("study-context", "Context: retry tokens by document tokens", columns, context(run), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model, with a panel for each pack and fault plan."""
    for model, growths in by_model(run, context(run)):
        yield _figure(run, model, growths)


def _figure(run: Run, model: str, growths: Sequence[Growth]) -> Picture:
    places = list(dict.fromkeys((growth.pack, growth.plan) for growth in growths))
    figure, axes = panels(len(places), 3, 3.9, 3.0)
    signs = signs_of(run.names("architecture"))
    for (pack, plan), ax in zip(places, axes, strict=True):
        panel_growths = [growth for growth in growths if (growth.pack, growth.plan) == (pack, plan)]
        for growth in panel_growths:
            draw_line(ax, [(tokens, arm.mean("retry_tokens")) for tokens, arm in growth.sizes], signs[growth.architecture])
        panel_title(ax, f"{pack}, {plan}", trial_counts_text(arm for growth in panel_growths for _, arm in growth.sizes))
        ax.set_xlabel("tokens of all documents")
        ax.set_ylabel("retry tokens a trial")
        ax.set_ylim(bottom=0)
        ax.grid(color=PALE, lw=0.6)
    legend_of_points(figure, signs)
    title = f"Context: what a failure costs by how much there is to read, {model_label(run, model)}"
    caption = "Points are means with their 95% intervals, joined by straight lines."
    return finish(figure, slug("study", "context", model), title, f"{title}. {caption}")
