"""From a config to the trials it means: their order, and an id for each that is a digest of all that determines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from bench.architectures.registry import ARCHITECTURES, SYSTEMS, Architecture, extras_of, load_architecture
from bench.errors import ConfigError, nearest
from bench.experiment.config import Config, OpenAIEntry, RecordedEntry, RoutedEntry, resolve_plan
from bench.experiment.provenance import extra_versions
from bench.experiment.record import arm_of
from bench.experiment.recording import asked_before, load_recording
from bench.models.base import Model
from bench.models.cached import CachedModel
from bench.models.recorded import RecordedModel
from bench.models.routed import RoutedModel
from bench.models.simulated import SimulatedModel
from bench.packs import find_packs, load_pack
from bench.runtime.caller import BackOff
from bench.runtime.endpoint_session import Host, no_server
from bench.runtime.faults import FaultPlan
from bench.runtime.workbench import Settings
from bench.scenario import Scenario
from bench.seeding import draw_for


@dataclass(frozen=True)
class TrialSpec:
    """One trial to be run."""

    id: str
    scenario: str
    architecture: str
    model: str
    plan: FaultPlan
    repetition: int

    @property
    def arm(self) -> str:
        return arm_of(self.architecture, self.plan.name)


@dataclass(frozen=True)
class Guests:
    """Architectures and scenarios, by name, that this process brings along: nothing installed has these names."""

    architectures: Mapping[str, Architecture] = field(default_factory=dict)
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)


@dataclass(frozen=True)
class Matrix:
    """An experiment, resolved: everything that its trials need, and the trials in the order in which they run. `settings`:
    those of each architecture; `host`: where a system finds its endpoint."""

    config: Config
    scenarios: Mapping[str, Scenario]
    architectures: Mapping[str, Architecture]
    models: Mapping[str, Model]
    settings: Mapping[str, Settings]
    back_off: BackOff
    host: Host
    specs: tuple[TrialSpec, ...]


def build_matrix(config: Config, packs: Sequence[Path], code_digest: str, guests: Guests | None = None) -> Matrix:
    """Load what the config names and lay out its trials.

    Trials are interleaved: all arms of a repetition run, in an order drawn anew for each, before the next repetition begins,
    so that whatever drifts with time hits all arms alike. Raises PackError or ConfigError for what cannot be loaded.
    """
    guests = guests or Guests()
    loaded = [guests.scenarios.get(name) or load_pack(name, packs) for name in config.scenarios]
    scenarios = {scenario.name: scenario for scenario in loaded}
    if len(scenarios) < len(loaded):
        raise ConfigError(
            f"scenarios: two of {', '.join(config.scenarios)} are the same pack and variant; name each once"
        )
    _refuse_borrowed_names(config)
    architectures = {
        name: guests.architectures.get(name) or load_architecture(config.base(name)) for name in config.architectures
    }
    _refuse_unknown_routes(config, scenarios, packs)
    models = _models(config, scenarios)
    settings = {name: _settings(config, name) for name in config.architectures}
    back_off = BackOff(config.back_off.tries, config.back_off.base, config.back_off.most)
    plans = {(name, plan): resolve_plan(config, plan, scenarios[name]) for name in scenarios for plan in config.plans}
    specs = []
    for repetition in range(1, config.repetitions + 1):
        arms = [
            TrialSpec("", scenario, architecture, model, plans[scenario, plan], repetition)
            for scenario in scenarios
            for plan in config.plans
            for model in config.models
            for architecture in config.architectures
        ]
        draw_for(config.seed, "order", repetition).shuffle(arms)
        specs += [_identified(arm, config, scenarios, models, settings, back_off, code_digest) for arm in arms]
    return Matrix(config, scenarios, architectures, models, settings, back_off, _host(config), tuple(specs))


def _identified(
    spec: TrialSpec,
    config: Config,
    scenarios: Mapping[str, Scenario],
    models: Mapping[str, Model],
    settings: Mapping[str, Settings],
    back_off: BackOff,
    code_digest: str,
) -> TrialSpec:
    determined_by = {
        "code": code_digest,
        "pack": scenarios[spec.scenario].digest,
        "scenario": spec.scenario,
        "architecture": [spec.architecture, config.base(spec.architecture)],
        "model": [spec.model, models[spec.model].parameters],
        "plan": asdict(spec.plan),
        "repetition": spec.repetition,
        "seed": config.seed,
        "settings": [asdict(settings[spec.architecture]), asdict(back_off)],
    }
    if extras := extras_of([config.base(spec.architecture)]):
        determined_by["packages"] = extra_versions(extras)
    text = json.dumps(determined_by, sort_keys=True, default=str)
    return replace(spec, id=hashlib.sha256(text.encode()).hexdigest()[:20])


def _settings(config: Config, architecture: str) -> Settings:
    """The experiment's, but for what a variant has of its own."""
    variant = config.architecture.get(architecture)
    if variant is None:
        return Settings(config.max_attempts, config.repair)
    return Settings(variant.max_attempts or config.max_attempts, variant.repair or config.repair)


def _refuse_borrowed_names(config: Config) -> None:
    """A variant under an architecture's own name would be taken for it, in every table."""
    for name in config.architecture:
        if name in (*ARCHITECTURES, *SYSTEMS):
            raise ConfigError(f"architecture.{name}: there is an architecture of this name; give the variant another")


def _refuse_unknown_routes(config: Config, scenarios: Mapping[str, Scenario], packs: Sequence[Path]) -> None:
    """A route may be for a scenario that this run leaves out, so the other packs are looked into as well, but only then."""
    routed = {name: entry for name in config.models if isinstance(entry := config.model[name], RoutedEntry)}
    known = {subtask.name for scenario in scenarios.values() for subtask in scenario.task.subtasks}
    if any(set(entry.subtasks) - known for entry in routed.values()):
        known |= {subtask.name for pack in find_packs(packs) for subtask in load_pack(pack, packs).task.subtasks}
    for name, entry in routed.items():
        for subtask in entry.subtasks:
            if subtask not in known:
                raise ConfigError(f"model '{name}': no scenario has a subtask '{subtask}'; {nearest(subtask, known)}")


def _models(config: Config, scenarios: Mapping[str, Scenario]) -> dict[str, Model]:
    """Each model once, whether the config runs it, another one passes requests on to it, or both."""
    routed = {name: entry for name in config.models if isinstance(entry := config.model[name], RoutedEntry)}
    own = dict.fromkeys(name for name in config.models if name not in routed)
    targets = dict.fromkeys(target for entry in routed.values() for target in entry.targets)
    made = {name: _model(name, config, scenarios) for name in own | targets}
    return {name: RoutedModel(name, routed[name], made) if name in routed else made[name] for name in config.models}


def _model(name: str, config: Config, scenarios: Mapping[str, Scenario]) -> Model:
    """A model that answers itself."""
    entry = config.model[name]
    if isinstance(entry, OpenAIEntry):
        from bench.models.openai import OpenAIModel  # noqa: PLC0415  openai is slow to import, and most commands ask no endpoint

        model = OpenAIModel(name, entry)
        return CachedModel(model, *asked_before(entry.asked_in, model.parameters)) if entry.ask_once else model
    if isinstance(entry, RecordedEntry):
        return _recorded(name, entry, config, scenarios)
    if isinstance(entry, RoutedEntry):
        raise ConfigError(f"model '{name}' passes requests on and cannot be passed any")
    return SimulatedModel(name, entry, scenarios)


def _host(config: Config) -> Host:
    """Ours call at the workbench's own line; any other may ask it for an endpoint."""
    if all(config.base(name) in ARCHITECTURES for name in config.architectures):
        return no_server
    from bench.endpoint.server import host  # noqa: PLC0415  aiohttp is slow to import; and not in mid-trial, where it would count

    return host


def _recorded(name: str, entry: RecordedEntry, config: Config, scenarios: Mapping[str, Scenario]) -> RecordedModel:
    recording, parameters = load_recording(entry.run, entry.model or name, scenarios, config.seed, config.repetitions)
    prices = entry.model_dump(include={"price_in", "price_out"}, exclude_none=True)
    return RecordedModel(name, recording, {**parameters, **prices})
