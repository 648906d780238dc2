"""Runs put beside each other: what has one name in two of them and is not one thing gets a name of its own, `NAME (run)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.experiment.architecture_entry import ArchitectureEntry
from bench.experiment.code import names_package
from bench.experiment.manifest import Manifest
from bench.registry import is_path

TAKEN_OVER = ("cache", "cache_from")
"""Settings of a model that say where its replies came from; the same model would have given them."""
KEY = ("scenario", "architecture", "model", "plan", "repetition")
"""With the instance, where a trial stands."""
TrialPlace = tuple[object, ...]
_KINDS = {"model": "a model", "architecture": "an architecture"}


def apart(run: Run, earlier: Sequence[Run], label: str) -> Run:
    """The run as it may stand beside earlier ones.

    A model of other settings than theirs gets a name of its own, and so does an architecture that is another one there, or of
    which one and the same trial went otherwise there. A record that one of them holds as well, equal in everything, counts
    once. The notes say so.
    """
    run = _renamed(run, "model", [name for name in run.names("model") if _another_model(run, earlier, name)], label)
    known = {key: row for other in earlier for key, row in _trials(other).items()}
    twice = {key: row == known[key] for key, row in _trials(run).items() if key in known}
    otherwise = {_architecture(key) for key, equal in twice.items() if not equal}
    others = [name for name in run.names("architecture") if name in otherwise or _another_architecture(run, earlier, name)]
    run = _without(run, {key for key in twice if _architecture(key) not in others}, label)
    return _renamed(run, "architecture", others, label)


def recorded_id(trial: str) -> str:
    """The id under which a trial is recorded, by the one it has here."""
    return trial.partition(" ")[0]


def _trials(run: Run) -> Mapping[TrialPlace, tuple[object, ...]]:
    """Each trial by where it stands: its id and all that was measured."""
    rows = run.trials.astype(object).where(run.trials.notna(), None)
    return dict(zip(_keys(run.trials), rows.itertuples(index=False, name=None), strict=True))


def _keys(trials: pd.DataFrame) -> Iterator[TrialPlace]:
    yield from zip(*(trials[column].tolist() for column in KEY), instances_of(trials), strict=True)


def _another_model(run: Run, earlier: Sequence[Run], name: str) -> bool:
    settings = [_settings(other, name) for other in (run, *earlier) if name in other.names("model")]
    return any(setting != settings[0] for setting in settings)


def _settings(run: Run, model: str) -> Mapping[str, Any]:
    return {key: value for key, value in run.parameters_of(model).shown.items() if key not in TAKEN_OVER}


def _another_architecture(run: Run, earlier: Sequence[Run], name: str) -> bool:
    definitions = [_definition(other, name) for other in (run, *earlier) if name in other.names("architecture")]
    return any(definition != definitions[0] for definition in definitions)


def _definition(run: Run, name: str) -> tuple[Mapping[str, Any], str | None]:
    """A variant's settings, and the digest of code that is none of ours, or of another package's: for ours the run's code is
    said."""
    variant = run.config.architecture.get(name, ArchitectureEntry(base=name))
    digest = run.manifest.architectures.get(name, "")
    return variant.model_dump(), digest if is_path(variant.base) or names_package(digest) else None


def _architecture(key: TrialPlace) -> str:
    return str(key[KEY.index("architecture")])


def _without(run: Run, keys: Set[TrialPlace], label: str) -> Run:
    if not keys:
        return run
    trials = set(run.trials.loc[[key in keys for key in _keys(run.trials)], "trial"])
    note = f"{len(trials)} trials of {label} stand in an earlier run as well, the same records: they count once."
    kept = run.with_frames(lambda rows: rows.loc[~rows["trial"].isin(trials)])
    return replace(kept, notes=(*run.notes, note))


def _renamed(run: Run, column: str, names: Sequence[str], label: str) -> Run:
    """Under a name of their own also the trials have ids of their own, so that none is taken for another's."""
    if not names:
        return run
    new = {name: f"{name} ({label})" for name in names}
    moved = dict.fromkeys(run.trials.loc[run.trials[column].isin(names), "trial"])
    ids = {trial: f"{recorded_id(trial)} ({label})" for trial in moved}

    def change(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(trial=_mapped(rows["trial"], ids), **{column: _mapped(rows[column], new)})

    listed = ", ".join(new.values())
    note = f"What {label} measured under the name of {_KINDS[column]} of an earlier run stands as {listed}."
    rerun = frozenset(ids.get(trial, trial) for trial in run.rerun)
    manifest = _models_renamed(run, new) if column == "model" else _architectures_renamed(run, new)
    return replace(run.with_frames(change), manifest=manifest, rerun=rerun, notes=(*run.notes, note))


def _mapped(names: pd.Series[str], new: Mapping[str, str]) -> pd.Series[str]:
    return pd.Series([new.get(name, name) for name in names], index=names.index, dtype=names.dtype)


def _models_renamed(run: Run, new: Mapping[str, str]) -> Manifest:
    manifest, config = run.manifest, run.config
    changed: dict[str, object] = {
        "config": config.model_copy(update={"models": tuple(new.get(name, name) for name in config.models)}),
        "models": {new.get(name, name): model for name, model in manifest.models.items()},
        "concurrency": {new.get(name, name): limit for name, limit in manifest.concurrency.items()},
    }
    return manifest.model_copy(update=changed)


def _architectures_renamed(run: Run, new: Mapping[str, str]) -> Manifest:
    manifest, config = run.manifest, run.config
    kept = {name: variant for name, variant in config.architecture.items() if name not in new}
    variants = {name: config.architecture.get(old, ArchitectureEntry(base=old)) for old, name in new.items()}
    names = tuple(new.get(name, name) for name in config.architectures)
    changed: dict[str, object] = {
        "config": config.model_copy(update={"architectures": names, "architecture": {**kept, **variants}}),
        "architectures": {new.get(name, name): digest for name, digest in manifest.architectures.items()},
    }
    return manifest.model_copy(update=changed)
