"""Tables of trials in worlds as workflows, by arm: success by trial and by step, time for people, cost, and why steps fail."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pandas as pd

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import share_by_instance
from bench.read.render.cells import Estimate, Number, Rate
from bench.read.render.labels import arm_columns, each_arm
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart

MAX_REASONS = 2
"""The most reasons of a step's failures that are shown, the most frequent first."""


def workflow_tables(run: Run, arms: Arms) -> list[Table]:
    """Return a table of workflows and a table of their steps; no table if no trial has steps."""
    steps = run.steps
    with_steps = [arm for arm in each_arm(arms) if steps["trial"].isin(set(arm.usable["trial"])).any()]
    return [_workflows(run, with_steps), _steps(run, with_steps)] if with_steps else []


def _steps_of(run: Run, arm: Arm) -> pd.DataFrame:
    return run.steps[run.steps["trial"].isin(set(arm.usable["trial"]))]


def _workflows(run: Run, arms: list[Arm]) -> Table:
    """Return the table of success, time to completion and cost by arm."""

    def mean_column(name: str, digits: int = 0) -> TableColumn[Arm]:
        return TableColumn(TITLES[name], lambda arm: Estimate(arm.mean(name), digits))

    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(arm.usable)),
        TableColumn("Solved", lambda arm: _share(arm.usable, arm.usable["outcome"].eq("solved"))),
        TableColumn("Steps done", lambda arm: _share(_steps_of(run, arm), _steps_of(run, arm)["done"])),
        *map(mean_column, ("completion_minutes", "minutes_at_work", "waiting_for_people_minutes")),
        mean_column("tool_retries", 1),
        mean_column("cost", 5),
    )
    notes = (
        "shares are k/N with a 95% interval that clusters by instance; the other numbers are means by trial ± sd, with theirs",
        "to completion: world time from the beginning to the end of the last step; at work: of it, that in which some step was "
        "in hand, so that the calendar's waiting between two steps is left out; for people: of it, until an answer came",
        "a cost without prices in the config is unknown",
    )
    return table_of("world_workflow", "Workflows: success, time to completion, cost of a task", columns, arms, notes)


TITLES = {
    "completion_minutes": "Minutes to completion",
    "minutes_at_work": "Minutes at work",
    "waiting_for_people_minutes": "Minutes for people",
    "tool_retries": "Tool retries",
    "cost": "Cost $ of a task",
}


def _share(rows: pd.DataFrame, holds: pd.Series[bool]) -> Rate:
    """Return the share of rows for which `holds` is true, with an interval that clusters by instance."""
    return Rate(share_by_instance(rows["instance"].astype(str).tolist(), holds.astype(bool).tolist()))


def _steps(run: Run, arms: list[Arm]) -> Table:
    """Return the table of steps by arm: how often each is done, and why not."""
    columns = (
        *(column.of(lambda row: row.arm) for column in arm_columns(run)),
        TableColumn[StepOfArm]("Step", lambda row: row.name),
        TableColumn[StepOfArm]("Done, of those that began", lambda row: _share(row.tries, row.tries["done"])),
        TableColumn[StepOfArm]("Attempts", lambda row: Number(float(row.tries["attempts"].mean()), 2)),
        TableColumn[StepOfArm]("Why not", _why_not),
    )
    rows = (
        StepOfArm(arm, str(name), tries)
        for arm in arms
        for name, tries in _steps_of(run, arm).groupby("step", sort=False, observed=True)
    )
    notes = ("a step that nothing began is not counted; attempts are the mean by step, and reasons say how often",)
    return table_of("world_steps", "Steps: how often each is done, and why not", columns, rows, notes)


class StepOfArm(NamedTuple):
    """A step in an arm's trials, with a row for each trial in which it began."""

    arm: Arm
    name: str
    tries: pd.DataFrame


def _why_not(step: StepOfArm) -> str:
    """Return the most frequent reasons why a step failed, each with its count."""
    reasons = Counter(step.tries.loc[step.tries["why"].ne(""), "why"]).most_common(MAX_REASONS)
    return ", ".join(f"{reason} {times}" for reason, times in reasons) or "–"


PARTS = (TablePart("world_workflow", lambda of: workflow_tables(of.run, of.arms), "world", concerns=("steps",)),)
