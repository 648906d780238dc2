"""Several runs of one experiment, each on models of its own, seen as one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd

from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.config import Config

OWN = frozenset({"name", "models", "repetitions"})
"""What may differ between the configs of runs that are compared: trials are paired by repetition, so far as both have it."""


def together(runs: Sequence[Run]) -> Run:
    """One run that holds the trials of all, in the first one's order; a single run is itself.

    Raises ResultsError, naming what differs, unless all have the same packs, seed, fault plans and settings, and no model
    in common: then the seeds of a repetition are the same in all of them, and its trials may be paired.
    """
    first, *others = runs
    if not others:
        return first
    for place, other in enumerate(others, 1):
        _refuse_other_experiment(first, other)
        for earlier in runs[:place]:
            _refuse_shared_models(earlier, other)
    return Run(
        manifest=_manifest(runs),
        sessions=tuple(chain.from_iterable(run.sessions for run in runs)),
        trials=_joined(runs, [run.trials for run in runs]),
        calls=_joined(runs, [run.calls for run in runs]),
        faults=_joined(runs, [run.faults for run in runs]),
        outputs=_joined(runs, [run.outputs for run in runs]),
        waits=_joined(runs, [run.waits for run in runs]),
        errors_rerun=sum(run.errors_rerun for run in runs),
        parts=tuple(runs),
        rerun=frozenset(chain.from_iterable(run.rerun for run in runs)),
    )


def name_of(run: Run) -> str:
    return str(run.manifest.get("name", "without a name"))


def _manifest(runs: Sequence[Run]) -> dict[str, Any]:
    """The first one's, with the names and models of all; what each says of its code and machine stands in its own."""
    first = runs[0].manifest
    config = {
        **first["config"],
        "models": [model for run in runs for model in run.manifest["config"]["models"]],
        "repetitions": max(run.manifest["config"]["repetitions"] for run in runs),
    }
    models = {name: parameters for run in runs for name, parameters in run.manifest["models"].items()}
    return {**first, "name": " + ".join(map(name_of, runs)), "config": config, "models": models}


def _refuse_other_experiment(first: Run, other: Run) -> None:
    for what, one, two in _what_must_agree(first.manifest, other.manifest):
        if one != two:
            raise ResultsError(f"{name_of(first)} and {name_of(other)} are no runs of one experiment: they differ in {what}")


def _what_must_agree(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterable[tuple[str, object, object]]:
    """(what, in the one, in the other)."""
    yield "the ruler for tokens", one.get("ruler"), two.get("ruler")
    for key in sorted((one["config"].keys() | two["config"].keys()) - OWN):
        yield f"the config's {key}", _setting(one["config"], key), _setting(two["config"], key)
    for name in one["scenarios"]:
        found = two["scenarios"].get(name, {})
        yield f"the version of the pack {name}", one["scenarios"][name]["digest"], found.get("digest")


def _setting(config: Mapping[str, Any], key: str) -> object:
    """Lists of names mean the same in any order; a key that the format did not have yet stood at its default."""
    field = Config.model_fields.get(key)
    default = field.get_default(call_default_factory=True) if field else None
    value = config.get(key, default)
    return sorted(value) if isinstance(value, list) else value


def _refuse_shared_models(one: Run, two: Run) -> None:
    for model in one.manifest["models"]:
        if model in two.manifest["models"]:
            said = f"{name_of(one)} and {name_of(two)} both hold a model '{model}'"
            raise ResultsError(f"{said}: whose trials were which could not be told; give it another name in one config")


def _joined(runs: Sequence[Run], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows in the order in which `load_run` puts those of one run: scenario, model, plan, repetition, architecture."""
    names = dict.fromkeys(chain.from_iterable(run.names("scenario") for run in runs))
    ranks = {name: place for place, name in enumerate(names)}
    rows = pd.concat([frame for frame in frames if len(frame)] or [frames[0]], ignore_index=True)
    return rows.sort_values("scenario", key=lambda column: column.map(ranks), kind="stable", ignore_index=True)
