"""A trial under some strikes of its plan, as a config that anyone can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tomli_w

from bench.experiment.config import FAULT_FREE, Config
from bench.runtime.faults import Fault


def config_text(config: Config, suffix: str, faults: Sequence[Fault], head: Sequence[str]) -> str:
    """Return a config of one plan in TOML, beside its control.

    Its draws are those of the config given, since seed, names and the place of each fault in its plan are the same.

    Args:
        config: The experiment, of one plan.
        suffix: What is added to the experiment's name.
        faults: The plan's faults; those of the config, but for their triggers and strikes.
        head: Lines of comment, put before all else.
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
