"""Written code: what of a line and of a test that a model writes is right, and how many mutants its tests kill.

The mutation score of a trial is a part of its grade (`mutants_killed`): of the mutants of the right module, the share on which
the test fails that stands at the end. Where no test stands, and where a trial was given up, it is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import mean_of, share_of
from bench.read.render.cells import Estimate, Rate
from bench.read.render.drawing import Picture
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.reading import read_trials
from bench.record.record import latest

CHANGE, TEST = "service_upgrade:write_change", "service_upgrade:write_test"
KILLED = "mutants_killed"
NOTES = (
    "a trial is a case; shares have Wilson's 95% interval, means their interval over cases",
    "damaged: trials in which an effect was lost, doubled, unauthorised, left standing, or stale",
    "mutation score: of the mutants of the right module, the share on which the test fails that stands at the end; 0 where "
    "none stands",
)


def scores(run: Run) -> Mapping[str, float]:
    """Return trial -> the mutation score of its test. Raises ResultsError if the run's folder is not known."""
    if not isinstance(run.folder, Path):
        raise ResultsError("needs a run as it was recorded, with its grades")
    graded = [record for record in latest(read_trials(run.folder)) if record.grade]
    return {record.id: record.grade.parts[KILLED] for record in graded if record.grade and KILLED in record.grade.parts}


def tables(run: Run) -> Iterator[Table]:
    if not {CHANGE, TEST} & set(run.names("scenario")):
        raise ResultsError(f"needs trials of {CHANGE} or {TEST}")
    killed = scores(run)
    harm = [name for name in run.trials.columns if name.startswith("damage_")]

    def score(arm: Arm) -> Estimate | str:
        if arm.condition.scenario != TEST:
            return "–"
        return Estimate(mean_of([killed.get(trial, 0.0) for trial in arm.graded["trial"]], "score"), 2)

    def damaged(arm: Arm) -> Rate:
        return Rate(share_of(int((arm.graded[harm].fillna(0) > 0).any(axis=1).sum()), len(arm.graded)))

    columns = (
        TableColumn[Arm]("Written", lambda arm: "a line" if arm.condition.scenario == CHANGE else "a test"),
        TableColumn[Arm]("Model", lambda arm: model_label(run, arm.condition.model)),
        TableColumn[Arm]("Plan", lambda arm: arm.condition.plan.replace("_", " ")),
        TableColumn[Arm]("Pattern", lambda arm: arm.architecture.replace("_", " ")),
        TableColumn[Arm]("Solved", lambda arm: Rate(share_of(int((arm.graded["outcome"] == "solved").sum()), len(arm.graded)))),
        TableColumn[Arm]("Damaged", damaged),
        TableColumn[Arm]("Mutation score", score),
        TableColumn[Arm]("Calls", lambda arm: Estimate(arm.mean("calls"), 1)),
    )
    arms = [arm for by_name in arms_of(run).values() for arm in by_name.values()]
    yield table_of("study-written-code", "Code that a model writes", columns, arms, NOTES)


def pictures(_: Run) -> Iterator[Picture]:
    """Return nothing: a few cases need only a table."""
    return iter(())
