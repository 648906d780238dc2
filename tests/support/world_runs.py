"""A run in a small world: two agents, one of which keeps notes, that crash, lose answers, and are left in peace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from little_worlds import ROOT
from study_runs import run_of_matrix

from bench.read.analysis.frames import Run
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix

VALUES: dict[str, Any] = {
    "name": "test",
    "scenarios": ["trips/all"],
    "architectures": ["state_machine", "kept"],
    "models": ["m"],
    "plans": ["none", "crash", "lost"],
    "repetitions": 1,
    "seed": 7,
    "model": {"m": {"kind": "simulated"}},
    "plan": {
        "crash": {"faults": [{"point": "process", "effect": "unacknowledged", "tool": "cancel_flight", "attempts": [1]}]},
        "lost": {"faults": [{"point": "tool", "effect": "lost_ack", "tool": "*", "attempts": [1]}]},
    },
    "architecture": {"kept": {"base": "state_machine", "remedies": True}},
}


def world_run(folder: Path) -> Run:
    return run_of_matrix(folder, build_matrix(Config.model_validate(VALUES), [ROOT], "code"))
