"""The paper's Tables 1 and 2 with our numbers: rows, quantities, and the price of a retry relative to a retry of monolithic.

The paper's tokens, seconds and calls are of a run without a failure; ours are of the first pass of trials without a fault. The
paper's retry tokens are of one round of recovery; ours are of the first round after a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.lived import live_seconds_of
from bench.read.analysis.metrics import FIRST_PASS, FIRST_ROUND, METRICS, REWORK
from bench.read.analysis.statistics import Ratio
from bench.read.claims.judging import figures
from bench.read.claims.published import Cells, Published, PublishedTable
from bench.read.render.cells import NOTHING, BoundedNumber, Cell, Estimate, PublishedNumber, Rate
from bench.read.render.drawing import (
    BLACK,
    BLUE,
    VERMILION,
    Picture,
    finish,
    legend_of_points,
    names_below,
    panel_title,
    panels,
)
from bench.read.render.labels import bracketed, condition_label, model_label, numbers_said, slug
from bench.read.render.marks import Sign, bounded
from bench.read.render.table import Table
from bench.read.report.figure_part import FigurePart
from bench.read.report.table_part import TablePart
from bench.record.config import FAULT_FREE

WHOLE = "monolithic"
"""The architecture to whose retry the others' are compared."""
OURS, PAPERS = "ours, with the 95% interval", "the paper's"
SIGNS: Mapping[str, Sign] = {OURS: ("o", BLUE), PAPERS: ("D", VERMILION)}


@dataclass(frozen=True, eq=False)
class Beside:
    """A published table, with the arms of ours that are compared with it.

    condition   the scenario, the model and the plan with the paper's failure
    undisturbed the arms without a fault, by architecture
    struck      the arms under that plan
    """

    table: PublishedTable
    condition: Condition
    undisturbed: Mapping[str, Arm]
    struck: Mapping[str, Arm]

    @property
    def other_failure(self) -> str:
        """The failure here, in words, if it differs from the paper's failure; else ""."""
        return self.table.instead.get(self.condition.plan, "")

    def by_monolithic(self, architecture: str, measure: str = FIRST_ROUND.tokens.name) -> Ratio | None:
        """Return the first round of an architecture divided by the first round of monolithic. None if an architecture has no
        first round."""
        rounds = [self.struck[name].by_pair(measure) for name in (architecture, WHOLE) if name in self.struck]
        if len(rounds) < 2:
            return None
        return statistics.ratio_of_means(*(statistics.by_unit(rounds_of) for rounds_of in statistics.in_common(*rounds)))

    def papers_by_monolithic(self, architecture: str) -> float | None:
        values = self.table.cells["retry_tokens"].values
        return values[architecture].mean / values[WHOLE].mean if architecture in values else None


def beside(arms: Arms, published: Published) -> Iterator[Beside]:
    """Yield each published table for each size of its pack, each model and each plan. Plans with the table's own failure come
    first."""
    events = [(table, table.plan) for table in published.table]
    events += [(table, plan) for table in published.table for plan in table.instead]
    for table, plan in events:
        for condition, struck in arms.items():
            if condition.scenario.partition(":")[0] == table.scenario and condition.plan == plan:
                control = Condition(condition.scenario, condition.model, FAULT_FREE)
                yield Beside(table, condition, arms.get(control, {}), struck)


# The tables


def paper_tables(run: Run, arms: Arms, published: Published) -> Iterator[Table]:
    cells = list(beside(arms, published))
    for cell in cells:
        yield _Table(run, published, cell).table(_name(cell, [other for other in cells if other.table is cell.table]))


def _name(cell: Beside, alike: Sequence[Beside]) -> str:
    """Return `table1`, with suffixes that distinguish it from others of the same published table."""
    condition = cell.condition
    parts = [
        (condition.scenario.partition(":")[2] or "plain", {other.condition.scenario for other in alike}),
        (condition.model, {other.condition.model for other in alike}),
        (condition.plan, {cell.table.plan, condition.plan}),
    ]
    return slug(f"table{cell.table.number}", *(name for name, all_names in parts if len(all_names) > 1))


class _Table:
    def __init__(self, run: Run, published: Published, cell: Beside):
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
        yield self._row("Retry tokens, of monolithic's", self._papers_ratio, self._ratio)
        if not self._beside.other_failure and self._checks_again():
            yield self._row(
                "Retry tokens without the second check",
                lambda name: self._papers("retry_tokens", name),
                lambda name: self._mean(self._beside.struck.get(name), REWORK.name),
            )
            yield self._row("Of monolithic's, without it", self._papers_ratio, lambda name: self._ratio(name, REWORK.name))

    def _checks_again(self) -> bool:
        """Return whether a round asks for the struck subtask after it asked for another subtask."""
        trials = [arm.usable for arm in self._beside.struck.values()]
        return any((of_arm[REWORK.name] < of_arm[FIRST_ROUND.tokens.name]).any() for of_arm in trials)

    def _metric(self, key: str, cells: Cells) -> tuple[Cell, ...]:
        return self._row(cells.row, lambda name: self._papers(key, name), lambda name: self._ours(key, name))

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
        return f"{trials} trials, {passes} passes, {rounds} rounds"

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
        return PublishedNumber(self._beside.papers_by_monolithic(name), digits=1, percent=True)

    def _ratio(self, name: str, measure: str = FIRST_ROUND.tokens.name) -> Cell:
        ratio = self._beside.by_monolithic(name, measure)
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
            "interval; retry tokens: the first round after the fault, effective or masked; of monolithic's: over the pairs "
            "that have both rounds"
        )
        shares = " and ".join(_shares(self._published))
        yield (
            f"framework: in the paper it is {shares} of latency in each cell that has it, as if it were apportioned; ours is "
            "measured over whole trials without a fault; its share is taken over the live trials, in all and by trial"
        )
        if self._beside.other_failure:
            yield f"failure: in the paper another thing fails; here {self._beside.other_failure}"
        elif self._checks_again():
            yield "retry tokens without the second check: the paper's retry leaves its second validation out"


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
    cells = list(beside(arms, published))
    for model in run.names("model"):
        of_model = [cell for cell in cells if cell.condition.model == model and any(map(cell.by_monolithic, cell.struck))]
        if of_model:
            yield _figure(run, model, of_model, published)


def _figure(run: Run, model: str, cells: Sequence[Beside], published: Published) -> Picture:
    names = {cell: [name for name in (*published.columns, *published.monoliths) if name in cell.struck] for cell in cells}
    figure, axes = panels(len(cells), 2, max(3.6, 0.95 * max(map(len, names.values()))), 2.7)
    for cell, ax in zip(cells, axes, strict=True):
        _panel(ax, cell, names[cell])
    legend_of_points(figure, SIGNS)
    last = next(name for name in reversed(names[cells[0]]) if name in published.columns)
    title = f"{_retry_said(cells[0], last)} {bracketed(model_label(run, model))}"
    caption = "Above the line, a retry takes more tokens than the whole call. A pair is a repetition that has both retries."
    return finish(figure, slug("retry", model), title, f"{title}. {caption}")


def _retry_said(cell: Beside, name: str) -> str:
    """Return a sentence with the abstract's claim for this table, in our numbers and in the paper's."""
    ratio, theirs = cell.by_monolithic(name), cell.papers_by_monolithic(name)
    if ratio is None or ratio.ratio is None:
        return f"On {cell.condition.scenario}, no retry with {name} can be compared with monolithic's"
    papers = "" if theirs is None or cell.other_failure else f", and {theirs:.0%} in the paper"
    ours = BoundedNumber(ratio.ratio, ratio.low, ratio.high, 0, percent=True).text()
    return f"On {cell.condition.scenario}, a retry with {name} took {ours} of the tokens of monolithic's{papers}"


def _panel(ax: Axes, cell: Beside, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        ratio, theirs = cell.by_monolithic(name), cell.papers_by_monolithic(name)
        if ratio is not None and ratio.ratio is not None:
            bounds = (ratio.ratio, None, None) if name == WHOLE else (ratio.ratio, ratio.low, ratio.high)
            bounded(ax, place - 0.1, bounds, SIGNS[OURS])
        if theirs is not None and not cell.other_failure:
            bounded(ax, place + 0.1, (theirs, None, None), SIGNS[PAPERS])
    ax.axhline(1.0, color=BLACK, lw=0.8)
    names_below(ax, names)
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylabel("share of monolithic's retry tokens")
    pairs = [ratio.pairs if (ratio := cell.by_monolithic(name)) else 0 for name in names]
    panel_title(
        ax,
        f"{'Not the failure of table' if cell.other_failure else 'Table'} {cell.table.number}: {cell.condition.scenario}",
        f"fault plan {cell.condition.plan}, {numbers_said(pairs, 'pairs')}",
    )


TABLES = TablePart("paper_tables", lambda of: paper_tables(of.run, of.arms, of.once(figures)), "paper")
FIGURES = FigurePart("retry", lambda of: retry_figures(of.run, of.arms, of.once(figures)), leads=True)
