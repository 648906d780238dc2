"""A trial as a trajectory: steps in order, each call of the model one of them, as the published form has it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from records import called, trial, write_with_texts

from bench.read.analysis.frames import Run, load_run
from bench.read.report.export_part import EXPORTS, export


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(config({"kind": "simulated", "failure_rate": 0.2}, plans=["none", "early"], repetitions=2), folder)
    return load_run(folder)


@pytest.fixture(scope="module")
def trajectories(recorded: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    paths = export(recorded, EXPORTS["atif"], tmp_path_factory.mktemp("out"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def test_each_trial_is_a_trajectory_whose_steps_count_from_one(recorded: Run, trajectories: dict[str, Any]) -> None:
    assert sorted(trajectories) == sorted(recorded.trials["trial"])
    for each, trajectory in trajectories.items():
        assert (trajectory["schema_version"], trajectory["trajectory_id"], trajectory["session_id"]) == (
            "ATIF-v1.7",
            each,
            recorded.name,
        )
        assert [step["step_id"] for step in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))
        assert trajectory["final_metrics"]["total_steps"] == len(trajectory["steps"])
        assert trajectory["agent"]["model_name"].endswith("(SIMULATED)")


def test_each_call_is_a_step_of_the_agent_with_its_tokens_and_its_faults(recorded: Run, trajectories: dict[str, Any]) -> None:
    steps = [step for trajectory in trajectories.values() for step in trajectory["steps"] if step["source"] == "agent"]
    assert len(steps) == len(recorded.calls)
    read = sum(trajectory["final_metrics"]["total_prompt_tokens"] for trajectory in trajectories.values())
    assert read == sum(step["metrics"]["prompt_tokens"] for step in steps) == recorded.calls["tokens_in"].sum()
    stages = [fault["stage"] for step in steps for fault in step["extra"]["faults"]]
    assert stages.count("delivered") == recorded.faults["delivered"].sum() > 0


def test_a_message_that_every_call_repeats_is_shown_once(trajectories: dict[str, Any]) -> None:
    for trajectory in trajectories.values():
        messages = [step["message"] for step in trajectory["steps"] if step["source"] != "agent"]
        assert messages and len(messages) == len(set(messages))


def test_the_published_models_of_the_form_take_every_trajectory(trajectories: dict[str, Any]) -> None:
    atif = pytest.importorskip("atif")
    for trajectory in trajectories.values():
        assert len(atif.Trajectory.model_validate(trajectory).steps) == len(trajectory["steps"])


def test_files_are_the_same_bytes_each_time(recorded: Run, tmp_path: Path) -> None:
    once, twice = (export(recorded, EXPORTS["atif"], tmp_path / name) for name in ("once", "twice"))
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in twice]


def test_a_trial_that_ended_in_an_error_says_so_and_a_call_that_reached_no_model_counts_as_none(tmp_path: Path) -> None:
    kept = replace(called(2, failure="rate_limited", tokens=(0, 0)), asked=False)
    record = trial(outcome="error", reason="timed out", events=[called(1), kept])
    run = write_with_texts(tmp_path / "run", [record], {"d1": "ask", "d2": "answer"})
    [path] = export(run, EXPORTS["atif"], tmp_path / "out")
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["notes"] == "This trial ended in an error: timed out"
    asked, refused = [step for step in written["steps"] if step["source"] == "agent"]
    assert (asked["llm_call_count"], refused["llm_call_count"]) == (1, 0) and "metrics" not in refused
    pytest.importorskip("atif").Trajectory.model_validate(written)
