"""Merge several runs under the same faults, with different architectures or models, into one run.

If two runs use the same name for different architectures or models, one of them is renamed to `NAME (run)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import pandas as pd

from bench.common.errors import ResultsError
from bench.common.registry import is_path
from bench.read.analysis.blocks import CONFIG_COLUMNS, ranks
from bench.read.analysis.frames import Run
from bench.read.analysis.pairing import (
    Counterpart,
    Labelled,
    Shared,
    TrialPlace,
    differing_settings,
    label_runs,
    places_of,
    shared_by,
)
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.config import StoredConfig
from bench.record.described import Described
from bench.record.manifest import Manifest
from bench.record.model_parameters import ModelParameters
from bench.record.origin import digests_text, names_package
from bench.record.reading import read_trials
from bench.record.record import TrialRecord

Entry = TypeVar("Entry")
MERGED_KEYS = frozenset(("name", "seed", "repetitions", "instances", "study", "architecture", "plan")) | {
    *("scenarios", "architectures", "models", "plans")
}
"""The config keys that are merged or compared one by one. If another key differs, a note says so."""
REPLY_SOURCES = ("cache", "cache_from")
"""The settings that say where a model's replies came from. They do not change what the model answers."""
_KINDS = {"model": "a model", "architecture": "an architecture"}


def merge(runs: Sequence[Run]) -> Run:
    """Return one run with the trials of all runs on the instances and fault plans that they share, in the first run's order. A
    single run is returned as it is.

    Trials can be paired by (instance, repetition), because their random draws were the same. Instances and plans that not all
    runs share are left out. Architectures and models that have the same name in two runs but differ are renamed. The notes say
    both. Raises ResultsError, naming what differs, if the runs share nothing.
    """
    if len(runs) == 1:
        return runs[0]
    by_label = label_runs(runs)
    shared = shared_by(by_label)
    parts: list[Run] = []
    for label, run in by_label.items():
        part = shared.part_of(run)
        if part.trials.empty:
            others = " and ".join(other for other in by_label if other != label)
            raise ResultsError(f"{label} holds no trial of what it shares with {others}")
        parts.append(_with_distinct_names(part, parts, label))
    merged = _manifest(parts, shared)
    frames = {name: _join(merged.config, [run.frames[name] for run in parts]) for name in runs[0].frames}
    return replace(
        runs[0].replace_frames(frames),
        manifest=merged,
        sessions=tuple(chain.from_iterable(run.sessions for run in runs)),
        errors_rerun=sum(run.errors_rerun for run in runs),
        regrades=tuple(regrade for run in runs for regrade in run.regrades if regrade.scenario in merged.scenarios),
        parts=tuple(runs),
        folder=None,
        rerun=frozenset(chain.from_iterable(run.rerun for run in parts)),
        notes=tuple(_notes(by_label, shared, parts)),
    )


def records_of(run: Run, only: Collection[str] | None = None) -> Iterator[TrialRecord] | None:
    """Return the records of the run's trials, or of the ids in `only`, with the names that they have in this run. A superseded
    record comes before its successor. None if a part of the run has no folder. Raises ResultsError if a folder is gone."""
    parts = label_runs(run.recorded)
    return None if any(part.folder is None for part in parts.values()) else _records(run, parts, only)


def _records(run: Run, parts: Labelled, only: Collection[str] | None) -> Iterator[TrialRecord]:
    """Yield the records of the run's trials (`records_of`), part by part."""
    trials = run.trials[["trial", "architecture", "model"]].itertuples(index=False, name=None)
    names = {trial: (architecture, model) for trial, architecture, model in trials if only is None or trial in only}
    recorded_ids = None if only is None else frozenset(map(_recorded_id, names))
    for label, part in parts.items():
        assert part.folder is not None
        renamed = {_recorded_id(trial): trial for trial in names if trial.endswith(f" ({label})")}
        for record in read_trials(part.folder, recorded_ids):
            trial = renamed.get(record.id, record.id)
            if trial in names:
                architecture, model = names[trial]
                is_same = record.id == trial and record.architecture == architecture and record.model == model
                yield record if is_same else replace(record, id=trial, architecture=architecture, model=model)


def _notes(runs: Labelled, shared: Shared, parts: Sequence[Run]) -> Iterator[str]:
    """Yield notes on what was left out, in which settings the runs differ, and what was renamed."""
    if shared.left_out:
        yield f"Only what all runs share is shown. Left out: {'; '.join(shared.left_out)}."
    for key in differing_settings(runs.values(), MERGED_KEYS):
        yield f"These runs differ in the config's {key}, so that a difference may be that one's alone."
    yield from chain.from_iterable(run.notes for run in parts)


def _manifest(runs: Sequence[Run], shared: Shared) -> Manifest:
    """Return the first run's manifest with the architectures and models of all runs. The code and the machine of the others are
    not in it."""
    manifests, configs = [run.manifest for run in runs], [run.config for run in runs]
    packs = {pack for pack, _ in shared.cases}
    scenarios = tuple(name for name in runs[0].names("scenario") if name in packs)
    merged_config: dict[str, object] = {
        "architectures": tuple(dict.fromkeys(name for config in configs for name in config.architectures)),
        "models": tuple(dict.fromkeys(name for config in configs for name in config.models)),
        "scenarios": scenarios,
        "plans": tuple(name for name in runs[0].names("plan") if name in shared.plans),
        "architecture": _union(config.architecture for config in configs),
        "plan": {name: plan for name, plan in configs[0].plan.items() if name in shared.plans},
        "repetitions": max(config.repetitions for config in configs),
        "study": configs[0].study if len({config.study for config in configs}) == 1 else None,
    }
    merged: dict[str, object] = {
        "scenarios": {  # every run has the instances of the run with the fewest
            name: min((manifest.scenarios[name] for manifest in manifests), key=lambda pack: len(pack.instances))
            for name in scenarios
        },
        "models": _models(manifests),
        "architectures": _union(manifest.architectures for manifest in manifests),
        "described": Described(
            architectures=_union(manifest.descriptions.architectures for manifest in manifests),
            effects=_union(manifest.descriptions.effects for manifest in manifests),
        ),
        "policies": _union(manifest.policies for manifest in manifests),
        "name": " + ".join(run.name for run in runs),
        "config": configs[0].model_copy(update=merged_config),
    }
    return manifests[0].model_copy(update=merged)


def _union(tables: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    """Return one table with the entries of all tables. Of entries with the same name the last is kept."""
    return {name: entry for table in tables for name, entry in table.items()}


def _models(manifests: Sequence[Manifest]) -> dict[str, ModelParameters]:
    """Return the parameters of each model. Its `cache_from` has the sources of reused replies in all runs."""
    models = _union(manifest.models for manifest in manifests)
    for name, parameters in models.items():
        of_runs = (manifest.models[name] for manifest in manifests if name in manifest.models)
        sources = {(source.name, source.digest): source for model in of_runs for source in model.cache_from}
        if sources:
            models[name] = parameters.model_copy(update={"cache_from": tuple(sources.values())})
    return models


def _join(config: StoredConfig, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all runs' frames, in the order of `load_run`."""
    rows = pd.concat([frame for frame in frames if len(frame)] or [frames[0]], ignore_index=True)
    rank_of = {column: ranks(config, column) for column in CONFIG_COLUMNS}

    def sort_key(place: TrialPlace) -> list[Any]:
        """Return the fields by which a row is sorted. A name in the config becomes its rank there."""
        values = place._asdict().items()
        return [rank_of[column].get(value, len(rank_of[column])) if column in rank_of else value for column, value in values]

    keys = list(map(sort_key, places_of(rows)))
    return rows.iloc[sorted(range(len(rows)), key=keys.__getitem__)].reset_index(drop=True)


# Architectures and models that have the same name in two runs but differ


def _with_distinct_names(run: Run, earlier: Sequence[Run], label: str) -> Run:
    """Return the run, changed so that it can be joined with earlier runs. Its notes say what changed.

    A model with other settings than in an earlier run is renamed. An architecture is renamed if an earlier run defines it
    differently, measured something else in the same trial, or has trials of the same arm by other code: such trials are never
    pooled. A trial that an earlier run has as well, with the same record, is removed.
    """
    run = _rename(run, "model", _differently_defined(run, earlier, "model", _model_settings), label)
    earlier_rows = {place: row for other in earlier for place, row in _measurements(other).items()}
    common = {place: row == earlier_rows[place] for place, row in _measurements(run).items() if place in earlier_rows}
    changed = {place.architecture for place, is_equal in common.items() if not is_equal}
    changed |= {*_differently_defined(run, earlier, "architecture", _definition), *_architectures_of_other_code(run, earlier)}
    renamed = [name for name in run.names("architecture") if name in changed]
    run = _without_trials(run, {place for place in common if place.architecture not in renamed}, label)
    return _rename(run, "architecture", renamed, label)


def _recorded_id(trial: str) -> str:
    """Return the id under which a trial is recorded: the id without the label of a run."""
    return trial.partition(" ")[0]


def _measurements(run: Run) -> Mapping[TrialPlace, tuple[object, ...]]:
    """Return the place of each trial -> its row: its id and all that was measured in it."""
    rows = run.trials.astype(object).where(run.trials.notna(), None)
    return dict(zip(places_of(run.trials), rows.itertuples(index=False, name=None), strict=True))


def _differently_defined(
    run: Run, earlier: Sequence[Run], column: Counterpart, defined: Callable[[Run, str], object]
) -> list[str]:
    """Return the names in the run that an earlier run has with another definition. `defined` returns the definition of a name
    in a run."""
    holders = {name: [other for other in earlier if name in other.names(column)] for name in run.names(column)}
    return [name for name, others in holders.items() if any(defined(other, name) != defined(run, name) for other in others)]


def _architectures_of_other_code(run: Run, earlier: Sequence[Run]) -> Iterator[str]:
    """Yield the architectures of which an earlier run has trials in the same arm that other code ran."""
    arms = {place.arm for place in places_of(run.trials)}
    for other in earlier:
        if digests_text(other.manifest.codes) != digests_text(run.manifest.codes):
            yield from (place.architecture for place in places_of(other.trials) if place.arm in arms)


def _model_settings(run: Run, model: str) -> object:
    """Return the settings of a model that can change its answers."""
    return {key: value for key, value in run.parameters_of(model).shown.items() if key not in REPLY_SOURCES}


def _definition(run: Run, name: str) -> object:
    """Return a variant's settings, and the digest of its code if that is a file or another package's. The digest of our code is
    the run's."""
    variant = run.config.architecture.get(name, ArchitectureEntry(base=name))
    digest = run.manifest.architectures.get(name, "")
    return variant.model_dump(), digest if is_path(variant.base) or names_package(digest) else None


def _without_trials(run: Run, places: Set[TrialPlace], label: str) -> Run:
    """Return the run without the trials at these places, which an earlier run has as well."""
    if not places:
        return run
    trials = set(run.trials.loc[[place in places for place in places_of(run.trials)], "trial"])
    note = f"{len(trials)} trials of {label} stand in an earlier run as well, the same records: they count once."
    return replace(run.map_frames(lambda rows: rows.loc[~rows["trial"].isin(trials)]), notes=(*run.notes, note))


def _rename(run: Run, column: Counterpart, names: Sequence[str], label: str) -> Run:
    """Return the run with `(label)` after these names of models or architectures, and after the ids of their trials, so that
    no trial is taken for a trial of another run."""
    if not names:
        return run
    renamed = {name: f"{name} ({label})" for name in names}
    trials = dict.fromkeys(run.trials.loc[run.trials[column].isin(names), "trial"])
    new_ids = {trial: f"{_recorded_id(trial)} ({label})" for trial in trials}

    def change(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(trial=_map_names(rows["trial"], new_ids), **{column: _map_names(rows[column], renamed)})

    note = (
        f"What {label} measured under the name of {_KINDS[column]} of an earlier run stands as {', '.join(renamed.values())}."
    )
    rerun = frozenset(new_ids.get(trial, trial) for trial in run.rerun)
    manifest = _with_names(run.manifest, column, renamed)
    return replace(run.map_frames(change), manifest=manifest, rerun=rerun, notes=(*run.notes, note))


def _map_names(names: pd.Series[str], new_names: Mapping[str, str]) -> pd.Series[str]:
    """Return a column with some names replaced by new names."""
    return pd.Series([new_names.get(name, name) for name in names], index=names.index, dtype=names.dtype)


def _with_names(manifest: Manifest, column: Counterpart, new_names: Mapping[str, str]) -> Manifest:
    """Return the manifest with new names for some models or architectures."""

    def renamed(table: Mapping[str, Entry]) -> dict[str, Entry]:
        return {new_names.get(name, name): entry for name, entry in table.items()}

    config = manifest.config
    if column == "model":
        config = config.model_copy(update={"models": tuple(new_names.get(name, name) for name in config.models)})
        tables = {"models": renamed(manifest.models), "concurrency": renamed(manifest.concurrency)}
        return manifest.model_copy(update={"config": config, **tables})
    variants = {name: config.architecture.get(name, ArchitectureEntry(base=name)) for name in new_names}
    updated = {
        "architectures": tuple(new_names.get(name, name) for name in config.architectures),
        "architecture": renamed(dict(config.architecture) | variants),
    }
    changed = {"config": config.model_copy(update=updated), "architectures": renamed(manifest.architectures)}
    return manifest.model_copy(update=changed)
