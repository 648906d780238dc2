"""Write a trial, under some of its plan's strikes, as a config that anyone can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tomli_w

from bench.record.config import FAULT_FREE
from bench.run.experiment.config import Config
from bench.run.trial.faults import Fault


def config_text(config: Config, suffix: str, faults: Sequence[Fault], head: Sequence[str]) -> str:
    """Return the text of a config with one plan and its control, in TOML.

    It has the same draws as the given config, because seed, names and each fault's place in its plan are the same.

    Args:
        config: The experiment, with one plan.
        suffix: Added to the experiment's name.
        faults: The plan's faults; like the config's faults, except for triggers and strikes.
        head: Lines of comment at the beginning.
    """
    [plan] = config.plans
    values: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    values |= {"name": f"{config.name}-{suffix}", "plans": [FAULT_FREE, plan]}
    values.pop("study", None)
    tables = {
        "architecture": [name for name in config.architectures if name in config.architecture],
        "model": [name for model in config.models for name in (model, *config.model[model].passes_on_to)],
    }
    for table, names in tables.items():
        values[table] = {name: values[table][name] for name in names}
    entries = [entry.model_dump(mode="json", exclude_defaults=True) for entry in config.faults_of(plan)]
    for entry, fault in zip(entries, faults, strict=True):
        if fault.probability:
            entry["probability"] = fault.probability
            entry.pop("attempts", None)
        entry["only"] = [vars(strike) for strike in fault.only or ()]
    values["plan"] = {plan: {"faults": entries}}
    values = {key: value for key, value in values.items() if value != {}}
    return "\n".join((*(f"# {line}" for line in head), tomli_w.dumps(values)))
