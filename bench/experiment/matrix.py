"""From a config to the trials it means: their order, and an id for each that is a digest of all that determines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.architectures.registry import load_architecture
from bench.draws import draw_for
from bench.errors import ConfigError
from bench.experiment.config import Config, OpenAIEntry, resolve_plan
from bench.experiment.record import arm_of
from bench.models.base import Model
from bench.models.openai import OpenAIModel
from bench.models.simulated import SimulatedModel
from bench.packs import load_pack
from bench.runtime.caller import BackOff
from bench.runtime.faults import FaultPlan
from bench.runtime.workbench import Settings
from bench.scenario import Scenario


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
class Matrix:
    """An experiment, resolved: everything that its trials need, and the trials in the order in which they run."""

    config: Config
    scenarios: Mapping[str, Scenario]
    models: Mapping[str, Model]
    settings: Settings
    back_off: BackOff
    specs: tuple[TrialSpec, ...]


def build_matrix(config: Config, packs: Sequence[Path], code_digest: str) -> Matrix:
    """Load what the config names and lay out its trials.

    Trials are interleaved: all arms of a repetition run, in an order drawn anew for each, before the next repetition begins,
    so that whatever drifts with time hits all arms alike. Raises PackError or ConfigError for what cannot be loaded.
    """
    loaded = [load_pack(name, packs) for name in config.scenarios]
    scenarios = {scenario.name: scenario for scenario in loaded}
    if len(scenarios) < len(loaded):
        raise ConfigError(f"scenarios: two of {', '.join(config.scenarios)} are the same pack in the same size; name each once")
    for architecture in config.architectures:
        load_architecture(architecture)
    models = {name: _model(name, config, scenarios) for name in config.models}
    settings = Settings(config.max_attempts, config.repair)
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
    return Matrix(config, scenarios, models, settings, back_off, tuple(specs))


def _identified(
    spec: TrialSpec,
    config: Config,
    scenarios: Mapping[str, Scenario],
    models: Mapping[str, Model],
    settings: Settings,
    back_off: BackOff,
    code_digest: str,
) -> TrialSpec:
    determined_by = {
        "code": code_digest,
        "pack": scenarios[spec.scenario].digest,
        "scenario": spec.scenario,
        "architecture": spec.architecture,
        "model": [spec.model, models[spec.model].parameters],
        "plan": asdict(spec.plan),
        "repetition": spec.repetition,
        "seed": config.seed,
        "settings": [asdict(settings), asdict(back_off)],
    }
    text = json.dumps(determined_by, sort_keys=True, default=str)
    return replace(spec, id=hashlib.sha256(text.encode()).hexdigest()[:20])


def _model(name: str, config: Config, scenarios: Mapping[str, Scenario]) -> Model:
    entry = config.model[name]
    if isinstance(entry, OpenAIEntry):
        return OpenAIModel(name, entry)
    return SimulatedModel(name, entry, scenarios)
