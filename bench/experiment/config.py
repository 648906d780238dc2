"""What a person writes: an experiment's config in TOML, read and refused here. `configs/smoke.toml` is a short example."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench.errors import ConfigError, nearest
from bench.models.openai_settings import OpenAISettings
from bench.models.routed import RoutedSettings
from bench.models.simulated import SimulatedSettings
from bench.runtime.effects import EFFECTS, Point
from bench.runtime.faults import EVERY, Fault, FaultPlan
from bench.runtime.prompt import Repair
from bench.scenario import Scenario

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
RENAMED = {"experiment": "study"}
"""Keys that earlier configs have -> what they are called now."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SimulatedEntry(SimulatedSettings):
    kind: Literal["simulated"]


class OpenAIEntry(OpenAISettings):
    kind: Literal["openai"]


class RecordedEntry(_Strict):
    """A model of a recorded run, by default the one of the same name. Prices, where given, take the recorded ones' place."""

    kind: Literal["recorded"]
    run: Path
    model: str | None = None
    price_in: float | None = Field(None, ge=0.0)
    price_out: float | None = Field(None, ge=0.0)


class RoutedEntry(RoutedSettings):
    kind: Literal["routed"]


ModelEntry = Annotated[SimulatedEntry | OpenAIEntry | RecordedEntry | RoutedEntry, Field(discriminator="kind")]


class FaultEntry(_Strict):
    """One fault of a plan. `subtask`: a name, `*` for every subtask, or a table of names by scenario."""

    point: Point
    effect: str
    subtask: str | dict[str, str] = EVERY
    attempts: tuple[int, ...] = ()
    probability: float = Field(0.0, ge=0.0, le=1.0)
    seconds: float = Field(1.0, ge=0.0)

    @model_validator(mode="after")
    def _known(self) -> FaultEntry:
        if self.effect not in EFFECTS:
            raise ValueError(f"unknown effect '{self.effect}'; {nearest(self.effect, EFFECTS)}")
        points = EFFECTS[self.effect].points
        if self.point not in points:
            raise ValueError(f"effect '{self.effect}' cannot strike at '{self.point}', only at {', '.join(sorted(points))}")
        if bool(self.attempts) == bool(self.probability):
            raise ValueError("a fault has one trigger: either attempts = [1, ...] or a probability above 0")
        return self


class PlanEntry(_Strict):
    faults: tuple[FaultEntry, ...] = ()


class ArchitectureEntry(_Strict):
    """A variant: the architecture `base` under a name of its own, with settings of its own in the experiment's place."""

    base: str
    max_attempts: int | None = Field(None, ge=1)
    repair: Repair | None = None


class BackOffEntry(_Strict):
    """How calls that failed for a passing reason are made again; seconds."""

    tries: int = Field(6, ge=1)
    base: float = Field(1.0, ge=0.0)
    most: float = Field(60.0, ge=0.0)


class Config(_Strict):
    """One experiment: every scenario x architecture x model x fault plan, `repetitions` times. `study` names the
    question that its report answers with a table and a figure more: whoever loads a config refuses one that does not exist."""

    name: str = Field(pattern=NAME)
    scenarios: tuple[str, ...] = Field(min_length=1)
    architectures: tuple[str, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(min_length=1)
    plans: tuple[str, ...] = ("none",)
    repetitions: int = Field(ge=1)
    instances: int | None = Field(None, ge=1, description="how many of each pack's instances, the first ones; by default all")
    seed: int
    max_attempts: int = Field(3, ge=1)
    repair: Repair = "reason"
    study: str | None = None
    back_off: BackOffEntry = BackOffEntry()
    architecture: Mapping[Annotated[str, Field(pattern=NAME)], ArchitectureEntry] = Field(default_factory=dict)
    model: Mapping[str, ModelEntry] = Field(default_factory=dict)
    plan: Mapping[str, PlanEntry] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _resolved(self) -> Config:
        for what in ("scenarios", "architectures", "models", "plans"):
            names = getattr(self, what)
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{what}: '{name}' stands twice")
        for name in self.models:
            if name not in self.model:
                raise ValueError(f"unknown model '{name}'; {nearest(name, self.model)}; add a table [model.{name}] for another")
        for name in self.plans:
            if name not in self.plan and name != "none":
                raise ValueError(f"unknown fault plan '{name}'; {nearest(name, [*self.plan, 'none'])}")
        return self

    def base(self, architecture: str) -> str:
        """The architecture that this one is a variant of, or itself."""
        variant = self.architecture.get(architecture)
        return variant.base if variant else architecture

    @model_validator(mode="after")
    def _routes_end(self) -> Config:
        for name, entry in self.model.items():
            for target in entry.targets if isinstance(entry, RoutedEntry) else ():
                if target not in self.model:
                    raise ValueError(f"model '{name}' routes to an unknown model '{target}'; {nearest(target, self.model)}")
                if isinstance(self.model[target], RoutedEntry):
                    raise ValueError(f"model '{name}' routes to '{target}', which is routed itself; name a model that answers")
        return self


def load_config(path: Path, overrides: Mapping[str, Any], models: Mapping[str, Mapping[str, Any]] | None = None) -> Config:
    """Read a config, put the overrides that are not None in the place of its keys, and `models` among its models.

    Raises ConfigError: an unreadable file, no TOML, an unknown key, a value that does not fit.
    """
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is no TOML: {error}") from error
    values = {**written, **{key: value for key, value in overrides.items() if value is not None}}
    if models:
        values["model"] = {**values.get("model", {}), **models}
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, in one line. An unknown key comes first, with the nearest known one: where a key is
    misspelt, the right one is missing as well."""
    errors = error.errors()
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    place = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        if place in RENAMED:
            return f"the key '{place}' is called '{RENAMED[place]}' now; rename it in the config"
        return f"unknown key '{place}'; {nearest(key, _keys_beside(first['loc']))}"
    said = first["msg"].removeprefix("Value error, ")
    return f"{place}: {said}" if place else said


def _keys_beside(path: Iterable[int | str]) -> list[str]:
    names = [str(step) for step in path]
    tables: Mapping[str, list[type[BaseModel]]] = {
        "architecture": [ArchitectureEntry],
        "model": [SimulatedEntry, OpenAIEntry, RecordedEntry, RoutedEntry],
        "plan": [FaultEntry] if len(names) > 3 else [PlanEntry],
        "back_off": [BackOffEntry],
    }
    beside = tables.get(names[0], [Config]) if len(names) > 1 else [Config]
    return [key for one in beside for key in one.model_fields]


def resolve_plan(config: Config, name: str, scenario: Scenario) -> FaultPlan:
    """The fault plan as it is for one scenario. Raises ConfigError where it names a subtask that the scenario lacks, or
    where an effect could never strike that subtask."""
    entries = config.plan[name].faults if name in config.plan else ()
    return FaultPlan(name, tuple(_resolve_fault(entry, name, scenario) for entry in entries))


def _resolve_fault(entry: FaultEntry, plan: str, scenario: Scenario) -> Fault:
    pack = scenario.name.partition(":")[0]
    subtask = entry.subtask.get(pack) if isinstance(entry.subtask, dict) else entry.subtask
    names = [one.name for one in scenario.task.subtasks]
    if subtask is None:
        raise ConfigError(f"plan '{plan}': {entry.effect} names no subtask for scenario '{pack}'; add {pack} = \"...\" to it")
    if subtask != EVERY and subtask not in names:
        raise ConfigError(f"plan '{plan}': scenario '{pack}' has no subtask '{subtask}'; {nearest(subtask, names)}")
    if entry.point == "input" and EFFECTS[entry.effect].needs_json and not _reads_outputs(scenario, subtask):
        raise ConfigError(f"plan '{plan}': '{subtask}' reads only documents, so {entry.effect} can never strike its input")
    return Fault(entry.point, entry.effect, subtask, entry.attempts, entry.probability, entry.seconds)


def _reads_outputs(scenario: Scenario, subtask: str) -> bool:
    """Whether this subtask, or for `*` any, reads an earlier subtask's output."""
    subtasks = [one for one in scenario.task.subtasks if subtask in (EVERY, one.name)]
    return any(set(one.reads) - set(scenario.task.documents) for one in subtasks)
