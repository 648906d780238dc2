"""Tables of the trials' outcomes, with a warning if the ranking of architectures depends on how errors are counted."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, share_of_rows
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Denominators
from bench.read.render.cells import Number, Rate
from bench.read.render.labels import arm_columns, condition_label, each_arm, model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.read.tables.looks import TwoLooks, looks


def outcomes(run: Run, arms: Arms) -> Table:
    """Return a table of the number of trials by outcome, and of the share solved for each way to count errors."""
    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(arm.graded)),
        TableColumn("Solved", lambda arm: arm.count("solved")),
        TableColumn("Wrong", lambda arm: arm.count("wrong")),
        TableColumn("Gave up", lambda arm: arm.count("gave_up")),
        TableColumn("Errors", lambda arm: arm.count("error")),
        TableColumn("Solved, errors left out", lambda arm: Rate(denominators_of(arm).left_out)),
        TableColumn("Solved, errors as failures (worst case)", lambda arm: Rate(denominators_of(arm).as_failures)),
        TableColumn("Solved, errors as solved (best case)", lambda arm: Rate(denominators_of(arm).best)),
        TableColumn(
            "Wrong though every check passed, errors left out",
            lambda arm: Rate(share_of_rows(arm.usable, arm.usable["undetected_failure"])),
        ),
    )
    ungraded = any(arm.count("ungraded") for arm in each_arm(arms))
    notes = (
        "errors come from the benchmark or the infrastructure; shares are k/N with Wilson's 95% interval",
        "wrong though every check passed: every output that the answer uses was checked and accepted; without faults this is "
        "an undetected failure; an undetected fault that made a right answer wrong is silent corruption",
        *ranking_warnings(run, arms),
        *(["trials whose calls were only counted are ungraded, and none of these"] if ungraded else []),
    )
    return table_of("outcomes", "Outcomes", columns, each_arm(arms), notes)


def denominators_of(arm: Arm) -> Denominators:
    """Return the share solved for each way to count errors. Ungraded trials are never counted."""
    graded = arm.graded
    return Denominators(
        left_out=arm.solved(),
        as_failures=share_of_rows(graded, graded["outcome"].eq("solved")),
        best=share_of_rows(graded, graded["outcome"].isin(("solved", "error"))),
    )


def ranking_warnings(run: Run, arms: Arms) -> tuple[str, ...]:
    """Return a warning for each pair of arms if the errors decide which arm solves more."""
    return tuple(
        f"WARNING, {condition_label(run, condition)}: whether {first.architecture} or {second.architecture} solves more "
        f"depends on how errors are counted ({_rates_text(first)}; {_rates_text(second)})"
        for condition, by_architecture in arms.items()
        for first, second in combinations(by_architecture.values(), 2)
        if statistics.ranking_depends(denominators_of(first), denominators_of(second))
    )


def _rates_text(arm: Arm) -> str:
    """Return in words how many trials an arm solved, for each way to count errors."""
    shares = denominators_of(arm)
    rates = (("left out", shares.left_out), ("as failures", shares.as_failures), ("as solved", shares.best))
    return f"{arm.architecture}: {', '.join(f'{name} {share.k}/{share.n}' for name, share in rates)}"


def two_looks(run: Run, arms: Arms) -> list[Table]:
    """Return a table of what was solved in instances whose replies came from an earlier run, beside instances added later. No
    table without both groups."""
    columns = (
        TableColumn[ArmLooks]("Scenario", lambda row: row.looks.condition.scenario),
        TableColumn[ArmLooks]("Model", lambda row: model_label(run, row.looks.condition.model)),
        TableColumn[ArmLooks]("Architecture", lambda row: row.architecture),
        TableColumn[ArmLooks]("Solved, taken over", lambda row: Rate(row.looks.first[row.architecture])),
        TableColumn[ArmLooks]("Solved, asked later", lambda row: Rate(row.looks.later[row.architecture])),
        TableColumn[ArmLooks]("p of the two looks", lambda row: Number(row.looks.p, 3)),
    )
    notes = (
        "a run that takes over an earlier run's replies has two samples: the instances seen first and those added later; of "
        "trials without a fault, k/N with its 95% interval",
        "p: a permutation test over the instances, by each one's number of solved trials, all architectures together; if p is "
        "small, the two are not one population, and a share of both describes that mixture alone",
    )
    title = "Two looks: instances that were taken over, and those asked for later"
    rows = [ArmLooks(look, name) for look in looks(run, arms) for name in look.first]
    return [table_of("looks", title, columns, rows, notes)] if rows else []


class ArmLooks(NamedTuple):
    """An architecture, with the two groups of instances of its condition."""

    looks: TwoLooks
    architecture: str


PARTS = (
    TablePart("outcomes", lambda of: outcomes(of.run, of.arms), "outcomes"),
    TablePart("looks", lambda of: two_looks(of.run, of.arms), "outcomes"),
)
