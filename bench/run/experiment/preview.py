"""Estimate the calls, tokens and cost of an experiment before it runs: one repetition of each arm runs with the reference's
answers in place of the model's.

A command is not started, since it could do other things than asking its model.
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

COMMAND_STAND_IN, MAX_REHEARSED_TRIALS = "state_machine", 20
"""The pattern that stands in for commands, and the most trials in which it does."""


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
    rehearsal = replace(matrix, models={name: _reference_model(name, matrix) for name in matrix.models})
    tariff = Tariff.of(matrix.models)
    for arm, records in groupby(run(_first_repetition(rehearsal)), key=_arm):
        yield _preview(arm, list(records), matrix.config.repetitions, tariff)
    commands = Counter(
        (spec.scenario, spec.architecture, spec.model, spec.plan.name) for spec in matrix.specs if _is_command(spec, matrix)
    )
    for key, trials in commands.items():
        yield ArmPreview(*key, trials, None, None, None)


def expected_starts(matrix: Matrix) -> float | None:
    """Return the expected number of starts of a command in one trial: the first start, and one more after each kill. It is None
    if a world has no procedure.

    In some of the trials, the pattern COMMAND_STAND_IN runs in place of the command: the same faults kill it. The pattern needs
    a procedure."""
    commands = [spec for spec in matrix.specs if _is_command(spec, matrix)]
    worlds = [matrix.arm(spec).scenario.environment for spec in commands]
    if any(not (world and world.procedure) for world in worlds):
        return None
    sample = commands[:: math.ceil(len(commands) / MAX_REHEARSED_TRIALS)]
    rehearsal = replace(matrix, models={name: _reference_model(name, matrix) for name in matrix.models})
    records = run(_rehearse(sample, rehearsal.with_architecture(load_architecture(ARCHITECTURES.named(COMMAND_STAND_IN)))))
    if any(record.outcome == "error" for record in records):
        return None
    return 1 + sum(isinstance(event, ProcessDied) for record in records for event in record.events) / len(records)


async def _rehearse(specs: Sequence[TrialSpec], matrix: Matrix) -> list[TrialRecord]:
    """Run trials without recording them, and return their records."""
    graders = Graders()
    return [(await run_trial(spec, matrix, Slots(), graders)).record for spec in specs]


def _reference_model(name: str, matrix: Matrix) -> Model:
    """Return a simulated model under this model's name that answers with the references. A routed model routes to such
    models."""
    entry = matrix.config.model[name]
    if isinstance(entry, RoutedEntry):
        return RoutedModel(name, entry, {target: _reference_model(target, matrix) for target in entry.targets})
    return SimulatedModel(name, SimulatedSettings(wrapping=False), matrix.scenarios)


async def _first_repetition(matrix: Matrix) -> list[TrialRecord]:
    """Run the first repetition of each arm, and return the records by arm."""
    specs = [spec for spec in matrix.specs if spec.repetition == 1 and not _is_command(spec, matrix)]
    return sorted(await _rehearse(specs, matrix), key=_arm)


def lines_on_missing_replies(matrix: Matrix, graders: Mapping[str, Graders]) -> Iterator[str]:
    """Yield a line for each arm in which a recorded model lacks replies. Its trials run without being recorded; a command is
    not started. `graders` holds the graders by model, as `bench.run.experiment.untrusted.permission` gives them."""
    replaying = [
        name for name, model in matrix.models.items() if any(isinstance(part, RecordedModel) for part in answerers(model))
    ]
    specs = [spec for spec in matrix.specs if spec.model in replaying and not _is_command(spec, matrix)]
    unanswered = Counter(_arm(record) for record in run(_unanswered_trials(specs, matrix, graders)))
    planned = Counter((spec.scenario, spec.plan.name, spec.model, spec.architecture) for spec in specs)
    for arm, trials in planned.items():
        if unanswered[arm]:
            scenario, plan, model, architecture = arm
            place = f"{architecture} on {scenario}, plan {plan}, {model}"
            yield f"{unanswered[arm]} of {trials} trials ask what the recording lacks: {place}"
    if unanswered.total():
        yield "Each of these would end in an error. Only the model itself can answer them: run the config without recorded:"
    elif specs:
        yield f"The recording has each reply that these {len(specs)} trials ask for."


async def _unanswered_trials(specs: Sequence[TrialSpec], matrix: Matrix, graders: Mapping[str, Graders]) -> list[TrialRecord]:
    """Run trials of recorded models. Return the records of the trials whose recording lacks a reply."""
    records = [(await run_trial(spec, matrix, Slots(), graders[spec.model])).record for spec in specs]
    return [record for record in records if record.outcome == "error" and record.reason.startswith(NotRecorded.kind)]


def _is_command(spec: TrialSpec, matrix: Matrix) -> bool:
    """Return whether a user's command works in the trial."""
    return matrix.architectures[spec.architecture].is_command


def _arm(record: TrialRecord) -> tuple[str, str, str, str]:
    """Return the arm of a trial: (scenario, plan, model, architecture)."""
    return record.scenario, record.plan, record.model, record.architecture


def _preview(arm: tuple[str, str, str, str], records: Sequence[TrialRecord], repetitions: int, tariff: Tariff) -> ArmPreview:
    """Return the preview of an arm: each repetition takes as much as the first."""
    scenario, plan, model, architecture = arm
    calls = sum(isinstance(event, Called) for record in records for event in record.events)
    tokens = sum(record.tokens for record in records)
    costs = [tariff.cost(record) for record in records]
    cost = None if None in costs else sum(cost or 0.0 for cost in costs) * repetitions
    names = (scenario, architecture, model, plan)
    return ArmPreview(*names, len(records) * repetitions, calls * repetitions, tokens * repetitions, cost)
