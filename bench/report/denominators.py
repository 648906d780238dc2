"""What errors can hide: a ranking that depends on how they are counted, and trials run again that differ from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pandas as pd

from bench.analysis import statistics
from bench.analysis.arms import Arm, Arms
from bench.analysis.frames import Run
from bench.analysis.measures import COSTS, Measure
from bench.analysis.statistics import Denominators, Share
from bench.render.labels import condition_label, model_label
from bench.render.table import Cell, Number, Table

RERUN_BY = (COSTS[0], COSTS[1])
"""By what trials that were run again are compared with the rest, beside being solved."""


def denominators_of(arm: Arm) -> Denominators:
    """Trials that nobody graded count in no rate."""
    return statistics.denominators(arm.count("solved"), arm.count("wrong") + arm.count("gave_up"), arm.count("error"))


def ranking_warnings(run: Run, arms: Arms) -> tuple[str, ...]:
    """One line for each pair of arms of which the errors decide which solves more."""
    return tuple(
        f"WARNING, {condition_label(run, condition)}: whether {first.architecture} or {second.architecture} solves more "
        f"depends on how errors are counted ({_shown(first)}; {_shown(second)})"
        for condition, found in arms.items()
        for first, second in combinations(found.values(), 2)
        if statistics.ranking_depends(denominators_of(first), denominators_of(second))
    )


def _shown(arm: Arm) -> str:
    ways = denominators_of(arm)
    rates = (("left out", ways.left_out), ("as failures", ways.as_failures), ("as solved", ways.best))
    return f"{arm.architecture}: {', '.join(f'{name} {share.k}/{share.n}' for name, share in rates)}"


def reruns(run: Run, arms: Arms) -> list[Table]:
    """Within each arm, the trials that were run again after an error against the rest; no table where there are none."""
    rows = tuple(row for found in arms.values() for arm in found.values() for row in _rows(run, arm))
    if not run.rerun:
        return []
    columns = ("Scenario", "Model", "Fault plan", "Architecture", "Run again", "Rest")
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
    condition = arm.condition
    place = (condition.scenario, model_label(run, condition.model), condition.plan, arm.architecture)
    tested = (cell for measure in RERUN_BY for cell in _tested(some, rest, measure))
    yield (*place, len(some), len(rest), *tested, Number(statistics.rates_differ(_solved(some), _solved(rest)), 3))


def _tested(some: pd.DataFrame, rest: pd.DataFrame, measure: Measure) -> tuple[Cell, Cell]:
    found = statistics.groups_differ(some[measure.column].tolist(), rest[measure.column].tolist())
    return Number(found.p, 3), Number(found.delta, 2)


def _solved(trials: pd.DataFrame) -> Share:
    return statistics.share_of(int(trials["outcome"].eq("solved").sum()), len(trials))
