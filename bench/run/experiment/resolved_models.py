"""Make the models that a config names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.common.errors import BenchError, ConfigError, nearest
from bench.common.paths import folder_of
from bench.common.raised import type_and_message
from bench.common.registry import attribute_at
from bench.run.experiment.arm import ResolvedArchitecture
from bench.run.experiment.config import Config
from bench.run.experiment.model_entries import MODELS, RoutedEntry
from bench.run.experiment.recording import load_recording, responses_before
from bench.run.models.bank import Bank
from bench.run.models.base import Model
from bench.run.models.erring import Learning
from bench.run.models.making import Making
from bench.run.models.recording import Recording
from bench.run.packs import find_packs, load_pack, missing_data
from bench.run.packs.environments import ENVIRONMENTS
from bench.scenario import Scenario


def refuse_unknown_routes(config: Config, scenarios: Mapping[str, Scenario], packs: Sequence[Path]) -> None:
    """Raise ConfigError for a route of an unknown subtask. The subtask can be in a pack that this run leaves out, so other
    packs are searched if necessary."""
    routed = {name: entry for name in config.models if isinstance(entry := config.model[name], RoutedEntry)}
    subtask_names = {subtask.name for scenario in scenarios.values() for subtask in scenario.task.subtasks}
    if any(set(entry.subtasks) - subtask_names for entry in routed.values()):
        available = [pack for pack in find_packs(packs) if not missing_data(pack, packs)]
        subtask_names |= {subtask.name for pack in available for subtask in load_pack(pack, packs).task.subtasks}
    for name, entry in routed.items():
        for subtask in entry.subtasks:
            if subtask not in subtask_names:
                raise ConfigError(f"model '{name}': no scenario has a subtask '{subtask}'; {nearest(subtask, subtask_names)}")


def resolve_models(
    config: Config, scenarios: Mapping[str, Scenario], architectures: Iterable[ResolvedArchitecture]
) -> dict[str, Model]:
    """Return the models that the config runs, by name. A model to which several models route requests is made only once."""
    command = next((architecture.name for architecture in architectures if architecture.is_command), "")

    def recording(run: Path, model: str, concurrency: int | None) -> tuple[Recording, dict[str, object]]:
        return load_recording(run, model, config.seed, config.repetitions, concurrency)

    def bank(name: str) -> Bank:
        """Return the bank of the run with this name. Raises ConfigError if a command could not use it."""
        worlds = [scenario for scenario in scenarios.values() if scenario.environment]
        loaded: Bank = banks().load_bank(folder_of(name), worlds)
        if command:
            _refuse_without_procedure(command, worlds)
        return loaded

    def learning(name: str) -> Learning:
        loaded: Learning = banks().load_learning(folder_of(name))
        return loaded

    def banks() -> Any:
        return attribute_at(next(part.bank for part in ENVIRONMENTS if part.bank))

    def make(name: str) -> Model:
        """Make the model with this name, after the models to which it routes requests."""
        entry = config.model[name]
        part = MODELS[entry.kind]
        others = {other: models.get(other) or make(other) for other in entry.passes_on_to}
        making = Making(name, config.format_of(name), scenarios, others, recording, responses_before, bank, learning)
        try:
            models[name] = part.load(part.path)(entry, making)
        except Exception as error:
            if isinstance(error, BenchError) or not part.package:
                raise
            raise ConfigError(f"model '{name}' cannot be made: {part.package}: {type_and_message(error)}") from error
        return models[name]

    models: dict[str, Model] = {}
    return {name: models.get(name) or make(name) for name in config.models}


def _refuse_without_procedure(command: str, worlds: Iterable[Scenario]) -> None:
    """Raise ConfigError for a world without a procedure: a model that a command asks for tool calls can judge only within a
    procedure."""
    for world in worlds:
        if not (world.environment and world.environment.procedure and world.environment.right):
            problem = f"'{command}' is a command, and scenario '{world.name}' has no `procedure` that it could judge in"
            raise ConfigError(f"{problem}, or no `right`; leave the model's `bank` out, or take the command out")
