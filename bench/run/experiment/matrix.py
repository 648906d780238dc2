"""Make the trials of a config, in their order. The id of a trial is a digest of all that determines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import overload

from bench.common.errors import ConfigError
from bench.common.seeding import draw_for
from bench.record.policy import seen_by
from bench.record.record import arm_of, place_in_run
from bench.run.architectures.part import Architecture
from bench.run.experiment.arm import ResolvedArchitecture, ResolvedArm
from bench.run.experiment.code import Codebase, our_codebase
from bench.run.experiment.config import Config
from bench.run.experiment.keys import key_of
from bench.run.experiment.model_entries import MODELS
from bench.run.experiment.resolved_architectures import refuse_misfits, resolve_architectures
from bench.run.experiment.resolved_models import refuse_unknown_routes, resolve_models
from bench.run.experiment.resolved_plans import refuse_unknown_packs, resolve_plan
from bench.run.models.base import Model
from bench.run.packs import load_instances, load_pack
from bench.run.packs.environments import ENVIRONMENTS
from bench.run.trial.call import BackOff
from bench.run.trial.effects import EFFECTS
from bench.run.trial.faults import FaultPlan
from bench.run.trial.key import TrialKey
from bench.run.trial.trial import Server, Settings, no_server
from bench.scenario import Scenario, scenario_key

_text_of = partial(json.dumps, sort_keys=True, default=str)


@dataclass(frozen=True)
class TrialSpec:
    """One trial to run."""

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
    def place(self) -> str:
        """The digest of the trial's place in its run."""
        return place_in_run(self.scenario, self.instance, self.architecture, self.model, self.plan.name, self.repetition)

    @property
    def scenario_key(self) -> str:
        return scenario_key(self.scenario, self.instance)


class TrialSpecs(Sequence[TrialSpec]):
    """The trials in the order in which they run. A trial is made when it is read, and none is stored: there can be millions.

    make    returns an iterator that makes all trials from the first on
    count   the number of trials; None if they are counted on demand
    """

    def __init__(self, make: Callable[[], Iterator[TrialSpec]], count: int | None = None):
        self._make, self._count = make, count

    def __iter__(self) -> Iterator[TrialSpec]:
        return self._make()

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(1 for _ in self)
        return self._count

    @overload
    def __getitem__(self, place: int) -> TrialSpec: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[TrialSpec]: ...
    def __getitem__(self, place: int | slice) -> TrialSpec | Sequence[TrialSpec]:
        return tuple(self)[place]


@dataclass(frozen=True)
class Matrix:
    """A resolved experiment: its trials in the order in which they run, and everything that they need.

    scenarios      `Scenario.key` -> the scenario, for each instance of each pack
    plans          (`Scenario.key`, plan) -> the plan for that instance
    effects        (effect, point) -> the digest of the effect's code
    kinds          model -> the digest of the code of its kind
    environments   kind of environment -> the digest of its code
    versions       the versions of Python and of the packages that every trial runs through
    server         serves the sessions of architectures that make their own calls
    portion        which trials of the experiment these are, in words (`bench.run.experiment.portion`); "" for all
    """

    config: Config
    scenarios: Mapping[str, Scenario]
    plans: Mapping[tuple[str, str], FaultPlan]
    architectures: Mapping[str, ResolvedArchitecture]
    models: Mapping[str, Model]
    effects: Mapping[tuple[str, str], str]
    kinds: Mapping[str, str]
    environments: Mapping[str, str]
    versions: Mapping[str, str]
    back_off: BackOff
    server: Server
    specs: Sequence[TrialSpec]
    portion: str = ""

    def arm(self, spec: TrialSpec) -> ResolvedArm:
        """Return the scenario, architecture, model and settings of a trial."""
        architecture, settings = self.architectures[spec.architecture], self._settings[spec.architecture, spec.model]
        return ResolvedArm(self.scenarios[spec.scenario_key], architecture, self.models[spec.model], spec.plan, settings)

    @cached_property
    def _settings(self) -> Mapping[tuple[str, str], Settings]:
        """The settings by (architecture, model)."""
        config = self.config
        return {
            (name, model): replace(architecture.settings, answer_format=config.format_of(model), tags=config.tags_of(model))
            for name, architecture in self.architectures.items()
            for model in self.models
        }

    @property
    def has_commands(self) -> bool:
        """Whether an architecture is a user's command."""
        return any(architecture.is_command for architecture in self.architectures.values())

    def key(self, spec: TrialSpec) -> TrialKey:
        """Return the key of a trial's random draws."""
        return key_of(self.config.seed, spec)

    def trial_of(self, spec: TrialSpec, code_digest: str) -> Callable[[int], TrialSpec]:
        """Return a function that makes the trial of a repetition. The trial's id is the digest of all that determines the
        trial, but not of the grader, since grades can be made again. Values that all repetitions share are serialized once."""
        arm = self.arm(spec)
        entry = arm.architecture
        determined_by: dict[str, object] = {
            "code": [code_digest, self.versions],
            "asked": arm.scenario.asked,
            "scenario": [spec.scenario, spec.instance],
            "architecture": [
                entry.name,
                entry.part.name,
                entry.digest,
                entry.parallel,
                entry.form and entry.form.settings,
                entry.versions,
            ],
            "model": [spec.model, arm.model.parameters, self.kinds[spec.model]],
            "plan": [asdict(spec.plan), [self.effects[fault.effect, fault.point] for fault in spec.plan.faults]],
            "seed": self.config.seed,
            "settings": [asdict(arm.settings), asdict(self.back_off)],
        }
        if arm.scenario.environment:
            determined_by["environment"] = self.environments[arm.scenario.environment.part]
        if answers_by_reference(arm.model, spec.plan):
            determined_by["reference"] = arm.scenario.reference_digest
        texts, draws = {name: _text_of(value) for name, value in determined_by.items()}, asdict(self.key(spec))

        def trial(repetition: int) -> TrialSpec:
            """Return the trial of this repetition, with its id."""
            values = {**texts, "draws": _text_of({**draws, "repetition": repetition}), "repetition": str(repetition)}
            text = ", ".join(f'"{name}": {values[name]}' for name in sorted(values))
            digest = hashlib.sha256(f"{{{text}}}".encode()).hexdigest()
            return replace(spec, id=digest[:20], repetition=repetition)

        return trial

    def with_architecture(self, work: Architecture) -> Matrix:
        """Return the same trials with `work` as the function of every architecture."""
        return replace(self, architectures={name: replace(entry, work=work) for name, entry in self.architectures.items()})

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
    codebase: Codebase | None = None,
) -> Matrix:
    """Load the parts that the config names, and make the trials.

    Trials are interleaved: all arms of a repetition run, in an order drawn for each, before the next repetition begins, so that
    changes over time affect all arms alike.

    Args:
        config: The config.
        packs: The folders in which packs are looked for.
        code_digest: The digest of the core's code.
        architectures: Architectures by name that need not be registered.
        scenarios: Scenarios by name that stand for packs.
        codebase: The code of parts; None for ours.

    Returns:
        The trials, with what they need.

    Raises:
        PackError: A pack cannot be loaded.
        ConfigError: Another part cannot be loaded, or the config contradicts itself.
    """
    policies = config.policies()
    instances = [
        scenario
        for name in config.scenarios
        for scenario in _instances(name, config, packs, scenarios or {}, seen_by(policies, name.partition("/")[0]))
    ]
    by_key = {scenario.key: scenario for scenario in instances}
    if len(by_key) < len(instances):
        raise ConfigError(f"scenarios: two of {', '.join(config.scenarios)} are the same pack and variant; name each once")
    codebase = codebase or our_codebase()
    resolved = resolve_architectures(config, architectures or {}, codebase, policies)
    refuse_unknown_routes(config, by_key, packs)
    refuse_unknown_packs(config, by_key.values(), packs)
    refuse_misfits(config, resolved.values(), by_key)
    effects = dict.fromkeys((fault.effect, fault.point) for plan in config.plans for fault in config.faults_of(plan))
    kinds = {
        name: [MODELS[config.model[target].kind] for target in (name, *config.model[name].passes_on_to)]
        for name in config.models
    }
    environment_kinds = dict.fromkeys(pack.environment.part for pack in instances if pack.environment)
    server: Server = no_server
    if any(arm.part.makes_own_calls for arm in resolved.values()):
        from bench.run.endpoint.server import serve_session as server  # noqa: PLC0415  aiohttp is slow to import; and not in mid-trial, where it would count
    matrix = Matrix(
        config=config,
        scenarios=by_key,
        plans={
            (key, plan): resolve_plan(config, plan, scenario)
            for key, scenario in by_key.items()
            for plan in config.plans_on(scenario.name)
        },
        architectures=resolved,
        models=resolve_models(config, by_key, resolved.values()),
        effects={key: codebase.of_part(EFFECTS[key]) for key in effects},
        kinds={name: " + ".join(dict.fromkeys(map(codebase.of_part, parts))) for name, parts in kinds.items()},
        environments={kind: codebase.of_part(ENVIRONMENTS[kind]) for kind in environment_kinds},
        versions=codebase.versions,
        back_off=BackOff(config.back_off.tries, config.back_off.base, config.back_off.most),
        server=server,
        specs=(),
    )
    trials = config.repetitions * len(matrix.plans) * len(config.models) * len(config.architectures)
    return replace(matrix, specs=TrialSpecs(partial(_specs, matrix, code_digest), trials))


def _instances(
    name: str, config: Config, packs: Sequence[Path], scenarios: Mapping[str, Scenario], seen: frozenset[str]
) -> Sequence[Scenario]:
    """Return the instances of a scenario that the config asks for: the instance that is named, as in `pack/instance`, or a
    sample of the config's size. The sample is drawn by the seed and the pack's name alone, so that all arms, and all variants
    that share instance names, have the same sample. Instances from which a policy was learned (`seen`) are left out. Raises
    ConfigError if no instance remains."""
    pack, _, instance = name.partition("/")
    if name in scenarios:
        chosen: Sequence[Scenario] = [scenarios[name]]
    elif instance:
        chosen = [load_pack(pack, packs, instance)]
    else:
        chosen = load_instances(pack, packs, config.instances, "instances", config.seed, pack.partition(":")[0], without=seen)
    unseen = [scenario for scenario in chosen if scenario.instance not in seen]
    if not unseen:
        problem = f"scenario '{name}' has no instance on which no policy of this config was learned"
        raise ConfigError(f"{problem}; learn on others (bench more learn RUN --instances N), or run another scenario")
    return unseen


def _specs(matrix: Matrix, code_digest: str) -> Iterator[TrialSpec]:
    """Yield the trials, repetition by repetition. The order of the arms is drawn anew for each repetition."""
    config = matrix.config
    arms = [
        TrialSpec("", scenario.name, architecture, model, matrix.plans[key, plan], 0, scenario.instance)
        for key, scenario in matrix.scenarios.items()
        for plan in config.plans_on(scenario.name)
        for model in config.models
        for architecture in config.architectures
    ]
    trial_maker = cache(lambda index: matrix.trial_of(arms[index], code_digest))
    for repetition in range(1, config.repetitions + 1):
        order = list(range(len(arms)))
        draw_for(config.seed, "order", repetition).shuffle(order)
        for index in order:
            yield trial_maker(index)(repetition)


def answers_by_reference(model: Model, plan: FaultPlan) -> bool:
    """Return whether the pack's reference or wrong answers determine a trial: the model answers with them, or a fault inserts
    them."""
    return model.timing == "simulated" or any(EFFECTS[fault.effect, fault.point].from_reference for fault in plan.faults)
