"""The table and the figure of break-even, compared with the paper's figures and the rejections of each architecture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from matplotlib.axes import Axes

from bench.read.analysis.arms import Condition
from bench.read.analysis.frames import Run
from bench.read.claims.break_even import BreakEven, Rivals, rivals_of
from bench.read.render.cells import BoundedNumber, Cell, Estimate, Number
from bench.read.render.drawing import BLUE, PALE, VERMILION, Picture, finish, legend_below, panel_title, panels
from bench.read.render.labels import bracketed, condition_columns, model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.figure_part import FigurePart
from bench.read.report.results import Results
from bench.read.report.table_part import TablePart
from bench.read.tables.failure_tables import NOT_MEASURED

ANY, NEVER, UNBOUNDED = "at any rate", "never", "no upper bound"
FEWEST = 5
"""With fewer units, a bootstrap interval cannot cover the truth in 93% of experiments."""


def _rivals(of: Results) -> Mapping[Condition, Sequence[Rivals]]:
    return rivals_of(of.arms, of.published)


def break_even_tables(of: Results) -> list[Table]:
    """Return the table. Empty if no two architectures have first passes without faults, and rounds with faults."""
    rivals = list(chain.from_iterable(of.once(_rivals).values()))
    papers = TableColumn[Rivals]("By the paper's figures", lambda pair: _rate(pair.published.rate) if pair.published else "–")
    columns = (
        *(column.of(lambda pair: pair.condition) for column in condition_columns(of.run)),
        TableColumn[Rivals]("Architecture", lambda pair: pair.name),
        TableColumn[Rivals]("Against", lambda pair: pair.other),
        TableColumn[Rivals]("First pass", lambda pair: BoundedNumber.of(pair.passes.ours)),
        TableColumn[Rivals]("First pass, other's", lambda pair: BoundedNumber.of(pair.passes.theirs)),
        TableColumn[Rivals]("Pairs of passes", lambda pair: pair.passes.ours.n),
        TableColumn[Rivals]("First round", lambda pair: BoundedNumber.of(pair.rounds.ours)),
        TableColumn[Rivals]("First round, other's", lambda pair: BoundedNumber.of(pair.rounds.theirs)),
        TableColumn[Rivals]("Pairs of rounds", lambda pair: pair.rounds.ours.n),
        TableColumn[Rivals](
            "Cheaper from failures a trial", lambda pair: _rate(pair.break_even.rate) if pair.break_even else NOT_MEASURED
        ),
        TableColumn[Rivals]("Low", lambda pair: _ends(pair.break_even)[0]),
        TableColumn[Rivals]("High", lambda pair: _ends(pair.break_even)[1]),
        *([papers] if any(pair.published for pair in rivals) else []),
        TableColumn[Rivals]("Rejections a trial", lambda pair: Estimate(pair.rejections[0], 1, with_n=True)),
        TableColumn[Rivals]("Rejections a trial, other's", lambda pair: Estimate(pair.rejections[1], 1, with_n=True)),
    )
    title = "Break-even: from how many failures a trial on an architecture is cheaper than another"
    notes = (*_NOTES, *([_PAPERS] if any(pair.published for pair in rivals) else []), *_few(rivals))
    return [table_of("break_even", title, columns, rivals, notes)] if rivals else []


_NOTES = (
    "tokens: the mean [95% interval] of a first pass without faults, and of the first round after a detected fault, over the "
    "pairs in which both have one (over instances if there are several); a trial that gave up before every subtask was asked "
    "for has no first pass",
    "cheaper from: (its first pass − the other's) / (the other's first round − its own) failures a trial, if both fail "
    f"equally often; {ANY}: its first pass is no dearer and its round is cheaper; {NEVER}: its round is no cheaper",
    "low, high: 95% interval by paired bootstrap, expanded for few pairs; no upper bound: what its round saves is not "
    "distinguishable from 0",
    "rejections a trial: by verification, without faults, mean ± sd [95% interval]; one side can fail more often; the last "
    "rejection of a trial that gives up costs no round",
)
_PAPERS = "by the paper's figures: its tokens without a failure are the first pass, its retry tokens the round"


def _few(rivals: Iterable[Rivals]) -> Iterator[str]:
    """Yield a note if the smallest N limits the use of the numbers."""
    numbers = [_smallest(pair) for pair in rivals if pair.break_even and pair.break_even.low is not None]
    if numbers and (n := min(numbers)) < FEWEST:
        yield (
            f"N={n}: so few values all lie on one side of their true mean in {2 ** (1 - n):.1%} of experiments; the "
            "bootstrap's interval then misses it, so it holds the truth in less than 95%"
        )


def _smallest(pair: Rivals) -> int:
    """Return the number of pairs of passes, or of rounds if that is smaller."""
    return min(pair.passes.ours.n, pair.rounds.ours.n)


def _ends(estimate: BreakEven | None) -> tuple[Cell, Cell]:
    if estimate is None:
        return "–", "–"
    if estimate.low is None or estimate.high is None:
        return Number(None), Number(None)
    is_bounded = math.isfinite(estimate.high) or math.isinf(estimate.low)
    return _rate(estimate.low), _rate(estimate.high) if is_bounded else UNBOUNDED


def _rate(rate: float) -> Cell:
    """Return the rate as a number, or in words if there is none."""
    return NEVER if math.isinf(rate) else Number(rate, 2) if rate else ANY


# The figure


def break_even_figures(of: Results) -> list[Picture]:
    """Return a figure for each model that has a break-even."""
    rivals = of.once(_rivals)
    by_model = {model: {key: pairs for key, pairs in rivals.items() if key.model == model} for model in of.run.names("model")}
    return [_figure(of.run, model, pairs) for model, pairs in by_model.items() if pairs]


def _figure(run: Run, model: str, rivals: Mapping[Condition, Sequence[Rivals]]) -> Picture:
    """Draw a panel for each scenario and fault plan, with a row for each two architectures."""
    figure, axes = panels(len(rivals), 2, 5.6, 0.9 + 0.66 * max(map(len, rivals.values())))
    for (condition, pairs), ax in zip(rivals.items(), axes, strict=True):
        right = _right_end(pairs)
        for row, rivals_pair in enumerate(pairs):
            _draw(ax, row, rivals_pair, right)
        ax.set_yticks(range(len(pairs)), list(map(_named, pairs)))
        ax.set_ylim(len(pairs) - 0.5, -0.5)
        ax.set_xlim(-0.02 * right, 1.04 * right)
        ax.set_xlabel("failures a trial")
        ax.grid(axis="x", color=PALE, lw=0.6)
        panel_title(ax, condition.scenario, f"fault plan {condition.plan}")
    legend_below(figure, max(axes, key=lambda ax: len(ax.get_legend_handles_labels()[0])), 2)
    title = f"{_answer(chain.from_iterable(rivals.values()))} {bracketed(model_label(run, model))}"
    caption = (
        f"{title}. A number stands beside each rate. Whiskers are 95% intervals; an arrow says that the interval goes on "
        "beyond the panel. A design that is cheaper at any rate is at 0, and a word stands where there is no rate. N counts "
        "pairs of first passes and of first rounds. Below it stands how often each of the two was rejected in a trial without "
        "faults."
    )
    return finish(figure, slug("break_even", model), title, caption)


def _answer(pairs: Iterable[Rivals]) -> str:
    """Return a sentence with the rate whose interval is above 0 and ends first. If enough pairs give no rate, return a question
    instead."""
    enough = (pair for pair in pairs if _smallest(pair) >= FEWEST)
    bounded = [
        (each, pair) for pair in enough if (each := pair.break_even) and each.low and math.isfinite(each.high or math.inf)
    ]
    if not bounded:
        return "How many failures in a trial make the first design cheaper?"
    estimate, pair = min(bounded, key=lambda candidate: candidate[0].high or math.inf)
    where = f"on {pair.condition.scenario} under {pair.condition.plan}"
    return f"From {estimate.rate:.2f} failures a trial on, {pair.name} is cheaper than {pair.other} {where}"


def _named(pair: Rivals) -> str:
    names = f"{pair.name}\nagainst {pair.other}".replace("_", " ")
    return f"{names}\nN = {pair.passes.ours.n}, {pair.rounds.ours.n}"


def _right_end(pairs: Iterable[Rivals]) -> float:
    """Return where the axis ends. All points fit, including the paper's and the rejections."""
    rates = [
        estimate.rate
        for pair in pairs
        for estimate in (pair.break_even, pair.published)
        if estimate and math.isfinite(estimate.rate)
    ]
    return 1.2 * max(1.0, *rates, *(mean.high or mean.mean or 0.0 for pair in pairs for mean in pair.rejections))


def _draw(ax: Axes, row: int, pair: Rivals, right: float) -> None:
    new = row == 0
    _point(ax, row - 0.22, pair.break_even, right, "s", BLUE, "ours, with its 95% interval" if new else None)
    _point(ax, row, pair.published, right, "D", VERMILION, "by the paper's figures" if new else None)
    for y, mean, marker, whose in (
        (row + 0.18, pair.rejections[0], "o", "its own"),
        (row + 0.32, pair.rejections[1], "v", "other's"),
    ):
        if mean.mean is not None:
            low, high = (mean.mean if end is None else end for end in (mean.low, mean.high))
            ax.plot([max(0.0, low), high], [y, y], color="#777777", lw=0.8)
            label = f"{whose} rejections a trial, with their 95% interval" if new else None
            ax.plot([mean.mean], [y], marker, color="#777777", mfc="white", ms=4, label=label)


def _point(ax: Axes, y: float, estimate: BreakEven | None, right: float, marker: str, colour: str, label: str | None) -> None:
    """Draw a point with its whisker, or a word at the right if there is no rate."""
    ax.plot([], [], marker, color=colour, mfc="white" if marker == "D" else colour, ms=5, label=label)
    if estimate is None:
        return
    if math.isinf(estimate.rate):
        ax.annotate(NEVER, (right, y), ha="right", va="center", color=colour, fontsize=7.5)
        return
    ax.plot([estimate.rate], [y], marker, color=colour, mfc="white" if marker == "D" else colour, ms=5)
    ax.annotate(f"{estimate.rate:.2f}", (estimate.rate, y), (4, 3), textcoords="offset points", color=colour, fontsize=7)
    if estimate.low is not None and estimate.high is not None:
        ax.plot([estimate.low, min(estimate.high, right)], [y, y], color=colour, lw=1.2)
        if estimate.high > right:
            ax.plot([right], [y], ">", color=colour, ms=5)


TABLES = TablePart("break_even", break_even_tables, "break_even")
FIGURES = FigurePart("break_even", break_even_figures)
