"""What an experiment will take, before it is run: each arm runs once with the reference's answers in the model's place.

A command is not started: nobody knows what it does beside asking its model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from bench.architectures.registry import OUTSIDE
from bench.experiment.cost import Tariff
from bench.experiment.grading import Graders
from bench.experiment.matrix import Matrix, TrialSpec
from bench.experiment.model_entries import RoutedEntry
from bench.experiment.record import TrialRecord
from bench.experiment.trial import run_trial
from bench.models.base import Model
from bench.models.routed import RoutedModel
from bench.models.simulated import SimulatedModel, SimulatedSettings
from bench.runtime.events import Called
from bench.runtime.loop import run
from bench.runtime.slots import Slots


@dataclass(frozen=True)
class ArmPreview:
    """What all repetitions of one arm will take, by our tokenizer. `cost` is None if the model has no prices; all three numbers
    are None for a command."""

    scenario: str
    architecture: str
    model: str
    plan: str
    trials: int
    calls: int | None
    tokens: int | None
    cost: float | None


def preview(matrix: Matrix) -> Iterator[ArmPreview]:
    """Yield one row for each arm. No model is asked, and no command is started."""
    rehearsal = replace(matrix, models={name: _stand_in(name, matrix) for name in matrix.models})
    tariff = Tariff.of(matrix.models)
    for arm, records in groupby(run(_first_repetition(rehearsal)), key=_arm):
        yield _preview(arm, list(records), matrix.config.repetitions, tariff)
    commands = Counter(
        (spec.scenario, spec.architecture, spec.model, spec.plan.name) for spec in matrix.specs if _is_command(spec, matrix)
    )
    for named, trials in commands.items():
        yield ArmPreview(*named, trials, None, None, None)


def _stand_in(name: str, matrix: Matrix) -> Model:
    """Return a model that answers with the references in this model's name; a routed model passes on to such models."""
    entry = matrix.config.model[name]
    if isinstance(entry, RoutedEntry):
        return RoutedModel(name, entry, {target: _stand_in(target, matrix) for target in entry.targets})
    return SimulatedModel(name, SimulatedSettings(wrapping=False), matrix.scenarios)


async def _first_repetition(matrix: Matrix) -> list[TrialRecord]:
    graders = Graders()
    specs = [spec for spec in matrix.specs if spec.repetition == 1 and not _is_command(spec, matrix)]
    records = [(await run_trial(spec, matrix, Slots(), graders)).record for spec in specs]
    return sorted(records, key=_arm)


def _is_command(spec: TrialSpec, matrix: Matrix) -> bool:
    return matrix.arm(spec).architecture.part is OUTSIDE["command"]


def _arm(record: TrialRecord) -> tuple[str, str, str, str]:
    return record.scenario, record.plan, record.model, record.architecture


def _preview(arm: tuple[str, str, str, str], records: Sequence[TrialRecord], repetitions: int, tariff: Tariff) -> ArmPreview:
    """Return the preview of an arm: each repetition takes what the instances of the first take."""
    scenario, plan, model, architecture = arm
    calls = sum(isinstance(event, Called) for record in records for event in record.events)
    tokens = sum(record.tokens for record in records)
    costs = [tariff.cost(record) for record in records]
    cost = None if None in costs else sum(cost or 0.0 for cost in costs) * repetitions
    named = (scenario, architecture, model, plan)
    return ArmPreview(*named, len(records) * repetitions, calls * repetitions, tokens * repetitions, cost)
