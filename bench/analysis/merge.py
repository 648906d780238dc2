"""Several runs that met the same faults, each with architectures or models of its own, seen as one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any

import pandas as pd
from pydantic import BaseModel

from bench.analysis.apart import apart, recorded_id
from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.analysis.shared import Labelled, Shared, labelled, shared_by
from bench.errors import ResultsError
from bench.experiment.config import Config
from bench.experiment.reading import read_trials
from bench.experiment.record import TrialRecord

OWN = frozenset(("name", "seed", "repetitions", "instances", "study", "architecture", "plan")) | {
    *("scenarios", "architectures", "models", "plans")
}
"""Keys of a config that are looked at one by one; where any other differs, the report says so."""
ORDER = ("scenario", "model", "fault", "instance", "repetition", "architecture")
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
    frames: dict[str, Any] = {name: _joined(merged, [getattr(run, name) for run in beside]) for name in _frames(runs[0])}
    return replace(
        replace(runs[0], **frames),
        manifest=merged,
        sessions=tuple(chain.from_iterable(run.sessions for run in runs)),
        errors_rerun=sum(run.errors_rerun for run in runs),
        regrades=tuple(one for run in runs for one in run.regrades if one.scenario in merged["scenarios"]),
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


def _frames(run: Run) -> list[str]:
    return [one.name for one in fields(run) if isinstance(getattr(run, one.name), pd.DataFrame)]


def _notes(runs: Labelled, shared: Shared, beside: Sequence[Run]) -> Iterator[str]:
    if shared.left_out:
        yield f"Only what all runs share is shown. Left out: {'; '.join(shared.left_out)}."
    for key in _differing(run.config for run in runs.values()):
        yield f"These runs differ in the config's {key}, so that a difference may be that one's alone."
    yield from chain.from_iterable(run.notes for run in beside)


def _differing(configs: Iterable[Mapping[str, Any]]) -> list[str]:
    first, *others = configs
    keys = sorted({*first, *chain.from_iterable(others)} - OWN)
    return [key for key in keys if any(_setting(other, key) != _setting(first, key) for other in others)]


def _setting(config: Mapping[str, Any], key: str) -> object:
    """A key that the format did not have yet stood at its default."""
    field = Config.model_fields.get(key)
    default = field.get_default(call_default_factory=True) if field else None
    return config.get(key, default.model_dump(mode="json") if isinstance(default, BaseModel) else default)


def _manifest(runs: Sequence[Run], shared: Shared) -> dict[str, Any]:
    """The first one's, with the names of all; what each says of its code and machine stands in its own."""
    manifests, configs = [run.manifest for run in runs], [run.config for run in runs]
    packs = {pack for pack, _ in shared.cases}
    config = {
        **configs[0],
        **{key: list(dict.fromkeys(chain.from_iterable(one[key] for one in configs))) for key in ("architectures", "models")},
        "scenarios": [name for name in runs[0].names("scenario") if name in packs],
        "plans": [name for name in runs[0].names("fault") if name in shared.plans],
        "architecture": _united(one.get("architecture", {}) for one in configs),
        "plan": {name: text for name, text in configs[0].get("plan", {}).items() if name in shared.plans},
        "repetitions": max(one["repetitions"] for one in configs),
        "study": configs[0].get("study") if len({one.get("study") for one in configs}) == 1 else None,
    }
    tables = {
        "scenarios": {name: _pack(manifests, name) for name in config["scenarios"]},
        "models": _models(manifests),
        "architectures": _united(manifest.get("architectures", {}) for manifest in manifests),
    }
    return {**manifests[0], **tables, "name": " + ".join(run.name for run in runs), "config": config}


def _united(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: entry for table in tables for name, entry in table.items()}


def _pack(manifests: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """That of the run with the fewest instances, which are those that all have."""
    packs: list[Mapping[str, Any]] = [manifest["scenarios"][name] for manifest in manifests]
    return min(packs, key=lambda pack: len(pack.get("instances", ())))


def _models(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A model that took replies over in any of the runs says from where in all."""
    models = _united(manifest["models"] for manifest in manifests)
    for name, settings in models.items():
        taken = [one for manifest in manifests for one in manifest["models"].get(name, {}).get("cache_from", ())]
        if taken:
            models[name] = {**settings, "cache_from": [one for place, one in enumerate(taken) if one not in taken[:place]]}
    return models


def _joined(manifest: Mapping[str, Any], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows in the order in which `load_run` puts those of one run."""
    rows = pd.concat([frame for frame in frames if len(frame)] or [frames[0]], ignore_index=True)
    columns = {column: _placed(manifest, column, rows) for column in ORDER}
    order = pd.DataFrame(columns, index=rows.index).sort_values(list(ORDER), kind="stable").index
    return rows.loc[order].reset_index(drop=True)


def _placed(manifest: Mapping[str, Any], column: str, rows: pd.DataFrame) -> list[Any]:
    """By what rows are sorted: a name's place in the config, else the value itself."""
    if column == "instance":
        return instances_of(rows)
    if column == "repetition":
        return rows[column].tolist()
    names = manifest["config"]["plans" if column == "fault" else f"{column}s"]
    ranks = {name: place for place, name in enumerate(names)}
    return [ranks.get(name, len(ranks)) for name in rows[column]]
