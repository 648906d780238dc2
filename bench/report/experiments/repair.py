"""The figure and the table of `bench.analysis.experiments.repair`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from matplotlib.axes import Axes

from bench.analysis.experiments.repair import Repaired, repair
from bench.analysis.frames import Run
from bench.render.drawing import BLUE, PALE, Picture, finish, panel_title, panels
from bench.render.labels import model_label, slug
from bench.render.table import Cell, Estimate, Rate, RateGap, Table
from bench.report.experiments.by_model import by_model
from bench.report.experiments.looks import whisker

NOTES = (
    "first repair: of each trial the first call after the first rejection that asks for the same output again; k/N of the "
    "trials that came to one, with Wilson's 95% interval",
    "against none: paired by repetition with the variant whose repair prompt says nothing; rates over the repetitions in which "
    "both came to a repair, tokens with Student's 95% interval",
    "a simulated model reads no reason: on it the setting shows its price and nothing else",
)
COLUMNS = (
    *("Scenario", "Model", "Fault plan", "Variant", "Repair prompt", "First repair accepted", "Against none"),
    *("Its prompt's tokens", "Retry tokens a trial", "Retry tokens against none", "Solved"),
)


def tables(run: Run) -> Iterator[Table]:
    rows: list[tuple[Cell, ...]] = [
        (
            *(
                one.scenario,
                model_label(run, one.model),
                one.plan,
                f"{one.architecture} ({one.base})",
                one.setting,
                Rate(one.accepted),
            ),
            RateGap(one.accepted_less) if one.accepted_less else "–",
            *(Estimate(one.prompt_tokens, with_n=True), Estimate(one.retry_tokens, with_n=True)),
            Estimate(one.retry_less.difference, with_n=True) if one.retry_less else "–",
            Rate(one.arm.solved()),
        )
        for one in repair(run)
    ]
    yield Table("experiment-repair", "Repair: what telling the reason of a rejection buys", COLUMNS, tuple(rows), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """One figure for each model: above the share of first repairs accepted, below the retry tokens, a column of panels for each
    scenario, fault plan and architecture that came to a repair."""
    for model, own in by_model(run, (one for one in repair(run) if one.accepted.n)):
        yield _figure(run, model, own)


def _figure(run: Run, model: str, found: Sequence[Repaired]) -> Picture:
    places = list(dict.fromkeys((one.scenario, one.plan, one.base) for one in found))
    figure, axes = panels(2 * len(places), len(places), 3.0, 2.4)
    draws: tuple[Callable[[Axes, Sequence[Repaired]], None], ...] = (_shares, _tokens)
    for number, ax in enumerate(axes):
        scenario, plan, base = places[number % len(places)]
        own = [one for one in found if (one.scenario, one.plan, one.base) == (scenario, plan, base)]
        draws[number // len(places)](ax, own)
        panel_title(ax, scenario, base, f"fault plan {plan}")
        ax.set_xticks(range(len(own)), [f"{one.setting}\nN = {one.accepted.n}" for one in own])
        ax.set_xlim(-0.5, len(own) - 0.5)
        ax.set_ylim(bottom=0)
        ax.grid(axis="y", color=PALE, lw=0.6)
    title = f"Repair: what telling the reason of a rejection buys, {model_label(run, model)}"
    said = "Above: first repairs accepted, below: retry tokens of all trials, by what the repair prompt tells; 95% intervals. "
    said += "N: trials that came to a repair."
    return finish(figure, slug("experiment", "repair", model), title, f"{title}. {said}")


def _shares(ax: Axes, found: Sequence[Repaired]) -> None:
    ax.set_ylim(top=1.05)
    ax.set_ylabel("first repairs accepted")
    for x, one in enumerate(found):
        share = one.accepted
        if share.rate is not None and share.low is not None and share.high is not None:
            ends = [[share.rate - share.low], [share.high - share.rate]]
            ax.errorbar([x], [share.rate], ends, fmt="o", ms=4.5, color=BLUE, capsize=3, lw=1)


def _tokens(ax: Axes, found: Sequence[Repaired]) -> None:
    ax.set_ylabel("retry tokens a trial")
    for x, one in enumerate(found):
        whisker(ax, x, one.retry_tokens, ("s", BLUE))
