"""A run that is killed loses at most the trials in flight: resumed, it is as if nothing had happened."""

from __future__ import annotations

import dataclasses
import random
import time
from pathlib import Path

from commands import bench, start, workplace

from bench.experiment.record import TrialRecord
from bench.experiment.store import TRIALS, read_texts, read_trials

KILLS = 20


def timeless(folder: Path) -> dict[str, TrialRecord]:
    """The records by id, without the only thing in them that is really timed."""
    trials = list(read_trials(folder))
    assert len(trials) == len({trial.id for trial in trials})
    return {trial.id: dataclasses.replace(trial, framework_seconds=0.0) for trial in trials}


def test_killed_at_twenty_random_moments_a_run_ends_up_as_an_uninterrupted_one(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=700)
    results = tmp_path / "results"
    moments = random.Random(20)
    kills_in_mid_run = 0
    for _ in range(KILLS):
        size = (results / "killed" / TRIALS).stat().st_size if (results / "killed" / TRIALS).exists() else 0
        with start(tmp_path, "run", "configs/small.toml", "--name", "killed") as process:
            while process.poll() is None and _size(results / "killed" / TRIALS) <= size + 200:
                time.sleep(0.005)
            time.sleep(moments.uniform(0.0, 0.15))
            kills_in_mid_run += process.poll() is None
            process.kill()
    assert kills_in_mid_run == KILLS
    assert bench(tmp_path, "run", "configs/small.toml", "--name", "killed")[0] == 0
    assert bench(tmp_path, "run", "configs/small.toml", "--name", "whole")[0] == 0
    assert timeless(results / "killed") == timeless(results / "whole")
    assert read_texts(results / "killed") == read_texts(results / "whole")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
