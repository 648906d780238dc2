"""An experiment's config in TOML, as a person writes it: read and checked here. `configs/smoke.toml` is a short example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, WrapValidator, model_validator

from bench.common.bounds import Lookup, Many
from bench.common.errors import ConfigError, nearest
from bench.common.paths import LONGEST, NAME
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.entry import MOST, ConfigEntry, unless_stored
from bench.record.form import Repair
from bench.record.formats import DEFAULT, AnswerFormat
from bench.record.plan_entries import FaultEntry, PlanEntry
from bench.record.policy import LearnedPolicy, read_policy
from bench.run.experiment.model_entries import MODELS, ModelEntry
from bench.run.trial.drafts import THINK, Tags

ARCHITECTURE = r"^[A-Za-z0-9_][A-Za-z0-9._:+-]{0,199}$"
"""An architecture's name, a variant's name, or `module:function`."""
Name = Annotated[str, Field(pattern=NAME), WrapValidator(unless_stored)]
ArchitectureName = Annotated[str, Field(pattern=ARCHITECTURE), WrapValidator(unless_stored)]
FAULT_FREE = "none"
"""The plan without faults: the control of all others."""
RENAMED = {"experiment": "study", "ask_once": "cache", "asked_in": "cache_from"}
"""Keys of earlier configs -> their present names."""


class BackOffEntry(ConfigEntry):
    """How calls that failed for a passing reason (429, 5xx, no connection, time-out, connection cut) are made again. This does
    not concern frameworks and agents of your own, which make their retries themselves."""

    tries: int = Field(6, ge=1)
    """Requests for one attempt, including the first."""
    base: float = Field(1.0, ge=0.0)
    """Seconds before the second request; doubled before each further one. A server's Retry-After replaces them."""
    most: float = Field(60.0, ge=0.0)
    """The longest wait before one request, in seconds, whatever the server asks for."""


class StoredConfig(ConfigEntry):
    """A config as a manifest keeps it: without the tables of its models, whose parameters stand in the manifest itself."""

    name: Name
    """The beginning of the run's folder name under results/."""
    scenarios: Many[Annotated[str, Field(max_length=LONGEST)]] = Field(min_length=1, max_length=MOST)
    """The packs by name; `PACK:VARIANT` for a variant other than the pack's first."""
    architectures: Many[ArchitectureName] = Field(min_length=1, max_length=MOST)
    """By name, as `bench list` shows them; as `module:function`, for one of your own; or a variant, `[architecture.NAME]`."""
    models: Many[Name] = Field(min_length=1, max_length=MOST)
    """The models to run, each with its table `[model.NAME]`. `--model` replaces them."""
    plans: Many[Name] = Field((FAULT_FREE,), max_length=MOST)
    """The fault plans to run, each with its table `[plan.NAME]`; `none` is the control."""
    repetitions: int = Field(ge=1, le=100_000)
    """How often each combination is run, each time with another seed."""
    instances: int | None = Field(None, ge=1, le=100_000)
    """How many of each pack's instances, drawn by `seed`; by default all. A smaller sample is part of a larger one.
    `PACK/INSTANCE` in `scenarios` names one instance."""
    seed: int
    """All draws and all seeds of requests are derived from it. Runs are compared only under the same seed."""
    max_attempts: int = Field(3, ge=1, le=MOST)
    """Attempts at one subtask in one trial; after them the trial has given up."""
    repair: Repair = "reason"
    """What the next prompt tells of a rejection: nothing, the reason, or the reason and the rejected reply."""
    answer_format: AnswerFormat = DEFAULT
    """The form in which all architectures ask for answers: `json`, one JSON object asked for in words; `schema`, the same, and
    the endpoint holds the model to the schema; `fenced`, code in code blocks after the JSON."""
    study: str | None = None
    """A question beyond the paper that the report answers with a further table and figure; by default none."""
    deadline_seconds: float = Field(3600.0, gt=0.0)
    """The longest real time of a trial; after it the trial ends in an error."""
    back_off: BackOffEntry = BackOffEntry()
    """How failed calls are made again."""
    architecture: Lookup[Name, ArchitectureEntry] = Field(default_factory=dict, max_length=MOST)
    """Variants of architectures, by name."""
    plan: Lookup[Name, PlanEntry] = Field(default_factory=dict, max_length=MOST)
    """Fault plans, by name."""

    def names(self, column: str) -> tuple[str, ...]:
        """Return the scenarios, architectures, models or fault plans of the run, by the frames' name for them."""
        names: tuple[str, ...] = getattr(self, f"{column}s")
        return names

    def base(self, architecture: str) -> str:
        """Return the architecture of which this one is a variant, or itself."""
        variant = self.architecture.get(architecture)
        return (variant and variant.base) or architecture

    def faults_of(self, plan: str) -> tuple[FaultEntry, ...]:
        """Return the faults of a plan; the control has none, and needs no table."""
        return self.plan.get(plan, PlanEntry()).faults


class Config(StoredConfig):
    """One experiment: every scenario x architecture x model x fault plan, `repetitions` times. `study` names the question that
    its report answers with a further table and figure; loading a config with an unknown study fails."""

    model: Lookup[Name, ModelEntry] = Field(default_factory=dict, max_length=MOST)
    """Models, by name. A table that `models` does not name is read and not run."""

    @model_validator(mode="after")
    def _resolved(self) -> Config:
        for what in ("scenarios", "architectures", "models", "plans"):
            names = getattr(self, what)
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{what}: '{name}' appears twice")
        for name in self.models:
            if name not in self.model:
                table = f'[model.{name}] with the line kind = "openai"'
                add = f'for another add the table {table}, and base_url = "URL" where it is not OpenAI\'s'
                raise ValueError(f"unknown model '{name}'; {nearest(name, self.model)}; {add}")
        for name in self.plans:
            if name not in self.plan and name != FAULT_FREE:
                raise ValueError(f"unknown fault plan '{name}'; {nearest(name, [*self.plan, 'none'])}")
        return self

    def format_of(self, model: str) -> AnswerFormat:
        """Return the form in which this model is asked to answer."""
        entry = self.model.get(model)
        return (entry.answer_format if entry else None) or self.answer_format

    def tags_of(self, model: str) -> Tags:
        """Return the pairs of tags around this model's drafts, and of the models to which it passes requests on."""
        entry = self.model.get(model)
        asked = [answering for answering in (entry, *map(self.model.get, entry.passes_on_to if entry else ())) if answering]
        return tuple(dict.fromkeys((*THINK, *(pair for answering in asked for pair in answering.draft_tags))))

    def policies(self) -> dict[str, LearnedPolicy]:
        """Return the learned policies of the architectures. Raises ConfigError for a file that is none."""
        files = {name: self.architecture[name].policy for name in self.architectures if name in self.architecture}
        return {name: read_policy(file) for name, file in files.items() if file}

    @model_validator(mode="after")
    def _asked_as_they_can_be(self) -> Config:
        for name in self.models:
            entry = self.model.get(name)
            if entry and (why := entry.misfit(self.format_of(name))):
                raise ValueError(f"model '{name}': {why}")
        return self

    @model_validator(mode="after")
    def _routes_end(self) -> Config:
        for name, entry in self.model.items():
            for target in entry.passes_on_to:
                if target not in self.model:
                    raise ValueError(f"model '{name}' routes to an unknown model '{target}'; {nearest(target, self.model)}")
                if self.model[target].passes_on_to:
                    raise ValueError(f"model '{name}' routes to '{target}', which is routed itself; name a model that answers")
                if (form := self.format_of(name)) != (other := self.format_of(target)):
                    problem = (
                        f"model '{name}' is asked for {form} answers and routes to '{target}', which is asked for {other} ones"
                    )
                    raise ValueError(f"{problem}; give both the same answer_format")
        return self


def load_config(path: Path, overrides: Mapping[str, Any], models: Mapping[str, Mapping[str, Any]] | None = None) -> Config:
    """Read a config, replace keys by the overrides that are not None, and add `models` to its models.

    Raises ConfigError for an unreadable file, no TOML, an unknown key, or a value that does not fit.
    """
    values = {**read_toml(path), **{key: value for key, value in overrides.items() if value is not None}}
    if models and isinstance(tables := values.get("model", {}), dict):
        values["model"] = {**tables, **models}
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    """Return the first error in one line. An unknown key comes first, with the nearest known key: if a key is misspelt, the
    right one is missing as well."""
    first = first_violation(error, "extra_forbidden")
    place = first.place
    if first.kind == "extra_forbidden":
        if place in RENAMED:
            return f"the key '{place}' is called '{RENAMED[place]}' now; rename it in the config"
        return f"unknown key '{place}'; {nearest(place.rpartition('.')[2], _keys_beside(place.split('.')))}"
    return first.line


def _keys_beside(names: Sequence[str]) -> list[str]:
    tables: Mapping[str, list[type[BaseModel]]] = {
        "architecture": [ArchitectureEntry],
        "model": [part.settings for part in MODELS],
        "plan": [FaultEntry] if len(names) > 3 else [PlanEntry],
        "back_off": [BackOffEntry],
    }
    beside = tables.get(names[0], [Config]) if len(names) > 1 else [Config]
    return [key for table in beside for key in table.model_fields]
