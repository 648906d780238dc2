"""What `bench shrink` found, as a config that anyone can run."""

from __future__ import annotations

from typing import Any

import tomli_w

from bench.experiment.config import FAULT_FREE
from bench.studies.counterfactual.shrink import Shrunk


def config_text(shrunk: Shrunk) -> str:
    """Return a config in TOML: the trial's arm under the fewest strikes, beside its control.

    Its draws are those of the run, since seed, names and the place of each fault in its plan are the same.
    """
    config = shrunk.original.matrix.config
    values: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    values |= {"name": f"{config.name}-shrunk", "plans": [FAULT_FREE, *config.plans], "plan": {}}
    values.pop("study", None)
    values["architecture"] = {
        name: values["architecture"][name] for name in config.architectures if name in config.architecture
    }
    values["model"] = {name: values["model"][name] for name in (*config.models, *config.model[config.models[0]].passes_on_to)}
    faults = [entry.model_dump(mode="json", exclude_defaults=True) for entry in config.faults_of(*config.plans)]
    for fault, struck in zip(faults, shrunk.plan.faults, strict=True):
        fault["only"] = [
            {"target": one.target, "attempt": one.attempt, "key": one.key, "sample": one.sample} for one in struck.only or ()
        ]
    values["plan"] = {config.plans[0]: {"faults": faults}}
    if not values["architecture"]:
        del values["architecture"]
    return "\n".join((*(f"# {line}" for line in _head(shrunk)), tomli_w.dumps(values)))


def _head(shrunk: Shrunk) -> list[str]:
    record = shrunk.original.record
    lines = [
        f"The fewest faults that break trial {record.id} of {shrunk.original.folder.name}: "
        f"{len(shrunk.fewest)} of the {len(shrunk.struck)} that struck it.",
        f"It ended {shrunk.failure.words}; without any fault it ends {shrunk.control.words}.",
    ]
    if record.repetition > 1:
        lines.append(f"The trial is repetition {record.repetition}, the last that this config runs.")
    return lines
