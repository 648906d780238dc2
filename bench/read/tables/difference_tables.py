"""Tables that compare every two architectures on the same tasks: what their trials take, and which architecture solves more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, combinations

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, instances_by_scenario
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COMPARED, Metric
from bench.read.analysis.statistics import CONFIDENCE, Pair, PairedMean, PairedTest, TwoByTwo
from bench.read.analysis.statistics.mcnemar import TEN_POINTS
from bench.read.analysis.statistics.power import POWER
from bench.read.render.cells import NOTHING, AdjustedP, BoundedNumber, Cell, Estimate, Number
from bench.read.render.labels import condition_columns
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart

ArmPair = tuple[Arm, Arm]


def differences(run: Run, arms: Arms) -> Table:
    """Return a table of the paired differences of every two architectures in tokens, retry tokens, latency and score."""

    @cache
    def paired(pair: ArmPair, measure: str) -> PairedMean:
        first, second = pair
        return second.minus(first, measure)

    def difference(measure: Metric) -> TableColumn[ArmPair]:
        return TableColumn(measure.title, lambda pair: Estimate(paired(pair, measure.name).difference, measure.digits))

    columns = (
        *(column.of(lambda pair: pair[0].condition) for column in condition_columns(run)),
        TableColumn[ArmPair]("Difference", lambda pair: f"{pair[1].architecture} − {pair[0].architecture}"),
        TableColumn[ArmPair]("Pairs", lambda pair: paired(pair, COMPARED[0].name).pairs),
        TableColumn[ArmPair]("Unpaired", lambda pair: paired(pair, COMPARED[0].name).unpaired),
        *map(difference, COMPARED),
    )
    notes = (
        "paired by instance and repetition, all else being equal; mean ± sd of the differences [95% interval of their mean]",
        "unpaired: trials whose counterpart ended in an error or is not recorded",
        "each interval holds by itself at 95%: of twenty, about one misses the truth by chance",
    )
    pairs = chain.from_iterable(combinations(by_architecture.values(), 2) for by_architecture in arms.values())
    return table_of("differences", "Paired differences between architectures", columns, pairs, notes)


def solved_differences(run: Run, arms: Arms) -> list[Table]:
    """Return a table of how many tasks every two architectures solve, with the test of their difference; no table without such
    a pair. Only scenarios with several instances are compared: then the result holds for tasks, not for repetitions."""
    instances = instances_by_scenario(run)
    pairs = [
        (first, second)
        for condition, by_architecture in arms.items()
        if len(instances[condition.scenario]) > 1
        for first, second in combinations(by_architecture.values(), 2)
    ]
    tests = [statistics.mcnemar_test(first.solved_by_pair(), second.solved_by_pair()) for first, second in pairs]
    adjusted = statistics.holm({index: test.p for index, test in enumerate(tests)})
    rows = [SolvedPair(*pair, test, adjusted[index]) for index, (pair, test) in enumerate(zip(pairs, tests, strict=True))]
    columns = (
        *(column.of(lambda row: row.first.condition) for column in condition_columns(run)),
        TableColumn[SolvedPair]("A", lambda row: row.first.architecture),
        TableColumn[SolvedPair]("B", lambda row: row.second.architecture),
        TableColumn[SolvedPair]("Instances", lambda row: len({instance for instance, _ in row.solved[0]})),
        TableColumn[SolvedPair]("Pairs", lambda row: row.table.pairs),
        TableColumn[SolvedPair]("Solved by both", lambda row: row.table.both),
        TableColumn[SolvedPair]("By A alone", lambda row: row.table.first),
        TableColumn[SolvedPair]("By B alone", lambda row: row.table.second),
        TableColumn[SolvedPair]("By neither", lambda row: row.table.neither),
        TableColumn[SolvedPair]("B − A", lambda row: BoundedNumber.of(row.second.solved_minus(row.first), 1, percent=True)),
        TableColumn[SolvedPair]("p", lambda row: Number(row.test.p, 3)),
        TableColumn[SolvedPair](
            "p, Holm", lambda row: AdjustedP(row.adjusted, row.test.least if row.test.p == row.test.least else None)
        ),
        TableColumn[SolvedPair](f"Instances that decide {TEN_POINTS * 100:.0f} points", _required_instances),
    )
    notes = (
        "paired by instance and repetition; pairs with an error are left out; B − A: the difference of the rates, with Bonett "
        "and Price's 95% interval (for several repetitions, by the effective number of pairs)",
        "p: McNemar's exact test on the pairs that only one solved; if an instance has several repetitions, which are alike, "
        "the sign-flip test on the instances' mean differences; Holm: corrected over all rows of this table; (floor): the "
        "smallest p that this many pairs can give",
        f"instances that decide: the number that finds a true difference of {TEN_POINTS * 100:.0f} points with {POWER:.0%} "
        f"power at {1 - CONFIDENCE:.0%}, if repetitions and the share that only one solves stay as here (Connor 1987) [over "
        "that share's 95% interval]; a correction for several comparisons needs more",
    )
    title = "Solved, architecture against architecture, by instance"
    return [table_of("solved_differences", title, columns, rows, notes)] if rows else []


@dataclass(frozen=True, eq=False)
class SolvedPair:
    """Two arms, compared by the tasks that they solve. `adjusted` is the test's p after Holm's correction."""

    first: Arm
    second: Arm
    test: PairedTest
    adjusted: float | None

    @cached_property
    def solved(self) -> tuple[Mapping[Pair, bool], Mapping[Pair, bool]]:
        """For each arm: whether it solved each (instance, repetition) that both arms have."""
        return statistics.in_common(self.first.solved_by_pair(), self.second.solved_by_pair())

    @cached_property
    def table(self) -> TwoByTwo:
        """How many (instance, repetition) both arms, only one, or neither solved."""
        return statistics.two_by_two(*self.solved)


def _required_instances(row: SolvedPair) -> Cell:
    """Return how many instances would decide a difference of TEN_POINTS; nothing if this cannot be computed."""
    required = statistics.required_instances(*row.solved)
    return BoundedNumber(required.number, required.low, required.high) if required else NOTHING


PARTS = (
    TablePart("differences", lambda of: differences(of.run, of.arms), "differences"),
    TablePart("solved_differences", lambda of: solved_differences(of.run, of.arms), "differences"),
)
