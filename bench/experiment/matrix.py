"""From a config to the trials it means: their order, and an id for each that is a digest of all that determines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.architectures.registry import (
    ACTING,
    ARCHITECTURES,
    INSTRUMENTS,
    OURS,
    SYSTEMS,
    Architecture,
    extras_of,
    in_form,
    in_parallel,
    load_architecture,
)
from bench.errors import ConfigError, nearest
from bench.experiment.architecture_entry import ArchitectureEntry
from bench.experiment.bank import load_bank
from bench.experiment.command_entry import COMMAND, TIME_LIMIT
from bench.experiment.config import Config
from bench.experiment.model_entries import OpenAIEntry, RecordedEntry, RoutedEntry
from bench.experiment.provenance import architecture_digest, extra_versions
from bench.experiment.record import arm_of
from bench.experiment.recording import load_recording, responses_before
from bench.experiment.resolved_plans import resolve_plan
from bench.experiment.sample import sample
from bench.models.base import Model
from bench.models.cached import CachedModel
from bench.models.recorded import RecordedModel
from bench.models.routed import RoutedModel
from bench.models.simulated import SimulatedModel
from bench.packs import find_packs, instances_of, lacks, load_pack
from bench.paths import folder_of
from bench.runtime.asking import Settings
from bench.runtime.call import BackOff
from bench.runtime.endpoint_session import Server, no_server
from bench.runtime.faults import FaultPlan
from bench.scenario import Scenario, scenario_key
from bench.seeding import draw_for

if TYPE_CHECKING:
    from bench.driver.architecture import CommandArchitecture


@dataclass(frozen=True)
class TrialSpec:
    """One trial to be run."""

    id: str
    scenario: str
    architecture: str
    model: str
    plan: FaultPlan
    repetition: int
    instance: str = ""

    @property
    def arm(self) -> str:
        return arm_of(self.architecture, self.plan.name)

    @property
    def scenario_key(self) -> str:
        return scenario_key(self.scenario, self.instance)


@dataclass(frozen=True)
class Matrix:
    """An experiment, resolved: everything that its trials need, and the trials in the order in which they run.

    scenarios   by `Scenario.key`: each instance of each pack
    settings    those of each architecture
    digests     of each architecture's own code
    server      where a system finds its endpoint
    """

    config: Config
    scenarios: Mapping[str, Scenario]
    architectures: Mapping[str, Architecture]
    models: Mapping[str, Model]
    settings: Mapping[str, Settings]
    digests: Mapping[str, str]
    back_off: BackOff
    server: Server
    specs: tuple[TrialSpec, ...]

    def settings_of(self, spec: TrialSpec) -> Settings:
        """Those of its architecture, and the answer format of its model."""
        return replace(self.settings[spec.architecture], answer_format=self.config.format_of(spec.model))

    @property
    def packs(self) -> Mapping[str, tuple[Scenario, ...]]:
        """The instances of each pack, by the scenario's name."""
        packs: dict[str, list[Scenario]] = {}
        for scenario in self.scenarios.values():
            packs.setdefault(scenario.name, []).append(scenario)
        return {name: tuple(scenarios) for name, scenarios in packs.items()}


def build_matrix(
    config: Config,
    packs: Sequence[Path],
    code_digest: str,
    *,
    architectures: Mapping[str, Architecture] | None = None,
    scenarios: Mapping[str, Scenario] | None = None,
) -> Matrix:
    """Load what the config names and lay out its trials.

    Trials are interleaved: all arms of a repetition run, in an order drawn anew for each, before the next repetition begins,
    so that whatever drifts with time hits all arms alike. Raises PackError or ConfigError for what cannot be loaded.
    """
    loaded = [scenario for name in config.scenarios for scenario in _instances(name, config, packs, scenarios or {})]
    known = {scenario.key: scenario for scenario in loaded}
    if len(known) < len(loaded):
        raise ConfigError(f"scenarios: two of {', '.join(config.scenarios)} are the same pack and variant; name each once")
    _refuse_borrowed_names(config)
    own = architectures or {}
    chosen = {name: own.get(name) or _architecture(name, config) for name in config.architectures}
    _refuse_unknown_routes(config, known, packs)
    _refuse_unequal_formats(config)
    _refuse_without_world(config, known)
    matrix = Matrix(
        config=config,
        scenarios=known,
        architectures=chosen,
        models=_models(config, known),
        settings={name: _settings(config, name) for name in config.architectures},
        digests={name: _digest(name, one, config) for name, one in chosen.items()},
        back_off=BackOff(config.back_off.tries, config.back_off.base, config.back_off.most),
        server=_server(config),
        specs=(),
    )
    return replace(matrix, specs=tuple(_specs(matrix, code_digest)))


def _instances(name: str, config: Config, packs: Sequence[Path], own: Mapping[str, Scenario]) -> Sequence[Scenario]:
    """The instances that the config asks for: the one that is named, as `pack/instance`; else a sample of as many as it says,
    drawn by the seed and the pack's name alone, so that all arms, and all variants that name their instances alike, have the
    same."""
    if name in own:
        return [own[name]]
    pack, _, instance = name.partition("/")
    if instance:
        return [load_pack(pack, packs, instance)]
    chosen = sample(instances_of(pack, packs), config.instances, "instances", config.seed, pack.partition(":")[0])
    return [load_pack(pack, packs, one) for one in chosen]


def _specs(matrix: Matrix, code_digest: str) -> Iterator[TrialSpec]:
    config, scenarios = matrix.config, matrix.scenarios
    plans = {(key, plan): resolve_plan(config, plan, scenarios[key]) for key in scenarios for plan in config.plans}
    for repetition in range(1, config.repetitions + 1):
        arms = [
            TrialSpec("", scenario.name, architecture, model, plans[key, plan], repetition, scenario.instance)
            for key, scenario in scenarios.items()
            for plan in config.plans
            for model in config.models
            for architecture in config.architectures
        ]
        draw_for(config.seed, "order", repetition).shuffle(arms)
        yield from (_identified(arm, matrix, code_digest) for arm in arms)


def _identified(spec: TrialSpec, matrix: Matrix, code_digest: str) -> TrialSpec:
    """The trial with its id: the digest of all that determines it. What grades does not: grades can be made anew."""
    config, scenario, model = matrix.config, matrix.scenarios[spec.scenario_key], matrix.models[spec.model]
    base = config.base(spec.architecture)
    parallel = ["parallel"] if config.is_parallel(spec.architecture) else []
    form = [asdict(own)] if (own := config.form_of(spec.architecture)) else []
    determined_by: dict[str, object] = {
        "code": code_digest,
        "asked": scenario.asked,
        "scenario": [spec.scenario, spec.instance],
        "architecture": [spec.architecture, base, matrix.digests[spec.architecture], *parallel, *form],
        "model": [spec.model, model.parameters],
        "plan": asdict(spec.plan),
        "repetition": spec.repetition,
        "seed": config.seed,
        "settings": [asdict(matrix.settings_of(spec)), asdict(matrix.back_off)],
    }
    if answers_by_reference(model, spec.plan):
        determined_by["reference"] = scenario.reference_digest
    if extras := extras_of([base]):
        determined_by["packages"] = extra_versions(extras)
    text = json.dumps(determined_by, sort_keys=True, default=str)
    return replace(spec, id=hashlib.sha256(text.encode()).hexdigest()[:20])


def answers_by_reference(model: Model, plan: FaultPlan) -> bool:
    """Whether a pack's reference or its wrong answers determine a trial: they are what answers, or take an output's place."""
    return model.timing == "simulated" or any(fault.effect == "wrong_value" for fault in plan.faults)


def _architecture(name: str, config: Config) -> Architecture:
    """An architecture, or a variant of one in the form that it asks for, or a command."""
    base = config.base(name)
    if base == COMMAND:
        return _command(name, config.architecture[name])
    architecture = load_architecture(base, config.architecture)
    if form := config.form_of(name):
        architecture = in_form(architecture, base, form)
    return in_parallel(architecture, base) if config.is_parallel(name) else architecture


def _command(name: str, entry: ArchitectureEntry) -> CommandArchitecture:
    from bench.driver.architecture import CommandArchitecture  # noqa: PLC0415  aiohttp is slow to import, and few run commands
    from bench.driver.command import Bounds, command_of  # noqa: PLC0415  the same

    assert entry.command  # the config has seen to it
    bounds = Bounds(entry.time_limit_seconds or TIME_LIMIT, entry.model_calls)
    where = f"architecture.{name}"
    command = command_of(entry.command, entry.folder, entry.env, bounds, where, entry.files, entry.packages)
    return CommandArchitecture(command)


def _digest(name: str, architecture: Architecture, config: Config) -> str:
    if name in config.architecture and config.base(name) == COMMAND:
        return str(getattr(architecture, "digest", ""))
    return architecture_digest(architecture, config.base(name).partition(":")[0])


def _settings(config: Config, architecture: str) -> Settings:
    """The experiment's, but for what a variant has of its own."""
    variant = config.architecture.get(architecture)
    if variant is None:
        return Settings(config.max_attempts, config.repair)
    return Settings(variant.max_attempts or config.max_attempts, variant.repair or config.repair)


def _refuse_borrowed_names(config: Config) -> None:
    """A variant under an architecture's own name would be taken for it, in every table."""
    for name in config.architecture:
        if name in (*OURS, *SYSTEMS):
            raise ConfigError(f"architecture.{name}: there is an architecture of this name; give the variant another")


def _refuse_unequal_formats(config: Config) -> None:
    """All architectures ask for answers in one form, else a difference between two of them could be the form's."""
    formats = {config.format_of(name) for name in config.models}
    for name in config.architectures:
        base = config.base(name)
        if "schema" in formats and base not in OURS and ":" not in base:
            said = f"architecture '{name}' makes its calls itself, and nothing holds them to a schema"
            raise ConfigError(f'{said}; run it in another answer format than "schema"')
        if "fenced" in formats and base in SYSTEMS and SYSTEMS[base].reads_json_alone:
            said = f"architecture '{name}' asks for JSON in words of its own"
            raise ConfigError(f'{said}; run it in another answer format than "fenced"')


def _refuse_without_world(config: Config, scenarios: Mapping[str, Scenario]) -> None:
    """Some architectures act in a world and nothing else, some know of none."""
    for name in config.architectures:
        base = config.base(name)
        for scenario in scenarios.values():
            if base in (*ACTING, *INSTRUMENTS, COMMAND) and scenario.environment is None:
                raise ConfigError(f"architecture '{name}' acts in a world, and scenario '{scenario.name}' has none")
            if base in (*ARCHITECTURES, *SYSTEMS) and scenario.environment is not None:
                said = f"scenario '{scenario.name}' has a world, in which architecture '{name}' cannot act"
                raise ConfigError(f"{said}; name one that can: {', '.join(ACTING) or 'module:function'}")


def _refuse_unknown_routes(config: Config, scenarios: Mapping[str, Scenario], packs: Sequence[Path]) -> None:
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
    if command := next((one for one in config.architectures if config.base(one) == COMMAND), None):
        _refuse_without_procedure(name, command, worlds)
    return SimulatedModel(name, entry, scenarios, bank)


def _refuse_without_procedure(model: str, command: str, worlds: Iterable[Scenario]) -> None:
    """Who is asked for calls of tools judges within a procedure, and where there is none, not at all."""
    for one in worlds:
        if not (one.environment and one.environment.procedure and one.environment.right):
            said = f"'{command}' is a command, and scenario '{one.name}' has no `procedure` that it could judge in"
            raise ConfigError(f"model '{model}': {said}, or no `right`; leave `bank` out, or take the command out")


def _server(config: Config) -> Server:
    """Ours call at the workbench's own line; any other may ask it for an endpoint."""
    if all(config.base(name) in OURS for name in config.architectures):
        return no_server
    from bench.endpoint.server import serve_session  # noqa: PLC0415  aiohttp is slow to import; and not in mid-trial, where it would count

    return serve_session


def _recorded(name: str, entry: RecordedEntry, config: Config) -> RecordedModel:
    recording, parameters = load_recording(entry.run, entry.model or name, config.seed, config.repetitions, entry.concurrency)
    prices = entry.model_dump(include={"price_in", "price_out"}, exclude_none=True)
    return RecordedModel(name, recording, {**parameters, **prices})
