"""Paired comparisons of two architectures or two models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations
from typing import NamedTuple

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COMPARED, COST, SOLVED, Metric
from bench.read.analysis.per_solved import per_solved
from bench.read.analysis.statistics import PairedMean
from bench.read.render.cells import BoundedNumber, Cell, Estimate, Rate, RateGap, Spent
from bench.read.render.labels import condition_columns, model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.table_part import TablePart

ArmPair = tuple[Arm, Arm]


def differences(run: Run, arms: Arms) -> Table:
    """Compare every two architectures pair by pair."""

    @cache
    def less(pair: ArmPair, measure: str) -> PairedMean:
        return pair[1].less(pair[0], measure)

    def difference(measure: Metric) -> TableColumn[ArmPair]:
        return TableColumn(measure.title, lambda pair: Estimate(less(pair, measure.name).difference, measure.digits))

    columns = (
        *(column.of(lambda pair: pair[0].condition) for column in condition_columns(run)),
        TableColumn[ArmPair]("Difference", lambda pair: f"{pair[1].architecture} − {pair[0].architecture}"),
        TableColumn[ArmPair]("Pairs", lambda pair: less(pair, COMPARED[0].name).pairs),
        TableColumn[ArmPair]("Unpaired", lambda pair: less(pair, COMPARED[0].name).unpaired),
        *map(difference, COMPARED),
    )
    notes = (
        "paired by instance and repetition, all else being equal; mean ± sd of the differences [95% interval of their mean]",
        "unpaired: trials whose counterpart ended in an error or is not recorded",
        "each interval holds by itself at 95%: of twenty, about one misses the truth by chance",
    )
    pairs = chain.from_iterable(combinations(named.values(), 2) for named in arms.values())
    return table_of("differences", "Paired differences between architectures", columns, pairs, notes)


class MeasureOfModels(NamedTuple):
    """One measure of two arms that differ only in their model. It has both values, and over the pairs the second minus the
    first, and the second divided by the first."""

    first: Arm
    second: Arm
    measure: str
    values: tuple[Cell, Cell]
    difference: Cell
    ratio: Cell
    pairs: int
    unpaired: int


def models(run: Run, arms: Arms) -> list[Table]:
    """Compare every two models: each measure of both, and the paired difference. No table if the run has one model."""
    if len(run.names("model")) == 1:
        return []
    columns = (
        TableColumn[MeasureOfModels]("Scenario", lambda row: row.first.condition.scenario),
        TableColumn[MeasureOfModels]("Fault plan", lambda row: row.first.condition.plan),
        TableColumn[MeasureOfModels]("Architecture", lambda row: row.first.architecture),
        TableColumn[MeasureOfModels]("Model A", lambda row: model_label(run, row.first.condition.model)),
        TableColumn[MeasureOfModels]("Model B", lambda row: model_label(run, row.second.condition.model)),
        TableColumn[MeasureOfModels]("Measure", lambda row: row.measure),
        TableColumn[MeasureOfModels]("A", lambda row: row.values[0]),
        TableColumn[MeasureOfModels]("B", lambda row: row.values[1]),
        TableColumn[MeasureOfModels]("B − A, paired", lambda row: row.difference),
        TableColumn[MeasureOfModels]("B ÷ A, paired", lambda row: row.ratio),
        TableColumn[MeasureOfModels]("Pairs", lambda row: row.pairs),
        TableColumn[MeasureOfModels]("Unpaired", lambda row: row.unpaired),
    )
    notes = (
        "paired by instance and repetition: same scenario, fault plan, architecture and seeds; mean ± sd [95% interval of "
        "the mean]; B ÷ A is the ratio of the means over the pairs [95% interval of its logarithm]",
        "solved: k/N with Wilson's 95% interval; its paired difference with Bonett and Price's, and the pairs that only "
        "B solved (gained) or only A (lost)",
        "unpaired: trials whose counterpart ended in an error or is not recorded",
        "each interval holds by itself at 95%: of twenty, about one misses the truth by chance",
        *_taken_over(run),
    )
    measures = (measure for pair in _pairs(arms) for measure in _comparisons(*pair))
    return [table_of("models", "Models compared", columns, measures, notes)]


def _taken_over(run: Run) -> Iterator[str]:
    """Name the models whose seconds come partly from an earlier run."""
    for model in run.names("model"):
        if earlier := run.parameters_of(model).cache_from:
            seconds = f"those of {' and '.join(run.name for run in earlier)}, at the pace of its machine then"
            yield f"{model_label(run, model)}: the seconds of replies that it took over are {seconds}"


def _pairs(arms: Arms) -> Iterator[ArmPair]:
    """Return every two arms that differ only in their model, in the config's order of models."""
    alike: dict[tuple[str, str, str], list[Arm]] = {}
    for condition, named in arms.items():
        for arm in named.values():
            alike.setdefault((condition.scenario, condition.plan, arm.architecture), []).append(arm)
    return (pair for group in alike.values() for pair in combinations(group, 2))


def _comparisons(first: Arm, second: Arm) -> Iterator[MeasureOfModels]:
    def values(measure: Metric) -> tuple[Cell, Cell]:
        before, after = (Estimate(arm.mean(measure.name), measure.digits, with_n=True) for arm in (first, second))
        return before, after

    def row(measure: Metric, title: str) -> MeasureOfModels:
        paired = second.less(first, measure.name)
        ratio = second.ratio_to(first, measure.name)
        cells = Estimate(paired.difference, measure.digits), BoundedNumber.of(ratio, 2)
        return MeasureOfModels(first, second, title, values(measure), *cells, paired.pairs, paired.unpaired)

    yield from (row(measure, measure.title) for measure in COMPARED)
    before, after = (per_solved(arm.trials, COST.name) for arm in (first, second))
    if before.spent is not None and after.spent is not None:
        dollars = row(COST, "Dollars")
        spent = Spent(before, COST.digits), Spent(after, COST.digits)
        yield dollars
        yield dollars._replace(measure="Dollars for a solved task", values=spent, difference="–", ratio="–")
    gap = second.solved_less(first)
    rates = Rate(first.solved()), Rate(second.solved())
    yield MeasureOfModels(first, second, SOLVED.title, rates, RateGap(gap), "–", gap.pairs, gap.unpaired)


PARTS = (
    TablePart("differences", lambda of: differences(of.run, of.arms), "differences"),
    TablePart("models", lambda of: models(of.run, of.arms), "models"),
)
