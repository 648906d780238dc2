"""The models that a config names, made ready to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.architectures.registry import COMMAND
from bench.errors import ConfigError, nearest
from bench.experiment.arm import ResolvedArchitecture
from bench.experiment.bank import load_bank
from bench.experiment.config import Config
from bench.experiment.model_entries import OpenAIEntry, RecordedEntry, RoutedEntry
from bench.experiment.recording import load_recording, responses_before
from bench.models.base import Model
from bench.models.cached import CachedModel
from bench.models.recorded import RecordedModel
from bench.models.routed import RoutedModel
from bench.models.simulated import SimulatedModel
from bench.packs import find_packs, lacks, load_pack
from bench.paths import folder_of
from bench.scenario import Scenario


def refuse_unknown_routes(config: Config, scenarios: Mapping[str, Scenario], packs: Sequence[Path]) -> None:
    """A route may be for a scenario that this run leaves out, so the other packs are looked into as well, but only then."""
    routed = {name: entry for name in config.models if isinstance(entry := config.model[name], RoutedEntry)}
    known = {subtask.name for scenario in scenarios.values() for subtask in scenario.task.subtasks}
    if any(set(entry.subtasks) - known for entry in routed.values()):
        available = [pack for pack in find_packs(packs) if not lacks(pack, packs)]
        known |= {subtask.name for pack in available for subtask in load_pack(pack, packs).task.subtasks}
    for name, entry in routed.items():
        for subtask in entry.subtasks:
            if subtask not in known:
                raise ConfigError(f"model '{name}': no scenario has a subtask '{subtask}'; {nearest(subtask, known)}")


def resolve_models(
    config: Config, scenarios: Mapping[str, Scenario], architectures: Iterable[ResolvedArchitecture]
) -> dict[str, Model]:
    """Each model once, whether the config runs it, another one passes requests on to it, or both."""
    command = next((one.name for one in architectures if one.part is COMMAND), "")
    routed = {name: entry for name in config.models if isinstance(entry := config.model[name], RoutedEntry)}
    own = dict.fromkeys(name for name in config.models if name not in routed)
    targets = dict.fromkeys(target for entry in routed.values() for target in entry.targets)
    made = {name: _model(name, config, scenarios, command) for name in own | targets}
    return {name: RoutedModel(name, routed[name], made) if name in routed else made[name] for name in config.models}


def _model(name: str, config: Config, scenarios: Mapping[str, Scenario], command: str) -> Model:
    """A model that answers itself."""
    entry = config.model[name]
    if isinstance(entry, OpenAIEntry):
        from bench.models.openai import OpenAIModel  # noqa: PLC0415  openai is slow to import, and most commands ask no endpoint

        held = entry.response_format or "json_schema" if config.format_of(name) == "schema" else None
        model = OpenAIModel(name, entry.model_copy(update={"response_format": held}))
        return CachedModel(model, entry.cache, *responses_before(entry.cache_from, model.parameters))
    if isinstance(entry, RecordedEntry):
        return _recorded(name, entry, config)
    if isinstance(entry, RoutedEntry):
        raise ConfigError(f"model '{name}' passes requests on and cannot be passed any")
    if not entry.bank:
        return SimulatedModel(name, entry, scenarios)
    worlds = [one for one in scenarios.values() if one.environment]
    bank = load_bank(folder_of(entry.bank), worlds)
    if command:
        _refuse_without_procedure(name, command, worlds)
    return SimulatedModel(name, entry, scenarios, bank)


def _refuse_without_procedure(model: str, command: str, worlds: Iterable[Scenario]) -> None:
    """Who is asked for calls of tools judges within a procedure, and where there is none, not at all."""
    for one in worlds:
        if not (one.environment and one.environment.procedure and one.environment.right):
            said = f"'{command}' is a command, and scenario '{one.name}' has no `procedure` that it could judge in"
            raise ConfigError(f"model '{model}': {said}, or no `right`; leave `bank` out, or take the command out")


def _recorded(name: str, entry: RecordedEntry, config: Config) -> RecordedModel:
    recording, parameters = load_recording(entry.run, entry.model or name, config.seed, config.repetitions, entry.concurrency)
    prices = entry.model_dump(include={"price_in", "price_out"}, exclude_none=True)
    return RecordedModel(name, recording, {**parameters, **prices})
