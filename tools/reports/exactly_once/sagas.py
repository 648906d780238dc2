"""A run on the small world of the tests whose sagas fall and whose flights are struck, and what it shows of two sentences about
the runtime alone. It has both in every fault plan, and `contract_renewal` has neither often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from exactly_once.crashes import ROOT, lived

from bench.read.analysis.arms import UNUSABLE, instances_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Share, share_by_instance
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
SAID = {
    "effects are taken back in reverse order": ("composition", "scatter_gather_saga_remedied", "composition_remedied"),
    "what is stale is refused": ("state_machine", "state_machine_remedied", "composition_remedied"),
}
"""What arXiv 2605.20173 says of sagas and of state machines -> the architectures that are put to the test."""


class Otherwise(NamedTuple):
    """The trials that put a sentence to the test, and how many of them came out otherwise."""

    said: str
    architecture: str
    share: Share


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
    """Run the experiment into a new folder, and return the run."""
    return lived(matrix_of_sagas(instances), folder)


def otherwise(run: Run) -> Iterator[Otherwise]:
    """Yield for each sentence the trials that put it to the test, and the share of them that came out otherwise."""
    trials = run.trials[~run.trials["outcome"].isin(UNUSABLE)]
    through = trials["damage_stale"].fillna(0)
    columns = (
        (trials["compensated_pairs"], trials["compensated_out_of_order"]),
        (trials["stale_refused"] + through, through),
    )
    for (said, names), (tested, differs) in zip(SAID.items(), columns, strict=True):
        for name in names:
            chosen = trials["architecture"].eq(name) & tested.gt(0)
            held = differs[chosen].gt(0).tolist()
            yield Otherwise(said, name, share_by_instance(instances_of(trials[chosen]), held))
