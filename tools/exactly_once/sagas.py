"""A run on the small world of the tests whose sagas fall and whose flights are struck: what the two claims about the runtime
alone are judged by. It has both in every fault plan, and `contract_renewal` has neither often."""

from __future__ import annotations

from pathlib import Path

from exactly_once.crashes import ROOT, lived

from bench.read.analysis.frames import Run
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix

WORLDS = ROOT / "tests" / "support" / "worlds"
BASES = ("scatter_gather_saga", "state_machine", "composition")
PLANS = {
    "slow_payment": {"point": "tool", "effect": "slow", "tool": "pay", "attempts": [1], "minutes": 3 * 24 * 60},
    "undo_fails": {"point": "tool", "effect": "error", "tool": "cancel_hotel", "attempts": [1, 2]},
    "dies": {"point": "process", "effect": "unrecorded", "tool": "*", "probability": 0.3},
}


def matrix_of_sagas(instances: int) -> Matrix:
    remedied = {f"{name}_remedied": {"base": name, "remedies": True} for name in BASES}
    values = {
        "name": "sagas",
        "scenarios": ["trips:hard"],
        "architectures": [*BASES, *remedied],
        "models": ["simulated"],
        "plans": ["none", *PLANS],
        "instances": instances,
        "repetitions": 1,
        "seed": 20260515,
        "model": {"simulated": {"kind": "simulated"}},
        "plan": {name: {"faults": [fault]} for name, fault in PLANS.items()},
        "architecture": remedied,
    }
    return build_matrix(Config.model_validate(values), [WORLDS], our_codebase().digest)


def sagas(folder: Path, instances: int = 80) -> Run:
    """That run, read; its folder is new."""
    return lived(matrix_of_sagas(instances), folder)
