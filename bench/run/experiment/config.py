"""An experiment's config in TOML: read and checked. `configs/smoke.toml` is a short example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from bench.common.bounds import Lookup
from bench.common.errors import ConfigError, nearest
from bench.common.paths import CONFIGS, STUDIES_FOLDER
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.config import FAULT_FREE, BackOffEntry, Name, StoredConfig
from bench.record.entry import MAX_ENTRIES
from bench.record.formats import AnswerFormat
from bench.record.policy import LearnedPolicy, read_policy
from bench.run.experiment.model_entries import MODELS, ModelEntry
from bench.run.experiment.plan_entries import WrittenFault, WrittenPlan
from bench.run.trial.drafts import KNOWN_TAGS, Tags

RENAMED_KEYS = {"experiment": "study", "ask_once": "cache", "asked_in": "cache_from"}
"""Keys of earlier configs -> their present names."""


class Config(StoredConfig):
    """One experiment: every scenario x architecture x model x fault plan, `repetitions` times. `study` names the question that
    its report answers with a further table and figure; loading a config with an unknown study fails."""

    model: Lookup[Name, ModelEntry] = Field(default_factory=dict, max_length=MAX_ENTRIES)
    """Models, by name. A table that `models` does not name is read and not run."""
    plan: Lookup[Name, WrittenPlan] = Field(default_factory=dict, max_length=MAX_ENTRIES)
    """Fault plans, by name."""

    @model_validator(mode="after")
    def _require_known_names(self) -> Config:
        """Raise ValueError for a name that appears twice, and for an unknown model or plan."""
        for key in ("scenarios", "architectures", "models", "plans"):
            names = getattr(self, key)
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{key}: '{name}' appears twice")
        for name in self.models:
            if name not in self.model:
                table = f'[model.{name}] with the line kind = "openai"'
                advice = f'for another add the table {table}, and base_url = "URL" where it is not OpenAI\'s'
                raise ValueError(f"unknown model '{name}'; {nearest(name, self.model)}; {advice}")
        for name in self.plans:
            if name not in self.plan and name != FAULT_FREE:
                raise ValueError(f"unknown fault plan '{name}'; {nearest(name, [*self.plan, 'none'])}")
        return self

    def format_of(self, model: str) -> AnswerFormat:
        """Return the answer format in which this model is asked."""
        entry = self.model.get(model)
        return (entry.answer_format if entry else None) or self.answer_format

    def tags_of(self, model: str) -> Tags:
        """Return the pairs of tags around the drafts of this model and of the models that it routes to."""
        entry = self.model.get(model)
        entries = (entry, *map(self.model.get, entry.passes_on_to)) if entry else ()
        pairs = [pair for answering in entries if answering for pair in answering.draft_tags]
        return tuple(dict.fromkeys((*KNOWN_TAGS, *pairs)))

    def policies(self) -> dict[str, LearnedPolicy]:
        """Return the learned policies of the architectures, by name. Raises ConfigError for a file that is no policy."""
        files = {name: self.architecture[name].policy for name in self.architectures if name in self.architecture}
        return {name: read_policy(file) for name, file in files.items() if file}

    @model_validator(mode="after")
    def _refuse_unsuitable_formats(self) -> Config:
        """Refuse a model that cannot be asked in its answer format."""
        for name in self.models:
            entry = self.model.get(name)
            if entry and (why := entry.misfit(self.format_of(name))):
                raise ValueError(f"model '{name}': {why}")
        return self

    @model_validator(mode="after")
    def _refuse_bad_routes(self) -> Config:
        """Refuse a route to an unknown model, to a routed model, or to a model with another answer format."""
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
    if not path.exists() and (hint := _hint_at_config(path)):
        raise ConfigError(f"{path}: cannot be read: there is no such file; {hint}")
    values = {**read_toml(path), **{key: value for key, value in overrides.items() if value is not None}}
    if models and isinstance(tables := values.get("model", {}), dict):
        values["model"] = {**tables, **models}
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first_error_line(error, values)}") from error


def _hint_at_config(path: Path) -> str:
    """Return a hint for a path without a config: a config of the same name in another folder, or the nearest names; "" if there
    are no configs."""
    configs = [*CONFIGS.glob("*.toml"), *STUDIES_FOLDER.glob("*/*.toml")]
    for config in configs:
        if path.stem in (config.stem, config.parent.name):
            return f"did you mean '{config.as_posix()}'?"
    return nearest(path.as_posix(), [config.as_posix() for config in configs]) if configs else ""


def _first_error_line(error: ValidationError, values: Mapping[str, Any]) -> str:
    """Return the first error as one line. An unknown key comes first, with the nearest known key: if a key is misspelt, another
    error says that the right key is missing."""
    first = first_violation(error, "extra_forbidden", value=values)
    place = first.place
    if first.kind == "extra_forbidden":
        if place in RENAMED_KEYS:
            return f"the key '{place}' is called '{RENAMED_KEYS[place]}' now; rename it in the config"
        return f"unknown key '{place}'; {nearest(str(first.path[-1]), _keys_beside(first.path))}"
    return first.line


def _keys_beside(names: Sequence[str | int]) -> list[str]:
    """Return the keys that the table of the key with this path can have."""
    tables: Mapping[str, list[type[BaseModel]]] = {
        "architecture": [ArchitectureEntry],
        "model": [part.settings for part in MODELS],
        "plan": [WrittenFault] if len(names) > 3 else [WrittenPlan],
        "back_off": [BackOffEntry],
    }
    possible_tables = tables.get(str(names[0]), [Config]) if len(names) > 1 else [Config]
    return [key for table in possible_tables for key in table.model_fields]
