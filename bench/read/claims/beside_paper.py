"""The paper's Tables 1 and 2 with our numbers: rows, quantities, and the price of a retry relative to a retry of monolithic.

The paper's tokens, seconds and calls are of a run without a failure; ours are of the first pass of trials without a fault. The
paper's retry tokens are of the calls that it counts of one round of recovery. Ours are of the same calls of the first round
after a fault; the whole round stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bench.common.wording import plural
from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.live_seconds import live_seconds_of
from bench.read.analysis.metrics import FIRST_PASS, FIRST_ROUND, METRICS, Metric
from bench.read.analysis.published import Cells, Published, PublishedTable
from bench.read.claims.counted import COUNTED, COUNTED_SO, IN_ALL
from bench.read.claims.retries import WHOLE, PairedTable, paired_tables
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
from bench.read.render.labels import condition_label, counts_text, in_brackets, join_names, model_label, slug
from bench.read.render.marks import Sign, draw_value
from bench.read.render.table import Table
from bench.read.report.figure_part import FigurePart
from bench.read.report.table_part import TablePart
from bench.record.config import FAULT_FREE

OURS, ROUND, PAPERS = f"ours, {COUNTED_SO}, with the 95% interval", f"ours, {IN_ALL}", "the paper's"
SIGNS: Mapping[str, Sign] = {OURS: ("o", BLUE), ROUND: ("s", SKY), PAPERS: ("D", VERMILION)}


# The tables


def paper_tables(run: Run, arms: Arms, published: Published) -> Iterator[Table]:
    """Yield the paper's tables beside our numbers, one for each scenario, model and fault plan."""
    cells = list(paired_tables(arms, published))
    for cell in cells:
        yield _Table(run, published, cell).table(_name(cell, [other for other in cells if other.table is cell.table]))


def _name(cell: PairedTable, alike: Sequence[PairedTable]) -> str:
    """Return `table1`, with suffixes that distinguish it from others of the same published table."""
    condition = cell.condition
    parts = [
        (condition.scenario.partition(":")[2] or "plain", {other.condition.scenario for other in alike}),
        (condition.model, {other.condition.model for other in alike}),
        (condition.plan, {cell.table.plan, condition.plan}),
    ]
    return slug(f"table{cell.table.number}", *(name for name, all_names in parts if len(all_names) > 1))


class _Table:
    def __init__(self, run: Run, published: Published, cell: PairedTable):
        self._run, self._published, self._beside = run, published, cell
        there = cell.undisturbed.keys() | cell.struck.keys()
        self._architectures = [name for name in (*published.columns, *published.monoliths) if name in there]
        self._simulated = run.is_simulated(cell.condition.model)
        self._shares = {
            arm.architecture: arm
            for model, arm in live_seconds_of(run)
            if (model, arm.scenario, arm.plan) == (cell.condition.model, cell.condition.scenario, FAULT_FREE)
        }

    def table(self, name: str) -> Table:
        cell, place = self._beside, self._beside.condition
        return Table(
            name=name,
            title=f"Table {cell.table.number} beside {self._ours_named}: {condition_label(self._run, place)}",
            columns=("Metric", *(title for each in self._architectures for title in self._titles(each))),
            rows=tuple(self._rows()),
            notes=tuple(self._notes()),
        )

    @property
    def _ours_named(self) -> str:
        return f"another failure, {self._beside.other_failure}" if self._beside.other_failure else "ours"

    def _titles(self, architecture: str) -> Iterator[str]:
        ours = "ours, SIMULATED" if self._simulated else "ours"
        if architecture in self._published.columns:
            yield f"{architecture}, paper"
        yield f"{architecture}, {ours}"

    def _row(self, title: str, theirs: Callable[[str], Cell], ours: Callable[[str], Cell]) -> tuple[Cell, ...]:
        row: list[Cell] = [title]
        for name in self._architectures:
            row += [theirs(name), ours(name)] if name in self._published.columns else [ours(name)]
        return tuple(row)

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        yield self._row("N", lambda _: f"{self._published.paper.runs} runs", self._numbers)
        for key, cells in self._beside.table.cells.items():
            yield self._metric(key, cells)
            if key == "framework_seconds":
                yield self._row("Framework, of latency", self._papers_share, self._share)
        whole = FIRST_ROUND.tokens
        yield self._row(f"Of monolithic's, {COUNTED_SO}", self._papers_ratio, lambda name: self._ratio(name, COUNTED))
        yield self._row(
            f"Retry tokens, {IN_ALL}",
            lambda _: PublishedNumber(None),
            lambda name: self._mean(self._beside.struck.get(name), whole.name),
        )
        yield self._row(f"Of monolithic's, {IN_ALL}", lambda _: PublishedNumber(None), lambda name: self._ratio(name, whole))

    def _metric(self, key: str, cells: Cells) -> tuple[Cell, ...]:
        title = f"{cells.row}, {COUNTED_SO}" if self._published.rows[key].struck else cells.row
        return self._row(title, lambda name: self._papers(key, name), lambda name: self._ours(key, name))

    def _papers(self, key: str, name: str) -> PublishedNumber:
        metric, value = METRICS[key], self._beside.table.cells[key].values.get(name)
        if value is None:
            return PublishedNumber(None)
        return PublishedNumber(value.mean, value.sd, metric.published_digits, metric.percent)

    def _numbers(self, name: str) -> str:
        cell = self._beside
        trials = len(cell.undisturbed[name].usable) if name in cell.undisturbed else 0
        passes = cell.undisturbed[name].mean(FIRST_PASS.tokens.name).n if name in cell.undisturbed else 0
        rounds = cell.struck[name].mean(FIRST_ROUND.tokens.name).n if name in cell.struck else 0
        ratio = cell.ratio(name) if name != WHOLE else None
        pairs = f", {plural(ratio.pairs, 'pair')} with {WHOLE}" if ratio else ""
        return f"{trials} trials, {passes} passes, {rounds} rounds{pairs}"

    def _ours(self, key: str, name: str) -> Cell:
        compared = self._published.rows[key]
        arm = (self._beside.struck if compared.struck else self._beside.undisturbed).get(name)
        if arm is None:
            return NOTHING
        if compared.measure == "correct":
            return Rate(arm.solved())
        return self._mean(arm, compared.measure)

    def _mean(self, arm: Arm | None, measure: str) -> Cell:
        return Estimate(arm.mean(measure), METRICS[measure].digits) if arm else NOTHING

    def _papers_share(self, name: str) -> Cell:
        cells = self._beside.table.cells
        part, whole = cells["framework_seconds"].values.get(name), cells["latency_seconds"].values[name]
        return PublishedNumber(part.mean / whole.mean if part else None, digits=1, percent=True)

    def _share(self, name: str) -> Cell:
        lived = self._shares.get(name)
        return f"{lived.share:.3%}, by trial {lived.least:.3%} to {lived.most:.3%}" if lived else NOTHING

    def _papers_ratio(self, name: str) -> Cell:
        return PublishedNumber(self._beside.papers_ratio(name), digits=1, percent=True)

    def _ratio(self, name: str, measure: Metric) -> Cell:
        ratio = self._beside.ratio(name, measure=measure)
        if name == WHOLE or ratio is None:
            return "100.0%" if ratio else NOTHING
        return BoundedNumber.of(ratio, 1, percent=True)

    def _notes(self) -> Iterator[str]:
        paper, table = self._published.paper, self._beside.table
        where = f"{paper.source}, Table {table.number}: {table.failure}"
        yield f"paper: {where}; {paper.asked}, {paper.runs} runs, mean ± sd; our prompts and inputs are not the paper's"
        yield (
            "ours: mean ± sd [95% interval of the mean]; tokens, seconds and calls are those of the first pass, in trials "
            "without a fault that asked for every subtask; correct: k/N of the trials without a fault, with Wilson's "
            "interval; of monolithic's: over the pairs that have both rounds"
        )
        counted = f"{COUNTED_SO}: {counted_calls_text(table)}"
        yield f"retry tokens: of the first round after the fault, effective or masked; {counted}"
        shares = " and ".join(_shares(self._published))
        yield (
            f"framework: in the paper it is {shares} of latency in each cell that has it, as if it were apportioned; ours is "
            "measured over whole trials without a fault; its share is taken over the live trials, in all and by trial"
        )
        if self._beside.other_failure:
            yield f"failure: in the paper another thing fails; here {self._beside.other_failure}"


def counted_calls_text(table: PublishedTable) -> str:
    """Return in words which calls of a round the paper counts."""
    each = [f"of {name} the calls for {join_names(subtasks)}" for name, subtasks in table.counted.items()]
    return f"{'; '.join([*each, 'of any other the whole round'])}; {IN_ALL}: all calls up to the next verdict on what it struck"


def _shares(published: Published) -> list[str]:
    """Return the distinct shares of framework time in the paper's latency, to one digit of a percent."""
    shares = [
        f"{part.mean / table.cells['latency_seconds'].values[name].mean:.1%}"
        for table in published.table
        for name, part in table.cells["framework_seconds"].values.items()
    ]
    return sorted(set(shares))


# The figure


def retry_figures(run: Run, arms: Arms, published: Published) -> Iterator[Picture]:
    """Yield a figure for each model: the price of a retry relative to a retry of monolithic, which the abstract claims. Each
    table has a panel."""
    cells = list(paired_tables(arms, published))
    for model in run.names("model"):
        of_model = [cell for cell in cells if cell.condition.model == model and any(map(cell.ratio, cell.struck))]
        if of_model:
            yield _figure(run, model, of_model, published)


def _figure(run: Run, model: str, cells: Sequence[PairedTable], published: Published) -> Picture:
    names = {cell: [name for name in (*published.columns, *published.monoliths) if name in cell.struck] for cell in cells}
    figure, axes = panels(len(cells), 2, max(3.6, 0.95 * max(map(len, names.values()))), 2.7)
    for cell, ax in zip(cells, axes, strict=True):
        _panel(ax, cell, names[cell])
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
    papers = "" if theirs is None or cell.other_failure else f", and {theirs:.0%} in the paper"
    ours = text_of(BoundedNumber.of(ratio, 0, percent=True))
    return f"On {cell.condition.scenario}, {COUNTED_SO}, a retry with {name} took {ours} of the tokens of monolithic's{papers}"


def _panel(ax: Axes, cell: PairedTable, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        theirs = cell.papers_ratio(name)
        for aside, sign, ratio in ((-0.15, OURS, cell.ratio(name)), (0.0, ROUND, cell.ratio(name, measure=FIRST_ROUND.tokens))):
            if ratio is not None and ratio.ratio is not None:
                bounds = (ratio.ratio, None, None) if name == WHOLE else (ratio.ratio, ratio.low, ratio.high)
                draw_value(ax, place + aside, bounds, SIGNS[sign])
        if theirs is not None and not cell.other_failure:
            draw_value(ax, place + 0.15, (theirs, None, None), SIGNS[PAPERS])
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
