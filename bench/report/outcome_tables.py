"""What became of the trials, and what errors can hide: a ranking that depends on how they are counted, and trials run again
that differ from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pandas as pd

from bench.analysis import statistics
from bench.analysis.arms import Arm, Arms, share_in
from bench.analysis.frames import Run
from bench.analysis.looks import looks
from bench.analysis.metrics import LATENCY, TOKENS, Metric
from bench.analysis.statistics import Denominators, Share
from bench.render.labels import ARM, arm_cells, arm_columns, condition_label, each_arm, model_label
from bench.render.table import Cell, Number, Rate, Table, TableColumn, table_of
from bench.report.table_part import TablePart

RERUN_BY = (TOKENS, LATENCY)
"""By what trials that were run again are compared with the rest, beside being solved."""


def outcomes(run: Run, arms: Arms) -> Table:
    """What became of the trials, under each way to look at errors."""
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
    notes = (
        "errors are ours or the infrastructure's; shares are k/N with Wilson's 95% interval",
        "wrong though every check passed: all that the answer stands on was judged and accepted; without faults that is an "
        "undetected failure, and what an undetected fault made of a right answer is told as silent corruption",
        *ranking_warnings(run, arms),
        *([] if run.rerun else ["no trial was run again after an error, so none can differ from the rest"]),
        *(["trials whose calls were only counted are ungraded, and none of these"] if _any_ungraded(arms) else []),
    )
    return table_of("outcomes", "Outcomes", columns, each_arm(arms), notes)


def _any_ungraded(arms: Arms) -> bool:
    return any(arm.count("ungraded") for arm in each_arm(arms))


def denominators_of(arm: Arm) -> Denominators:
    """Trials that nobody graded count in no rate."""
    graded = arm.graded
    return Denominators(
        left_out=arm.solved(),
        as_failures=share_in(graded, graded["outcome"].eq("solved")),
        best=share_in(graded, graded["outcome"].isin(("solved", "error"))),
    )


def ranking_warnings(run: Run, arms: Arms) -> tuple[str, ...]:
    """One line for each pair of arms of which the errors decide which solves more."""
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
    """Within each arm, the trials that were run again after an error against the rest; no table where there are none."""
    rows = tuple(row for named in arms.values() for arm in named.values() for row in _rows(run, arm))
    if not run.rerun:
        return []
    columns = (*ARM, "Run again", "Rest")
    measured = (name for measure in RERUN_BY for name in (f"{measure.title}: p", f"{measure.title}: Cliff's delta"))
    return [
        Table(
            name="reruns",
            title="Trials run again after an error, against the rest",
            columns=(*columns, *measured, "Solved: p"),
            rows=rows,
            notes=(
                f"{len(run.rerun)} trials were run again; arms in which both kinds of trial were graded are shown",
                "if they differ, the errors did not strike at random, and means that leave errors out are biased",
                "p: Mann-Whitney's by permutation, Fisher's for solved, each by itself; delta: the chance that a trial run "
                "again lies above one of the rest, less the chance that it lies below",
            ),
        )
    ]


def _rows(run: Run, arm: Arm) -> Iterator[tuple[Cell, ...]]:
    again = arm.usable["trial"].isin(run.rerun)
    some, rest = arm.usable[again], arm.usable[~again]
    if some.empty or rest.empty:
        return
    tested = (cell for measure in RERUN_BY for cell in _tested(some, rest, measure))
    solved = Number(statistics.rates_differ(_solved(some), _solved(rest)), 3)
    yield (*arm_cells(run, arm), len(some), len(rest), *tested, solved)


def _tested(some: pd.DataFrame, rest: pd.DataFrame, measure: Metric) -> tuple[Cell, Cell]:
    test = statistics.groups_differ(some[measure.name].tolist(), rest[measure.name].tolist())
    return Number(test.p, 3), Number(test.delta, 2)


def _solved(trials: pd.DataFrame) -> Share:
    return statistics.share_of(int(trials["outcome"].eq("solved").sum()), len(trials))


def two_looks(run: Run, arms: Arms) -> list[Table]:
    """What was solved of the instances that an earlier run had asked, beside those asked later; where there are both."""
    rows: list[tuple[Cell, ...]] = [
        (
            look.condition.scenario,
            model_label(run, look.condition.model),
            name,
            Rate(share),
            Rate(look.later[name]),
            Number(look.p, 3),
        )
        for look in looks(run, arms)
        for name, share in look.first.items()
    ]
    notes = (
        "a run that takes over an earlier one's replies is two samples: what was looked at first, and what was added after; of "
        "trials without a fault, k/N with its 95% interval",
        "p: of a permutation of the instances by how many trials of each were solved, all architectures together; where it is "
        "small, the two are not one population, and a share of both together is of that mixture alone",
    )
    title = "Two looks: instances that were taken over, and those asked for later"
    columns = ("Scenario", "Model", "Architecture", "Solved, taken over", "Solved, asked later", "p of the two looks")
    return [Table("looks", title, columns, tuple(rows), notes)] if rows else []


PARTS = (
    TablePart("outcomes", lambda of: outcomes(of.run, of.arms), "outcomes"),
    TablePart("looks", lambda of: two_looks(of.run, of.arms), "outcomes"),
    TablePart("reruns", lambda of: reruns(of.run, of.arms), "outcomes"),
)
