"""The paper's Tables 1 and 2 beside our numbers, and the figure of a retry's tokens relative to a retry of monolithic.

The paper's tokens, seconds and calls are those of a run without a failure; ours are those of the first pass of trials without a
fault. The paper's retry tokens are those of some calls of a round of recovery. Ours are those of the same calls of the first
round after a fault; the tokens of the whole round are shown too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bench.common.wording import plural
from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.live_seconds import live_seconds_of
from bench.read.analysis.metrics import FIRST_PASS, FIRST_ROUND, METRICS, Metric
from bench.read.analysis.published import Cells, Published, PublishedTable
from bench.read.claims.counted import AS_PAPER_COUNTS, COUNTED, WHOLE_ROUND
from bench.read.claims.retries import MONOLITHIC, PairedTable, paired_tables
from bench.read.render.cells import NOTHING, BoundedNumber, Cell, Estimate, PublishedNumber, Rate, text_of
from bench.read.render.drawing import (
    BLACK,
    BLUE,
    SKY,
    VERMILION,
    Picture,
    finish,
    legend_of_points,
    names_below,
    panel_title,
    panels,
)
from bench.read.render.figure_part import FigurePart
from bench.read.render.labels import condition_label, counts_text, in_brackets, join_names, model_label, slug
from bench.read.render.marks import Sign, draw_value
from bench.read.render.table import Table
from bench.read.render.table_part import TablePart
from bench.record.config import FAULT_FREE

COUNTED_LABEL = f"ours, {AS_PAPER_COUNTS}, with the 95% interval"
WHOLE_ROUND_LABEL, PAPER_LABEL = f"ours, {WHOLE_ROUND}", "the paper's"
SIGNS: Mapping[str, Sign] = {COUNTED_LABEL: ("o", BLUE), WHOLE_ROUND_LABEL: ("s", SKY), PAPER_LABEL: ("D", VERMILION)}


# The tables


def paper_tables(run: Run, arms: Arms, published: Published) -> Iterator[Table]:
    """Yield the paper's tables with our numbers, one for each scenario, model and fault plan."""
    cells = list(paired_tables(arms, published))
    for cell in cells:
        yield _Table(run, published, cell).table(_name(cell, [other for other in cells if other.table is cell.table]))


def _name(cell: PairedTable, same_table: Sequence[PairedTable]) -> str:
    """Return `tableN` of the published table N. The scenario and the model follow if our tables beside this published table
    differ in them, and the plan of faults follows if it is another plan than the published table's."""
    condition = cell.condition
    parts = [
        (condition.scenario.partition(":")[2] or "plain", {other.condition.scenario for other in same_table}),
        (condition.model, {other.condition.model for other in same_table}),
        (condition.plan, {cell.table.plan, condition.plan}),
    ]
    return slug(f"table{cell.table.number}", *(name for name, all_names in parts if len(all_names) > 1))


class _Table:
    """Makes one of the paper's tables with our numbers. Methods that take the name of an architecture return a cell of it."""

    def __init__(self, run: Run, published: Published, cell: PairedTable):
        self._run, self._published, self._cell = run, published, cell
        measured = cell.fault_free.keys() | cell.struck.keys()
        self._architectures = [name for name in (*published.columns, *published.monoliths) if name in measured]
        self._simulated = run.is_simulated(cell.condition.model)
        self._live_seconds = {
            arm.architecture: arm
            for model, arm in live_seconds_of(run)
            if (model, arm.scenario, arm.plan) == (cell.condition.model, cell.condition.scenario, FAULT_FREE)
        }

    def table(self, name: str) -> Table:
        """Return the table."""
        cell = self._cell
        return Table(
            name=name,
            title=f"Table {cell.table.number} beside {self._ours_text}: {condition_label(self._run, cell.condition)}",
            columns=("Metric", *chain.from_iterable(map(self._titles, self._architectures))),
            rows=tuple(self._rows()),
            notes=tuple(self._notes()),
        )

    @property
    def _ours_text(self) -> str:
        return f"another failure, {self._cell.other_failure}" if self._cell.other_failure else "ours"

    def _titles(self, architecture: str) -> Iterator[str]:
        """Yield the titles of an architecture's columns: the paper's, if it has the architecture, and ours."""
        ours = "ours, SIMULATED" if self._simulated else "ours"
        if architecture in self._published.columns:
            yield f"{architecture}, paper"
        yield f"{architecture}, {ours}"

    def _row(self, title: str, theirs: Callable[[str], Cell], ours: Callable[[str], Cell]) -> tuple[Cell, ...]:
        """Return a row of the table. `theirs` returns the paper's cell of an architecture, and `ours` returns ours."""
        row: list[Cell] = [title]
        for name in self._architectures:
            row += [theirs(name), ours(name)] if name in self._published.columns else [ours(name)]
        return tuple(row)

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the rows: one for each row of the paper's table, and further rows on framework time and on retries."""
        yield self._row("N", lambda _: f"{self._published.paper.runs} runs", self._n_text)
        for key, cells in self._cell.table.cells.items():
            yield self._metric_row(key, cells)
            if key == "framework_seconds":
                yield self._row("Framework, of latency", self._paper_share, self._our_share)
        round_tokens = FIRST_ROUND.tokens
        yield self._row(f"Of monolithic's, {AS_PAPER_COUNTS}", self._paper_ratio, lambda name: self._our_ratio(name, COUNTED))
        yield self._row(
            f"Retry tokens, {WHOLE_ROUND}",
            lambda _: PublishedNumber(None),
            lambda name: self._mean_cell(self._cell.struck.get(name), round_tokens.name),
        )
        yield self._row(
            f"Of monolithic's, {WHOLE_ROUND}", lambda _: PublishedNumber(None), lambda name: self._our_ratio(name, round_tokens)
        )

    def _metric_row(self, key: str, cells: Cells) -> tuple[Cell, ...]:
        title = f"{cells.row}, {AS_PAPER_COUNTS}" if self._published.rows[key].struck else cells.row
        return self._row(title, lambda name: self._paper_value(key, name), lambda name: self._our_value(key, name))

    def _paper_value(self, key: str, name: str) -> PublishedNumber:
        """Return the paper's value of an architecture in the row of the metric `key`."""
        metric, value = METRICS[key], self._cell.table.cells[key].values.get(name)
        if value is None:
            return PublishedNumber(None)
        return PublishedNumber(value.mean, value.sd, metric.published_digits, metric.percent)

    def _n_text(self, name: str) -> str:
        """Return how many of our trials, first passes and first rounds are behind an architecture's numbers."""
        cell = self._cell
        trials = len(cell.fault_free[name].usable) if name in cell.fault_free else 0
        passes = cell.fault_free[name].mean(FIRST_PASS.tokens.name).n if name in cell.fault_free else 0
        rounds = cell.struck[name].mean(FIRST_ROUND.tokens.name).n if name in cell.struck else 0
        ratio = cell.ratio(name) if name != MONOLITHIC else None
        pairs = f", {plural(ratio.pairs, 'pair')} with {MONOLITHIC}" if ratio else ""
        return f"{trials} trials, {passes} passes, {rounds} rounds{pairs}"

    def _our_value(self, key: str, name: str) -> Cell:
        """Return our value of an architecture for the row of the metric `key`."""
        row = self._published.rows[key]
        arm = (self._cell.struck if row.struck else self._cell.fault_free).get(name)
        if arm is None:
            return NOTHING
        return Rate(arm.solved()) if row.measure == "correct" else self._mean_cell(arm, row.measure)

    def _mean_cell(self, arm: Arm | None, measure: str) -> Cell:
        return Estimate(arm.mean(measure), METRICS[measure].digits) if arm else NOTHING

    def _paper_share(self, name: str) -> Cell:
        """Return the paper's framework time as a share of its latency."""
        cells = self._cell.table.cells
        framework, latency = cells["framework_seconds"].values.get(name), cells["latency_seconds"].values[name]
        return PublishedNumber(framework.mean / latency.mean if framework else None, digits=1, percent=True)

    def _our_share(self, name: str) -> Cell:
        """Return our framework time as a share of latency, over the live trials."""
        seconds = self._live_seconds.get(name)
        return f"{seconds.share:.3%}, by trial {seconds.least:.3%} to {seconds.most:.3%}" if seconds else NOTHING

    def _paper_ratio(self, name: str) -> Cell:
        return PublishedNumber(self._cell.papers_ratio(name), digits=1, percent=True)

    def _our_ratio(self, name: str, measure: Metric) -> Cell:
        """Return the retry tokens of an architecture as a share of monolithic's."""
        ratio = self._cell.ratio(name, measure=measure)
        if ratio is None:
            return NOTHING
        return "100.0%" if name == MONOLITHIC else BoundedNumber.of(ratio, 1, percent=True)

    def _notes(self) -> Iterator[str]:
        """Yield the notes below the table."""
        paper, table = self._published.paper, self._cell.table
        source = f"{paper.source}, Table {table.number}: {table.failure}"
        yield f"paper: {source}; {paper.asked}, {paper.runs} runs, mean ± sd; our prompts and inputs are not the paper's"
        yield (
            "ours: mean ± sd [95% interval of the mean]; tokens, seconds and calls are those of the first pass, in trials "
            "without a fault that asked for every subtask; correct: k/N of the trials without a fault, with Wilson's "
            "interval; of monolithic's: over the pairs that have both rounds"
        )
        calls = f"{AS_PAPER_COUNTS}: {counted_calls_text(table)}"
        yield f"retry tokens: of the first round after the fault, effective or masked; {calls}"
        shares = " and ".join(_paper_shares(self._published))
        yield (
            f"framework: in the paper it is {shares} of latency in each cell that has it, as if it were apportioned; ours is "
            "measured over whole trials without a fault; its share is taken over the live trials, in all and by trial"
        )
        if self._cell.other_failure:
            yield f"failure: in the paper another thing fails; here {self._cell.other_failure}"


def counted_calls_text(table: PublishedTable) -> str:
    """Return in words which calls of a round the paper counts."""
    parts = [f"of {name} the calls for {join_names(subtasks)}" for name, subtasks in table.counted.items()]
    parts.append("of any other the whole round")
    return f"{'; '.join(parts)}; {WHOLE_ROUND}: all calls up to the next verdict on what it struck"


def _paper_shares(published: Published) -> list[str]:
    """Return the distinct shares of framework time in latency in the paper's tables, to one digit of a percent."""
    shares = [
        f"{framework.mean / table.cells['latency_seconds'].values[name].mean:.1%}"
        for table in published.table
        for name, framework in table.cells["framework_seconds"].values.items()
    ]
    return sorted(set(shares))


# The figure


def retry_figures(run: Run, arms: Arms, published: Published) -> Iterator[Picture]:
    """Yield a figure for each model: the tokens of a retry relative to a retry of monolithic, which the abstract claims. Each
    table has a panel."""
    cells = list(paired_tables(arms, published))
    for model in run.names("model"):
        of_model = [cell for cell in cells if cell.condition.model == model and any(map(cell.ratio, cell.struck))]
        if of_model:
            yield _figure(run, model, of_model, published)


def _figure(run: Run, model: str, cells: Sequence[PairedTable], published: Published) -> Picture:
    """Draw the retries of one model. The title has the abstract's claim for the first table."""
    names = {cell: [name for name in (*published.columns, *published.monoliths) if name in cell.struck] for cell in cells}
    figure, axes = panels(len(cells), 2, max(3.6, 0.95 * max(map(len, names.values()))), 2.7)
    for cell, ax in zip(cells, axes, strict=True):
        _draw_panel(ax, cell, names[cell])
    legend_of_points(figure, SIGNS)
    last = next(name for name in reversed(names[cells[0]]) if name in published.columns)
    title = f"{_retry_sentence(cells[0], last)} {in_brackets(model_label(run, model))}"
    caption = "Above the line, a retry takes more tokens than the whole call. A pair is a repetition that has both retries."
    return finish(figure, slug("retry", model), title, f"{title}. {caption}")


def _retry_sentence(cell: PairedTable, name: str) -> str:
    """Return a sentence with the abstract's claim for this table, in our numbers and in the paper's."""
    ratio, theirs = cell.ratio(name), cell.papers_ratio(name)
    if ratio is None or ratio.ratio is None:
        return f"On {cell.condition.scenario}, no retry with {name} can be compared with monolithic's"
    in_paper = "" if theirs is None or cell.other_failure else f", and {theirs:.0%} in the paper"
    ours = text_of(BoundedNumber.of(ratio, 0, percent=True))
    took = f"a retry with {name} took {ours} of the tokens of monolithic's"
    return f"On {cell.condition.scenario}, {AS_PAPER_COUNTS}, {took}{in_paper}"


def _draw_panel(ax: Axes, cell: PairedTable, names: Sequence[str]) -> None:
    """Draw for each architecture its retry tokens as a share of monolithic's: ours by the calls that the paper counts, ours
    over the whole round, and the paper's."""
    for x, name in enumerate(names):
        whole_round = cell.ratio(name, measure=FIRST_ROUND.tokens)
        for offset, label, ratio in ((-0.15, COUNTED_LABEL, cell.ratio(name)), (0.0, WHOLE_ROUND_LABEL, whole_round)):
            if ratio is not None and ratio.ratio is not None:
                bounds = (ratio.ratio, None, None) if name == MONOLITHIC else (ratio.ratio, ratio.low, ratio.high)
                draw_value(ax, x + offset, bounds, SIGNS[label])
        theirs = cell.papers_ratio(name)
        if theirs is not None and not cell.other_failure:
            draw_value(ax, x + 0.15, (theirs, None, None), SIGNS[PAPER_LABEL])
    ax.axhline(1.0, color=BLACK, lw=0.8)
    names_below(ax, names)
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylabel("share of monolithic's retry tokens")
    pairs = [ratio.pairs if (ratio := cell.ratio(name)) else 0 for name in names]
    panel_title(
        ax,
        f"{'Not the failure of table' if cell.other_failure else 'Table'} {cell.table.number}: {cell.condition.scenario}",
        f"fault plan {cell.condition.plan}, {counts_text(pairs, 'pairs')}",
    )


TABLES = TablePart("paper_tables", lambda of: paper_tables(of.run, of.arms, of.published), "paper")
FIGURES = FigurePart("retry", lambda of: retry_figures(of.run, of.arms, of.published), leads=True)
