"""The outcomes of the trials, and what errors can hide: a ranking that depends on how errors are counted, and trials that were
run again and differ from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from typing import NamedTuple

import pandas as pd

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, share_in
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import LATENCY, TOKENS, Metric
from bench.read.analysis.statistics import Denominators, Groups, Share
from bench.read.render.cells import Number, Rate
from bench.read.render.labels import arm_columns, condition_label, each_arm, model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.table_part import TablePart
from bench.read.tables.looks import TwoLooks, looks

RERUN_BY = (TOKENS, LATENCY)
"""The measures, besides solved, by which trials that were run again are compared with the rest."""


def outcomes(run: Run, arms: Arms) -> Table:
    """Show what became of the trials, with errors counted in each possible way."""
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
            lambda arm: Rate(share_in(arm.usable, arm.usable["undetected_failure"])),
        ),
    )
    ungraded = any(arm.count("ungraded") for arm in each_arm(arms))
    notes = (
        "errors come from the benchmark or the infrastructure; shares are k/N with Wilson's 95% interval",
        "wrong though every check passed: every output that the answer uses was checked and accepted; without faults this is "
        "an undetected failure; an undetected fault that made a right answer wrong is silent corruption",
        *ranking_warnings(run, arms),
        *([] if run.rerun else ["no trial was run again after an error, so reruns cannot differ from the rest"]),
        *(["trials whose calls were only counted are ungraded, and none of these"] if ungraded else []),
    )
    return table_of("outcomes", "Outcomes", columns, each_arm(arms), notes)


def denominators_of(arm: Arm) -> Denominators:
    """Return the share solved for each way to count errors. Ungraded trials are never counted."""
    graded = arm.graded
    return Denominators(
        left_out=arm.solved(),
        as_failures=share_in(graded, graded["outcome"].eq("solved")),
        best=share_in(graded, graded["outcome"].isin(("solved", "error"))),
    )


def ranking_warnings(run: Run, arms: Arms) -> tuple[str, ...]:
    """Return a warning for each pair of arms if the errors decide which arm solves more."""
    return tuple(
        f"WARNING, {condition_label(run, condition)}: whether {first.architecture} or {second.architecture} solves more "
        f"depends on how errors are counted ({_shown(first)}; {_shown(second)})"
        for condition, named in arms.items()
        for first, second in combinations(named.values(), 2)
        if statistics.ranking_depends(denominators_of(first), denominators_of(second))
    )


def _shown(arm: Arm) -> str:
    ways = denominators_of(arm)
    rates = (("left out", ways.left_out), ("as failures", ways.as_failures), ("as solved", ways.best))
    return f"{arm.architecture}: {', '.join(f'{name} {share.k}/{share.n}' for name, share in rates)}"


def reruns(run: Run, arms: Arms) -> list[Table]:
    """Compare, within each arm, the trials that were run again after an error with the other trials. There is no table if none
    was run again."""
    if not run.rerun:
        return []
    columns = (
        *(column.of(lambda row: row.arm) for column in arm_columns(run)),
        TableColumn[RunAgain]("Run again", lambda row: len(row.again)),
        TableColumn[RunAgain]("Rest", lambda row: len(row.rest)),
        *chain.from_iterable(map(_tested, RERUN_BY)),
        TableColumn[RunAgain](
            "Solved: p", lambda row: Number(statistics.rates_differ(_solved(row.again), _solved(row.rest)), 3)
        ),
    )
    notes = (
        f"{len(run.rerun)} trials were run again; arms in which both kinds of trial were graded are shown",
        "if they differ, the errors did not strike at random, and means that leave errors out are biased",
        "p: Mann-Whitney's by permutation, Fisher's for solved, each by itself; delta: the chance that a trial run "
        "again lies above one of the rest, less the chance that it lies below",
    )
    parted = [(arm, arm.usable["trial"].isin(run.rerun)) for arm in each_arm(arms)]
    both = [RunAgain(arm, arm.usable[again], arm.usable[~again]) for arm, again in parted if again.any() and not again.all()]
    return [table_of("reruns", "Trials run again after an error, against the rest", columns, both, notes)]


@dataclass(frozen=True, eq=False)
class RunAgain:
    """An arm's usable trials: those run again after an error, and the rest."""

    arm: Arm
    again: pd.DataFrame
    rest: pd.DataFrame


def _tested(measure: Metric) -> Iterator[TableColumn[RunAgain]]:
    @cache
    def test(row: RunAgain) -> Groups:
        return statistics.groups_differ(row.again[measure.name].tolist(), row.rest[measure.name].tolist())

    yield TableColumn(f"{measure.title}: p", lambda row: Number(test(row).p, 3))
    yield TableColumn(f"{measure.title}: Cliff's delta", lambda row: Number(test(row).delta, 2))


def _solved(trials: pd.DataFrame) -> Share:
    return statistics.share_of(int(trials["outcome"].eq("solved").sum()), len(trials))


def two_looks(run: Run, arms: Arms) -> list[Table]:
    """Compare what was solved in instances taken over from an earlier run with what was solved in instances asked later. There
    is no table without both groups."""
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
    TablePart("reruns", lambda of: reruns(of.run, of.arms), "outcomes"),
)
