"""Trials that a planted weakness breaks, diagnosed: is what was planted named, that and nothing else?

A trial counts if the agent without the weakness is unharmed on the same draws. With two weaknesses each has to matter: without
either the trial ends otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from bench.experiment.config import Config
from bench.experiment.matrix import Matrix, build_matrix
from bench.experiment.record import TrialRecord
from bench.models.simulated import SimulatedSettings
from bench.paths import PACKS
from bench.runtime import loop
from bench.runtime.events import Judged
from bench.studies.counterfactual.diagnose import Diagnosis, Rerun, diagnose, is_failed, rerun
from bench.studies.counterfactual.mends import MendedPart, Start
from bench.studies.counterfactual.rerun import Original, RerunArm
from bench.worlds.runtime.events import Stepped, ToolCalled
from diagnosis.weaknesses import MISTAKEN, UNHEARD, Mistaken, Plant, agent_with, parts_of

TRIALS = 20
"""The most trials of a weakness."""
PROVOKED = [
    {"point": "tool", "effect": "lost_ack", "tool": "*", "probability": 0.2},
    {"point": "tool", "effect": "second_writer", "tool": "*", "probability": 0.2},
    {"point": "tool", "effect": "error", "tool": "*", "probability": 0.1},
    {"point": "output", "effect": "wrong_value", "probability": 0.3},
]
"""The failures that provoke a weakness; the careful agent comes through most of them."""


@dataclass(frozen=True)
class ScoredTrial:
    diagnosis: Diagnosis
    planted: frozenset[MendedPart]
    last_rejected: frozenset[MendedPart]

    @property
    def is_exact(self) -> bool:
        return self.diagnosis.blamed == self.planted


def matrix_of(repetitions: int = 4, instances: int = 40) -> Matrix:
    """The careful agent's trials."""
    settings = Config.model_validate(
        {
            "name": "planted",
            "scenarios": ["contract_renewal"],
            "architectures": ["careful"],
            "architecture": {"careful": {"base": "state_machine", "remedies": True}},
            "models": ["m"],
            "model": {"m": {"kind": "simulated"}},
            "plans": ["provoked"],
            "plan": {"provoked": {"faults": PROVOKED}},
            "instances": instances,
            "repetitions": repetitions,
            "seed": 20261125,
        }
    )
    return build_matrix(settings, PACKS, "code")


def scored(matrix: Matrix, plants: tuple[Plant, ...], planted: frozenset[MendedPart], most: int) -> Iterator[ScoredTrial]:
    """Yield trials that these weaknesses break, diagnosed."""
    for original in islice(broken(matrix, plants, planted), most):
        diagnosis = loop.run(diagnose(original, agent_with(plants)))
        yield ScoredTrial(diagnosis, planted, frozenset({last_rejected(original.record)}))


def row(matrix: Matrix, name: str, plants: tuple[Plant, ...], most: int = TRIALS) -> str:
    """Return a weakness's row of the table. A harmless edit is not among what has to be named."""
    planted = parts_of([plant for plant in plants if plant != UNHEARD])
    trials = list(scored(matrix, plants, planted, most))
    named = (
        sum(each.is_exact for each in trials),
        sum(planted == {"proposer"} for _ in trials),
        sum(each.last_rejected == planted for each in trials),
    )
    cells = (name, " and ".join(sorted(planted)), *(f"{count} of {len(trials)}" for count in named))
    return f"| {' | '.join(cells)} |"


def broken(matrix: Matrix, plants: tuple[Plant, ...], planted: frozenset[MendedPart]) -> Iterator[Original]:
    """Yield the trials that these weaknesses break."""
    for spec in matrix.specs:
        arm = RerunArm(spec, replace(matrix, specs=(spec,)))
        if _run(arm, ()).entries:
            continue
        whole = _run(arm, plants)
        if not whole.entries or not is_failed(whole.result.record):
            continue
        others = [tuple(other for other in plants if other != plant) for plant in plants] if len(planted) > 1 else []
        if all(_run(arm, other).entries != whole.entries for other in others):
            yield Original(Path("planted"), whole.result.record, _arm(arm, plants))


def _arm(arm: RerunArm, plants: Sequence[Plant]) -> RerunArm:
    if MISTAKEN not in plants:
        return arm
    model = Mistaken("m", SimulatedSettings(), arm.matrix.scenarios)
    return RerunArm(arm.spec, replace(arm.matrix, models={"m": model}))


def _run(arm: RerunArm, plants: tuple[Plant, ...]) -> Rerun:
    return loop.run(rerun(_arm(arm, plants), agent_with(plants), frozenset(), Start(), arm.spec.plan))


def last_rejected(record: TrialRecord) -> MendedPart:
    """The baseline: whose the last event is that was rejected; the proposer's where none was."""
    for event in reversed(record.events):
        if isinstance(event, Judged) and not event.accepted:
            return "proposer"
        if isinstance(event, ToolCalled) and event.outcome in ("refused", "failed"):
            return "commit"
        if isinstance(event, Stepped) and event.why:
            return "pattern"
    return "proposer"
