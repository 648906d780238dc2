"""Several runs under the same faults, with different architectures or models, read as one run.

If two runs use one name for different things, one of these is renamed `NAME (run)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import pandas as pd

from bench.common.errors import ResultsError
from bench.common.registry import is_path
from bench.read.analysis.blocks import NAMED, ranks
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
OWN = frozenset(("name", "seed", "repetitions", "instances", "study", "architecture", "plan")) | {
    *("scenarios", "architectures", "models", "plans")
}
"""Config keys that are compared one by one. If any other differs, the report says so."""
TAKEN_OVER = ("cache", "cache_from")
"""Settings that say where a model's replies came from. The same model would have given them."""
_KINDS = {"model": "a model", "architecture": "an architecture"}


def merge(runs: Sequence[Run]) -> Run:
    """Return one run with the trials of all runs, under the settings that they share, in the first run's order. A single run is
    returned as it is.

    Trials can be paired by (instance, repetition), because their random draws were the same. What not all runs share is left
    out. What has one name in two runs but differs is renamed. The notes say both. Raises ResultsError, naming what differs, if
    nothing is shared.
    """
    if len(runs) == 1:
        return runs[0]
    by_label = label_runs(runs)
    shared = shared_by(by_label)
    beside: list[Run] = []
    for label, run in by_label.items():
        kept = shared.only(run)
        if kept.trials.empty:
            others = " and ".join(other for other in by_label if other != label)
            raise ResultsError(f"{label} holds no trial of what it shares with {others}")
        beside.append(_apart(kept, beside, label))
    merged = _manifest(beside, shared)
    frames = {name: _join(merged.config, [run.frames[name] for run in beside]) for name in runs[0].frames}
    return replace(
        runs[0].replace_frames(frames),
        manifest=merged,
        sessions=tuple(chain.from_iterable(run.sessions for run in runs)),
        errors_rerun=sum(run.errors_rerun for run in runs),
        regrades=tuple(regrade for run in runs for regrade in run.regrades if regrade.scenario in merged.scenarios),
        parts=tuple(runs),
        folder=None,
        rerun=frozenset(chain.from_iterable(run.rerun for run in beside)),
        notes=tuple(_notes(by_label, shared, beside)),
    )


def records_of(run: Run, only: Collection[str] | None = None) -> Iterator[TrialRecord] | None:
    """Return the records of the run's trials, or of the ids in `only`, with the names that they have in this run. Superseded
    records come before their successors. None if they cannot be read again. Raises ResultsError if a folder is gone."""
    parts = label_runs(run.recorded)
    return None if any(part.folder is None for part in parts.values()) else _records(run, parts, only)


def _records(run: Run, parts: Labelled, only: Collection[str] | None) -> Iterator[TrialRecord]:
    trials = run.trials[["trial", "architecture", "model"]].itertuples(index=False, name=None)
    names = {trial: (architecture, model) for trial, architecture, model in trials if only is None or trial in only}
    recorded = None if only is None else frozenset(map(_recorded_id, names))
    for label, part in parts.items():
        assert part.folder is not None
        apart_here = {_recorded_id(trial): trial for trial in names if trial.endswith(f" ({label})")}
        for record in read_trials(part.folder, recorded):
            trial = apart_here.get(record.id, record.id)
            if trial in names:
                architecture, model = names[trial]
                named = record.id == trial and record.architecture == architecture and record.model == model
                yield record if named else replace(record, id=trial, architecture=architecture, model=model)


def _notes(runs: Labelled, shared: Shared, beside: Sequence[Run]) -> Iterator[str]:
    if shared.left_out:
        yield f"Only what all runs share is shown. Left out: {'; '.join(shared.left_out)}."
    for key in differing_settings(runs.values(), OWN):
        yield f"These runs differ in the config's {key}, so that a difference may be that one's alone."
    yield from chain.from_iterable(run.notes for run in beside)


def _manifest(runs: Sequence[Run], shared: Shared) -> Manifest:
    """Return the first run's manifest with the names of all runs. Code and machine stay with each run."""
    manifests, configs = [run.manifest for run in runs], [run.config for run in runs]
    packs = {pack for pack, _ in shared.cases}
    scenarios = tuple(name for name in runs[0].names("scenario") if name in packs)
    united: dict[str, object] = {
        "architectures": tuple(dict.fromkeys(name for config in configs for name in config.architectures)),
        "models": tuple(dict.fromkeys(name for config in configs for name in config.models)),
        "scenarios": scenarios,
        "plans": tuple(name for name in runs[0].names("plan") if name in shared.plans),
        "architecture": _unite(config.architecture for config in configs),
        "plan": {name: plan for name, plan in configs[0].plan.items() if name in shared.plans},
        "repetitions": max(config.repetitions for config in configs),
        "study": configs[0].study if len({config.study for config in configs}) == 1 else None,
    }
    tables: dict[str, object] = {
        "scenarios": {  # every run has the instances of the run with the fewest
            name: min((manifest.scenarios[name] for manifest in manifests), key=lambda pack: len(pack.instances))
            for name in scenarios
        },
        "models": _models(manifests),
        "architectures": _unite(manifest.architectures for manifest in manifests),
        "described": Described(
            architectures=_unite(manifest.descriptions.architectures for manifest in manifests),
            effects=_unite(manifest.descriptions.effects for manifest in manifests),
        ),
        "policies": _unite(manifest.policies for manifest in manifests),
        "name": " + ".join(run.name for run in runs),
        "config": configs[0].model_copy(update=united),
    }
    return manifests[0].model_copy(update=tables)


def _unite(tables: Iterable[Mapping[str, Entry]]) -> dict[str, Entry]:
    return {name: entry for table in tables for name, entry in table.items()}


def _models(manifests: Sequence[Manifest]) -> dict[str, ModelParameters]:
    """Return the parameters of each model. `cache_from` joins the sources from which each run took recorded replies."""
    models = _unite(manifest.models for manifest in manifests)
    for name, parameters in models.items():
        every = (manifest.models[name] for manifest in manifests if name in manifest.models)
        taken = {(run.name, run.digest): run for model in every for run in model.cache_from}
        if taken:
            models[name] = parameters.model_copy(update={"cache_from": tuple(taken.values())})
    return models


def _join(config: StoredConfig, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all runs, in the order of `load_run`."""
    rows = pd.concat([frame for frame in frames if len(frame)] or [frames[0]], ignore_index=True)
    by_name = {column: ranks(config, column) for column in NAMED}

    def position(place: TrialPlace) -> list[Any]:
        """The place of a name in the config; the value itself if it is no name there."""
        values = place._asdict().items()
        return [by_name[column].get(value, len(by_name[column])) if column in by_name else value for column, value in values]

    positions = list(map(position, places_of(rows)))
    return rows.iloc[sorted(range(len(rows)), key=positions.__getitem__)].reset_index(drop=True)


# One name in two runs for different things


def _apart(run: Run, earlier: Sequence[Run], label: str) -> Run:
    """Return the run in the form in which it can be joined with earlier runs. The notes say what changed.

    A model with other settings than in an earlier run is renamed. So is an architecture that differs there, whose same trial
    went differently there, or of which other code ran trials of the same arm there: they are never pooled. A record that equals
    an earlier run's record counts once.
    """
    run = _rename(run, "model", _other(run, earlier, "model", _settings), label)
    known = {place: row for other in earlier for place, row in _measurements(other).items()}
    equal = {place: row == known[place] for place, row in _measurements(run).items() if place in known}
    otherwise = {place.architecture for place, is_equal in equal.items() if not is_equal}
    another = {*_other(run, earlier, "architecture", _definition), *_by_other_code(run, earlier)}
    others = [name for name in run.names("architecture") if name in otherwise or name in another]
    run = _without(run, {place for place in equal if place.architecture not in others}, label)
    return _rename(run, "architecture", others, label)


def _recorded_id(trial: str) -> str:
    """Return the id under which a trial is recorded."""
    return trial.partition(" ")[0]


def _measurements(run: Run) -> Mapping[TrialPlace, tuple[object, ...]]:
    """Return the place of each trial -> its id and all that was measured in it."""
    rows = run.trials.astype(object).where(run.trials.notna(), None)
    return dict(zip(places_of(run.trials), rows.itertuples(index=False, name=None), strict=True))


def _other(run: Run, earlier: Sequence[Run], column: Counterpart, defined: Callable[[Run, str], object]) -> list[str]:
    """Return the names in the run that an earlier run defines differently."""
    holders = {name: [other for other in earlier if name in other.names(column)] for name in run.names(column)}
    return [name for name, others in holders.items() if any(defined(other, name) != defined(run, name) for other in others)]


def _by_other_code(run: Run, earlier: Sequence[Run]) -> Iterator[str]:
    """Yield the architectures of which an earlier run has trials in the same arm by other code."""
    arms = {place.arm for place in places_of(run.trials)}
    for other in earlier:
        if digests_text(other.manifest.codes) != digests_text(run.manifest.codes):
            yield from (place.architecture for place in places_of(other.trials) if place.arm in arms)


def _settings(run: Run, model: str) -> object:
    return {key: value for key, value in run.parameters_of(model).shown.items() if key not in TAKEN_OVER}


def _definition(run: Run, name: str) -> object:
    """Return a variant's settings, and a digest if its code is a file's or another package's. Our code has the run's digest."""
    variant = run.config.architecture.get(name, ArchitectureEntry(base=name))
    digest = run.manifest.architectures.get(name, "")
    return variant.model_dump(), digest if is_path(variant.base) or names_package(digest) else None


def _without(run: Run, places: Set[TrialPlace], label: str) -> Run:
    if not places:
        return run
    trials = set(run.trials.loc[[place in places for place in places_of(run.trials)], "trial"])
    note = f"{len(trials)} trials of {label} stand in an earlier run as well, the same records: they count once."
    kept = run.map_frames(lambda rows: rows.loc[~rows["trial"].isin(trials)])
    return replace(kept, notes=(*run.notes, note))


def _rename(run: Run, column: Counterpart, names: Sequence[str], label: str) -> Run:
    """Rename models or architectures. Their trials get new ids too, so that no trial is mistaken for a trial of another run."""
    if not names:
        return run
    new = {name: f"{name} ({label})" for name in names}
    moved = dict.fromkeys(run.trials.loc[run.trials[column].isin(names), "trial"])
    ids = {trial: f"{_recorded_id(trial)} ({label})" for trial in moved}

    def change(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(trial=_map_names(rows["trial"], ids), **{column: _map_names(rows[column], new)})

    note = f"What {label} measured under the name of {_KINDS[column]} of an earlier run stands as {', '.join(new.values())}."
    rerun = frozenset(ids.get(trial, trial) for trial in run.rerun)
    manifest = _with_names(run.manifest, column, new)
    return replace(run.map_frames(change), manifest=manifest, rerun=rerun, notes=(*run.notes, note))


def _map_names(names: pd.Series[str], new: Mapping[str, str]) -> pd.Series[str]:
    return pd.Series([new.get(name, name) for name in names], index=names.index, dtype=names.dtype)


def _with_names(manifest: Manifest, column: Counterpart, new: Mapping[str, str]) -> Manifest:
    """Return the manifest with new names for some models or architectures."""

    def named(table: Mapping[str, Entry]) -> dict[str, Entry]:
        return {new.get(name, name): entry for name, entry in table.items()}

    config = manifest.config
    if column == "model":
        config = config.model_copy(update={"models": tuple(new.get(name, name) for name in config.models)})
        tables = {"models": named(manifest.models), "concurrency": named(manifest.concurrency)}
        return manifest.model_copy(update={"config": config, **tables})
    variants = {name: config.architecture.get(name, ArchitectureEntry(base=name)) for name in new}
    updated = {
        "architectures": tuple(new.get(name, name) for name in config.architectures),
        "architecture": named(dict(config.architecture) | variants),
    }
    changed = {"config": config.model_copy(update=updated), "architectures": named(manifest.architectures)}
    return manifest.model_copy(update=changed)
