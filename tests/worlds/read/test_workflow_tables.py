"""Trials in worlds as workflows: success by step, time for people, and why steps fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from records import run_of, trial
from world_runs import world_run

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.worlds.read.workflow_tables import workflow_tables


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return world_run(tmp_path_factory.mktemp("workflows"))


def rows(run: Run, name: str) -> list[dict[str, Any]]:
    [table] = [table for table in workflow_tables(run, arms_of(run)) if table.name == name]
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_each_arm_says_its_success_by_trial_and_by_step(run: Run) -> None:
    result = {(row["Architecture"], row["Fault plan"]): row for row in rows(run, "world_workflow")}
    assert set(result) == {(name, plan) for name in ("state_machine", "kept") for plan in ("none", "crash", "lost")}
    steps = run.steps[(run.steps["architecture"] == "kept") & (run.steps["plan"] == "none")]
    share = result["kept", "none"]["Steps done"].share
    assert (share.k, share.n) == (steps["done"].sum(), len(steps))
    of_arm = run.trials[(run.trials["architecture"] == "kept") & (run.trials["plan"] == "none")]
    [trial_of_arm] = of_arm.to_dict("records")
    completion, at_work, for_people = (
        result["kept", "none"][f"Minutes {what}"].mean.mean for what in ("to completion", "at work", "for people")
    )
    assert for_people == trial_of_arm["waiting_for_people_minutes"] > 0
    assert (completion, at_work) == (trial_of_arm["completion_minutes"], trial_of_arm["minutes_at_work"])
    assert for_people <= at_work <= min(completion, steps["minutes"].sum())


def test_each_step_says_why_it_was_not_done(run: Run) -> None:
    result = [row for row in rows(run, "world_steps") if (row["Architecture"], row["Fault plan"]) == ("kept", "none")]
    failed = {row["Step"]: row["Why not"] for row in result if row["Done, of those that began"].share.k == 0}
    steps = run.steps[(run.steps["architecture"] == "kept") & (run.steps["plan"] == "none") & ~run.steps["done"]]
    assert failed == {step: f"{why} 1" for step, why in zip(steps["step"], steps["why"], strict=True)} and failed


def test_a_run_without_a_world_has_no_workflows(tmp_path: Path) -> None:
    plain = run_of(tmp_path / "run", [trial()])
    assert workflow_tables(plain, arms_of(plain)) == []
