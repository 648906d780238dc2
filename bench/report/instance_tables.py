"""Several instances of a pack: which architecture solves more of them, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from bench.analysis import statistics
from bench.analysis.arms import Arm, Arms, Condition, instances_by_scenario, instances_of
from bench.analysis.frames import Run
from bench.analysis.statistics import CONFIDENCE, PairedTest
from bench.analysis.statistics.mcnemar import TEN_POINTS
from bench.analysis.statistics.power import POWER
from bench.render.labels import ARM, model_label, slug
from bench.render.table import NOTHING, AdjustedP, BoundedNumber, Cell, Number, SolvedOf, Table
from bench.report.table_part import TablePart

MOST_INSTANCES = 60
"""A table of more rows than that nobody reads."""


def solved_differences(run: Run, arms: Arms) -> list[Table]:
    """Each architecture against each other by what they solve; of scenarios with several instances alone, so that it may be
    said of tasks and not of repetitions."""
    instances = instances_by_scenario(run)
    pairs = [
        (first, second)
        for condition, named in arms.items()
        if len(instances[condition.scenario]) > 1
        for first, second in combinations(named.values(), 2)
    ]
    tests = [statistics.mcnemar_test(first.solved_by_pair(), second.solved_by_pair()) for first, second in pairs]
    adjusted = statistics.holm({place: test.p for place, test in enumerate(tests)})
    rows = tuple(_row(run, *pair, tests[place], adjusted[place]) for place, pair in enumerate(pairs))
    title = "Solved, architecture against architecture, by instance"
    return [Table("solved_differences", title, _COLUMNS, rows, _NOTES)] if rows else []


_COLUMNS = (
    *(*ARM[:3], "A", "B", "Instances", "Pairs", "Solved by both", "By A alone", "By B alone", "By neither"),
    *("B − A", "p", "p, Holm", f"Instances that decide {TEN_POINTS * 100:.0f} points"),
)
_NOTES = (
    "paired by instance and repetition; pairs in which one ended in an error are left out; B − A: the difference of the rates, "
    "with Bonett and Price's 95% interval, of several repetitions by the effective number of pairs",
    "p: McNemar's exact test, of the pairs that one alone solved; where an instance has several repetitions, which are alike, "
    "by flipping the signs of the instances' mean differences instead; Holm: corrected over all rows of this table; (floor): "
    "the least that so many pairs can give",
    f"instances that decide: so many, with as many repetitions each, find a true difference of {TEN_POINTS * 100:.0f} points "
    f"with {POWER:.0%} power at {1 - CONFIDENCE:.0%}, where as large a share is solved by one alone as here (Connor 1987) [of "
    "that share's 95% interval]; the correction over several comparisons asks for more",
)


def _row(run: Run, first: Arm, second: Arm, test: PairedTest, adjusted: float | None) -> tuple[Cell, ...]:
    condition, gap = first.condition, second.solved_less(first)
    solved, others = statistics.in_common(first.solved_by_pair(), second.solved_by_pair())
    table, required = statistics.two_by_two(solved, others), statistics.required_instances(solved, others)
    return (
        *(condition.scenario, model_label(run, condition.model), condition.plan, first.architecture, second.architecture),
        *(len({instance for instance, _ in solved}), table.pairs, table.both, table.first, table.second, table.neither),
        BoundedNumber(gap.difference, gap.low, gap.high, 1, percent=True),
        Number(test.p, 3),
        AdjustedP(adjusted, test.least if test.p == test.least else None),
        BoundedNumber(required.number, required.low, required.high) if required else NOTHING,
    )


def by_instance(run: Run, arms: Arms) -> Iterator[Table]:
    """For each scenario with several instances and each model, what became of every one, arm by arm."""
    for scenario, instances in instances_by_scenario(run).items():
        if not 2 <= len(instances) <= MOST_INSTANCES:
            continue
        for model in run.names("model"):
            shares = {
                condition: named
                for condition, named in arms.items()
                if (condition.scenario, condition.model) == (scenario, model)
            }
            if shares:
                yield _by_instance(run, Condition(scenario, model, ""), shares, instances)


def _by_instance(run: Run, place: Condition, arms: Arms, instances: list[str]) -> Table:
    each = [(f"{name}, {condition.plan}", _cells(arm)) for condition, named in arms.items() for name, arm in named.items()]
    return Table(
        name=slug("instances", place.scenario, place.model),
        title=f"Instance by instance: {place.scenario}, {model_label(run, place.model)}",
        columns=("Instance", *(name for name, _ in each)),
        rows=tuple((instance, *(cells.get(instance, "–") for _, cells in each)) for instance in instances),
        notes=(
            "solved k of n trials, and their tokens in all; by architecture and fault plan; trials that ended in an error are "
            "left out",
        ),
    )


def _cells(arm: Arm) -> dict[str, Cell]:
    usable = arm.usable.assign(instance=instances_of(arm.usable), solved=arm.usable["outcome"].eq("solved"))
    grouped = usable.groupby("instance", sort=False).agg(k=("solved", "sum"), n=("solved", "size"), tokens=("tokens", "sum"))
    return {str(instance): SolvedOf(int(row.k), int(row.n), int(row.tokens)) for instance, row in grouped.iterrows()}


PARTS = (
    TablePart("solved_differences", lambda of: solved_differences(of.run, of.arms), "differences"),
    TablePart("instances", lambda of: by_instance(of.run, of.arms), "instances"),
)
