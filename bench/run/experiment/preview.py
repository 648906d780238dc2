"""Estimate the calls, tokens and cost of an experiment before it runs: one repetition of each arm runs with the reference's
answers in place of the model's.

A command is not started: nobody knows what it does beside asking its model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from bench.common.errors import NotRecorded
from bench.record.cost import Tariff
from bench.record.events import Called
from bench.record.record import TrialRecord
from bench.record.world_events import ProcessDied
from bench.run.architectures.registry import ARCHITECTURES, load_architecture
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, TrialSpec
from bench.run.experiment.model_entries import RoutedEntry
from bench.run.experiment.trial import run_trial
from bench.run.models.base import Model
from bench.run.models.recorded import RecordedModel
from bench.run.models.routed import RoutedModel, answerers
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots

STAND_IN, REHEARSED = "state_machine", 20
"""The pattern that stands in for commands, and in how many trials at most."""


@dataclass(frozen=True)
class ArmPreview:
    """The calls, tokens and cost that all repetitions of one arm will take, by our tokenizer. `cost` is None if the model has
    no prices; all three numbers are None for a command."""

    scenario: str
    architecture: str
    model: str
    plan: str
    trials: int
    calls: int | None
    tokens: int | None
    cost: float | None


def preview(matrix: Matrix) -> Iterator[ArmPreview]:
    """Yield the preview of each arm. No model is asked, and no command is started."""
    rehearsal = replace(matrix, models={name: _stand_in(name, matrix) for name in matrix.models})
    tariff = Tariff.of(matrix.models)
    for arm, records in groupby(run(_first_repetition(rehearsal)), key=_arm):
        yield _preview(arm, list(records), matrix.config.repetitions, tariff)
    commands = Counter(
        (spec.scenario, spec.architecture, spec.model, spec.plan.name) for spec in matrix.specs if _is_command(spec, matrix)
    )
    for key, trials in commands.items():
        yield ArmPreview(*key, trials, None, None, None)


def expected_starts(matrix: Matrix) -> float | None:
    """Return the expected number of starts of a command in one trial: the first start, and one more after each kill.

    A pattern that is killed at the same faults stands in for the command, in some of the trials. None if a world has
    no procedure by which the pattern works."""
    commands = [spec for spec in matrix.specs if _is_command(spec, matrix)]
    if any(not (world and world.procedure) for world in (matrix.arm(spec).scenario.environment for spec in commands)):
        return None
    sample = commands[:: math.ceil(len(commands) / REHEARSED)]
    rehearsal = replace(matrix, models={name: _stand_in(name, matrix) for name in matrix.models})
    records = run(_rehearse(sample, rehearsal.with_architecture(load_architecture(ARCHITECTURES.named(STAND_IN)))))
    if any(record.outcome == "error" for record in records):
        return None
    return 1 + sum(isinstance(event, ProcessDied) for record in records for event in record.events) / len(records)


async def _rehearse(specs: Sequence[TrialSpec], matrix: Matrix) -> list[TrialRecord]:
    """Run trials without recording them, and return their records."""
    graders = Graders()
    return [(await run_trial(spec, matrix, Slots(), graders)).record for spec in specs]


def _stand_in(name: str, matrix: Matrix) -> Model:
    """Return a simulated model that answers with the references under this model's name. A routed model routes to stand-ins."""
    entry = matrix.config.model[name]
    if isinstance(entry, RoutedEntry):
        return RoutedModel(name, entry, {target: _stand_in(target, matrix) for target in entry.targets})
    return SimulatedModel(name, SimulatedSettings(wrapping=False), matrix.scenarios)


async def _first_repetition(matrix: Matrix) -> list[TrialRecord]:
    """Run the first repetition of each arm, and return the records by arm."""
    specs = [spec for spec in matrix.specs if spec.repetition == 1 and not _is_command(spec, matrix)]
    return sorted(await _rehearse(specs, matrix), key=_arm)


def lines_on_missing_replies(matrix: Matrix, graders: Mapping[str, Graders]) -> Iterator[str]:
    """Yield a line for each arm in which a recorded model lacks replies. Its trials run without being recorded; a command is
    not started. `graders` holds the graders by model, as `bench.run.experiment.untrusted.permission` gives them."""
    replays = [name for name, model in matrix.models.items() if any(map(_is_recorded, answerers(model)))]
    specs = [spec for spec in matrix.specs if spec.model in replays and not _is_command(spec, matrix)]
    lacking = Counter(_arm(record) for record in run(_not_answered(specs, matrix, graders)))
    planned = Counter((spec.scenario, spec.plan.name, spec.model, spec.architecture) for spec in specs)
    for arm, trials in planned.items():
        if lacking[arm]:
            scenario, plan, model, architecture = arm
            place = f"{architecture} on {scenario}, plan {plan}, {model}"
            yield f"{lacking[arm]} of {trials} trials ask what the recording lacks: {place}"
    if lacking.total():
        yield "Each of these would end in an error. Only the model itself can answer them: run the config without recorded:"
    elif specs:
        yield f"The recording has each reply that these {len(specs)} trials ask for."


async def _not_answered(specs: Sequence[TrialSpec], matrix: Matrix, graders: Mapping[str, Graders]) -> list[TrialRecord]:
    """Run trials of recorded models, and return the records of those that lack a reply."""
    records = [(await run_trial(spec, matrix, Slots(), graders[spec.model])).record for spec in specs]
    return [record for record in records if record.outcome == "error" and record.reason.startswith(NotRecorded.kind)]


def _is_recorded(model: Model) -> bool:
    return isinstance(model, RecordedModel)


def _is_command(spec: TrialSpec, matrix: Matrix) -> bool:
    return matrix.architectures[spec.architecture].is_command


def _arm(record: TrialRecord) -> tuple[str, str, str, str]:
    return record.scenario, record.plan, record.model, record.architecture


def _preview(arm: tuple[str, str, str, str], records: Sequence[TrialRecord], repetitions: int, tariff: Tariff) -> ArmPreview:
    """Return the preview of an arm: each repetition takes as much as the first."""
    scenario, plan, model, architecture = arm
    calls = sum(isinstance(event, Called) for record in records for event in record.events)
    tokens = sum(record.tokens for record in records)
    costs = [tariff.cost(record) for record in records]
    cost = None if None in costs else sum(cost or 0.0 for cost in costs) * repetitions
    named = (scenario, architecture, model, plan)
    return ArmPreview(*named, len(records) * repetitions, calls * repetitions, tokens * repetitions, cost)
