"""Who orchestrates: patterns compared on damage and on solved trials, in each world and under each fault plan.

Arms are compared that differ in one thing: two patterns in the same form, or a pattern bare and with remedies. The unit is an
instance. Two comparisons with the same difference in every instance are copies and stand in one row. Two arms are told apart
where the interval of their difference lies on one side of 0 and p survives Holm's correction over all rows; for the others the
table names the instances that would decide. Tokens do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import pandas as pd

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.factors import ArmName, factors_between
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import holm, mean_of
from bench.read.claims.sample_size import pairs_for_the_family
from bench.read.render.cells import AdjustedP
from bench.read.render.drawing import Picture
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import Rises, rises
from bench.record.worlds.damage import DAMAGES

LEVEL = 0.05
OUTCOMES = {"damage": "damaged effects", "is_solved": "solved"}


@dataclass(frozen=True)
class PatternPair:
    """The first pattern less the second, in one row for all pairs of arms with the same difference in every instance.
    `needed`: instances that would decide if the truth were as measured."""

    scenario: str
    plan: str
    arms: tuple[str, ...]
    outcome: str
    risen: Rises
    needed: int | None = None
    p: float | None = None

    @property
    def differs(self) -> bool:
        return any(self.risen.by_instance.values())

    @property
    def is_told_apart(self) -> bool:
        contrast = self.risen.contrast
        return self.p is not None and self.p < LEVEL and (contrast.low or 0) * (contrast.high or 0) > 0


def pattern_pairs(run: Run) -> list[PatternPair]:
    """Return each two patterns by world, fault plan and outcome. Raise ResultsError if fewer than two acted in a world."""
    trials = _trials(run)
    names = [name for name in run.names("architecture") if (trials["architecture"] == name).any()]
    if len(names) < 2:
        raise ResultsError("needs two architectures that act in a world")
    by_copy: dict[tuple[object, ...], PatternPair] = {}
    for (scenario, plan, model), group in trials.groupby(["scenario", "plan", "model"], sort=False, observed=True):
        for first, second in combinations(names, 2):
            factors = factors_between(run, ArmName(first, str(model), str(plan)), ArmName(second, str(model), str(plan)))
            for outcome in OUTCOMES if len(factors) == 1 else ():
                risen = rises(group, outcome, "architecture", first, second, ["instance", "repetition", "architecture"])
                of_arms = f"{first} less {second}"
                copy = (scenario, plan, model, outcome, tuple(risen.by_instance.items()))
                before = by_copy[copy].arms if copy in by_copy else ()
                by_copy[copy] = PatternPair(str(scenario), str(plan), (*before, of_arms), outcome, risen)
    every = list(by_copy.values())
    adjusted = holm({place: each.risen.p for place, each in enumerate(every) if each.differs})
    return [replace(each, p=adjusted.get(place), needed=_needed(each.risen, len(adjusted))) for place, each in enumerate(every)]


def _trials(run: Run) -> pd.DataFrame:
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["lives"].notna()]
    return usable.assign(
        architecture=usable["architecture"].astype(str),
        damage=usable[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1).astype(float),
        is_solved=(usable["outcome"] == "solved").astype(float),
    )


def _needed(risen: Rises, family: int) -> int | None:
    values = list(risen.by_instance.values())
    return pairs_for_the_family(mean_of(values), max(1, family), LEVEL) if len(values) > 1 else None


NOTES = (
    "the first arm less the second, in the mean of a trial; arms that differ in one thing; pairs with the same difference in "
    "every instance are copies, and one row; 95% intervals are of resampled instances",
    "told apart: p < 0.05 by the sign-flip test over instances, after Holm's correction over all rows that differ anywhere",
    "to decide: the instances at which this difference would be found with a power of 80%, if the truth were as measured",
    "SIMULATED: no model answered; its mistakes are the fault plan's",
)


def tables(run: Run) -> Iterator[Table]:
    every = pattern_pairs(run)
    differ = [each for each in every if each.differs]
    apart, same = sum(each.is_told_apart for each in every), [each for each in every if not each.differs]
    columns = (
        TableColumn[PatternPair]("Scenario", lambda row: row.scenario),
        TableColumn[PatternPair]("Faults", lambda row: row.plan),
        TableColumn[PatternPair]("Arms", lambda row: "; ".join(row.arms)),
        TableColumn[PatternPair]("What", lambda row: OUTCOMES[row.outcome]),
        TableColumn[PatternPair]("Difference", lambda row: row.risen.contrast.cell()),
        TableColumn[PatternPair]("p (Holm)", lambda row: AdjustedP(row.p)),
        TableColumn[PatternPair]("Instances", lambda row: len(row.risen.by_instance)),
        TableColumn[PatternPair]("Verdict", lambda row: "told apart" if row.is_told_apart else "cannot be told apart"),
        TableColumn[PatternPair]("To decide", lambda row: "–" if row.is_told_apart else row.needed or "unknown"),
    )
    counts = (
        f"{len(differ)} different comparisons: {apart} told apart; beside them "
        f"{sum(len(each.arms) for each in same)} with no difference in any instance, which are not shown"
    )
    title = "Patterns told apart by damage or by solved trials (SIMULATED)"
    yield table_of("study-orchestration", title, columns, differ, (*NOTES, counts))


def pictures(_: Run) -> Iterator[Picture]:
    """Yield no figure."""
    yield from ()
