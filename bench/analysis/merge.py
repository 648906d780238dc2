"""Several runs that met the same faults, each with architectures or models of its own, seen as one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import pandas as pd

from bench.analysis.apart import apart, recorded_id
from bench.analysis.arms import instances_of
from bench.analysis.frames import Run, ranks
from bench.analysis.shared import Labelled, Shared, differing_settings, labelled, shared_by
from bench.errors import ResultsError
from bench.experiment.config import StoredConfig
from bench.experiment.manifest import Manifest, ManifestPack
from bench.experiment.model_parameters import ModelParameters
from bench.experiment.reading import read_trials
from bench.experiment.record import TrialRecord

Entry = TypeVar("Entry")
OWN = frozenset(("name", "seed", "repetitions", "instances", "study", "architecture", "plan")) | {
    *("scenarios", "architectures", "models", "plans")
}
"""Keys of a config that are looked at one by one; where any other differs, the report says so."""
ORDER = ("scenario", "model", "plan", "instance", "repetition", "architecture")
"""That of the rows of a run."""


def merge(runs: Sequence[Run]) -> Run:
    """One run that holds the trials of all under what they share, in the first one's order; a single run is itself.

    Its trials may be paired by (instance, repetition), for they met the same draws. What not all runs share is left out; what
    has one name in two of them and is not one thing gets a name of its own (`bench.analysis.apart`); the notes say both. Raises
    ResultsError, naming what differs, where nothing is shared.
    """
    if len(runs) == 1:
        return runs[0]
    by_label = labelled(runs)
    shared = shared_by(by_label)
    beside: list[Run] = []
    for label, run in by_label.items():
        kept = shared.only(run)
        if kept.trials.empty:
            others = " and ".join(other for other in by_label if other != label)
            raise ResultsError(f"{label} holds no trial of what it shares with {others}")
        beside.append(apart(kept, beside, label))
    merged = _manifest(beside, shared)
    frames = {name: _joined(merged.config, [run.frames[name] for run in beside]) for name in runs[0].frames}
    return replace(
        runs[0].having(frames),
        manifest=merged,
        sessions=tuple(chain.from_iterable(run.sessions for run in runs)),
        errors_rerun=sum(run.errors_rerun for run in runs),
        regrades=tuple(regrade for run in runs for regrade in run.regrades if regrade.scenario in merged.scenarios),
        parts=tuple(runs),
        folder=None,
        rerun=frozenset(chain.from_iterable(run.rerun for run in beside)),
        notes=tuple(_notes(by_label, shared, beside)),
    )


def records_of(run: Run) -> Iterator[TrialRecord] | None:
    """The records of the run's trials, under the names that they have in it, superseded ones before their successors; None
    where they cannot be read again. Raises ResultsError where a folder is gone."""
    parts = labelled(run.parts or (run,))
    return None if any(part.folder is None for part in parts.values()) else _records(run, parts)


def _records(run: Run, parts: Labelled) -> Iterator[TrialRecord]:
    trials = run.trials[["trial", "architecture", "model"]].itertuples(index=False, name=None)
    names = {trial: (architecture, model) for trial, architecture, model in trials}
    for label, part in parts.items():
        assert part.folder is not None
        apart_here = {recorded_id(trial): trial for trial in names if trial.endswith(f" ({label})")}
        for record in part.records or read_trials(part.folder):
            trial = apart_here.get(record.id, record.id)
            if trial in names:
                architecture, model = names[trial]
                yield replace(record, id=trial, architecture=architecture, model=model)


def _notes(runs: Labelled, shared: Shared, beside: Sequence[Run]) -> Iterator[str]:
    if shared.left_out:
        yield f"Only what all runs share is shown. Left out: {'; '.join(shared.left_out)}."
    for key in differing_settings(runs.values(), OWN):
        yield f"These runs differ in the config's {key}, so that a difference may be that one's alone."
    yield from chain.from_iterable(run.notes for run in beside)


def _manifest(runs: Sequence[Run], shared: Shared) -> Manifest:
    """The first manifest, with the names of all; what each says of its code and machine stands in its own."""
    manifests, configs = [run.manifest for run in runs], [run.config for run in runs]
    packs = {pack for pack, _ in shared.cases}
    scenarios = tuple(name for name in runs[0].names("scenario") if name in packs)
    united: dict[str, object] = {
        "architectures": tuple(dict.fromkeys(name for config in configs for name in config.architectures)),
        "models": tuple(dict.fromkeys(name for config in configs for name in config.models)),
        "scenarios": scenarios,
        "plans": tuple(name for name in runs[0].names("plan") if name in shared.plans),
        "architecture": _united(config.architecture for config in configs),
        "plan": {name: plan for name, plan in configs[0].plan.items() if name in shared.plans},
        "repetitions": max(config.repetitions for config in configs),
        "study": configs[0].study if len({config.study for config in configs}) == 1 else None,
    }
    tables: dict[str, object] = {
        "scenarios": {name: _pack(manifests, name) for name in scenarios},
        "models": _models(manifests),
        "architectures": _united(manifest.architectures for manifest in manifests),
        "policies": _united(manifest.policies for manifest in manifests),
        "name": " + ".join(run.name for run in runs),
        "config": configs[0].model_copy(update=united),
    }
    return manifests[0].model_copy(update=tables)


def _united(tables: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    return {name: entry for table in tables for name, entry in table.items()}


def _pack(manifests: Sequence[Manifest], name: str) -> ManifestPack:
    """The pack in the run with the fewest instances, which are those that all have."""
    return min((manifest.scenarios[name] for manifest in manifests), key=lambda pack: len(pack.instances))


def _models(manifests: Sequence[Manifest]) -> dict[str, ModelParameters]:
    """A model that took replies over in any of the runs says from where in all."""
    models = _united(manifest.models for manifest in manifests)
    for name, parameters in models.items():
        every = (manifest.models[name] for manifest in manifests if name in manifest.models)
        taken = {(run.name, run.digest): run for model in every for run in model.cache_from}
        if taken:
            models[name] = parameters.model_copy(update={"cache_from": tuple(taken.values())})
    return models


def _joined(config: StoredConfig, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows in the order in which `load_run` puts those of one run."""
    rows = pd.concat([frame for frame in frames if len(frame)] or [frames[0]], ignore_index=True)
    columns = {column: _placed(config, column, rows) for column in ORDER}
    order = pd.DataFrame(columns, index=rows.index).sort_values(list(ORDER), kind="stable").index
    return rows.loc[order].reset_index(drop=True)


def _placed(config: StoredConfig, column: str, rows: pd.DataFrame) -> list[Any]:
    """By what rows are sorted: a name's place in the config, else the value itself."""
    if column == "instance":
        return instances_of(rows)
    if column == "repetition":
        return rows[column].tolist()
    places = ranks(config, column)
    return [places.get(name, len(places)) for name in rows[column]]
