"""Several runs of one experiment, each with models or architectures of its own, seen as one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.config import Config

LISTS = ("scenarios", "architectures", "models", "plans")
"""What a config runs: a merged run has those of all. What two of them have in common must be the same in both."""
OWN = frozenset({"name", "repetitions", "architecture", "plan", *LISTS})
"""What may differ between the configs of runs that are merged."""
ORDER = ("scenario", "model", "fault", "instance", "repetition", "architecture")
"""That of the rows of a run."""


def merge(runs: Sequence[Run]) -> Run:
    """One run that holds the trials of all, in the first one's order; a single run is itself.

    Their trials may be paired by (instance, repetition), so far as both have it, for they met the same random draws. Raises
    ResultsError, naming what differs, unless all have the same seed and settings, and the same version of each pack, fault
    plan, model and variant that two of them have; and where one architecture met one model in two of them.
    """
    first, *others = runs
    if not others:
        return first
    for place, other in enumerate(others, 1):
        for earlier in runs[:place]:
            _refuse_other_experiment(earlier, other)
            _refuse_shared_arms(earlier, other)
    merged = _manifest(runs)
    return Run(
        manifest=merged,
        sessions=tuple(chain.from_iterable(run.sessions for run in runs)),
        trials=_joined(merged, [run.trials for run in runs]),
        calls=_joined(merged, [run.calls for run in runs]),
        faults=_joined(merged, [run.faults for run in runs]),
        recoveries=_joined(merged, [run.recoveries for run in runs]),
        replies=_joined(merged, [run.replies for run in runs]),
        waits=_joined(merged, [run.waits for run in runs]),
        errors_rerun=sum(run.errors_rerun for run in runs),
        regrades=tuple(chain.from_iterable(run.regrades for run in runs)),
        parts=tuple(runs),
        rerun=frozenset(chain.from_iterable(run.rerun for run in runs)),
    )


def name_of(run: Run) -> str:
    return str(run.manifest.get("name", "without a name"))


def _manifest(runs: Sequence[Run]) -> dict[str, Any]:
    """The first one's, with the names of all; what each says of its code and machine stands in its own."""
    manifests = [run.manifest for run in runs]
    configs = [manifest["config"] for manifest in manifests]
    config = {
        **configs[0],
        **{key: list(dict.fromkeys(chain.from_iterable(one[key] for one in configs))) for key in LISTS},
        **{key: _united(one.get(key, {}) for one in configs) for key in ("architecture", "plan")},
        "repetitions": max(one["repetitions"] for one in configs),
    }
    tables = {key: _united(manifest[key] for manifest in manifests) for key in ("models", "scenarios")}
    return {**manifests[0], **tables, "name": " + ".join(map(name_of, runs)), "config": config}


def _united(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: entry for table in tables for name, entry in table.items()}


def _refuse_other_experiment(one: Run, two: Run) -> None:
    for what in _differences(one.manifest, two.manifest):
        raise ResultsError(f"{name_of(one)} and {name_of(two)} are no runs of one experiment: they differ in {what}")


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[str]:
    """What must agree and does not."""
    configs = one["config"], two["config"]
    if one.get("tokenizer") != two.get("tokenizer"):
        yield "the tokenizer for tokens"
    for key in sorted((configs[0].keys() | configs[1].keys()) - OWN):
        if _setting(configs[0], key) != _setting(configs[1], key):
            yield f"the config's {key}"
    digests = [{name: pack["asked"] for name, pack in manifest["scenarios"].items()} for manifest in (one, two)]
    if not digests[0].keys() & digests[1].keys():
        yield f"their packs ({', '.join(digests[0])} | {', '.join(digests[1])})"
    yield from (f"the version of the pack {name}" for name in _unlike(*digests))
    yield from (f"the settings of model {name}" for name in _unlike(one["models"], two["models"]))
    for key, what in (("plan", "what the fault plan {} does"), ("architecture", "what the architecture {} is")):
        yield from map(what.format, _unlike(*(config.get(key, {}) for config in configs)))


def _unlike(one: Mapping[str, object], two: Mapping[str, object]) -> list[str]:
    """The names that both have, for different things."""
    return [name for name, entry in one.items() if name in two and two[name] != entry]


def _setting(config: Mapping[str, Any], key: str) -> object:
    """Lists of names mean the same in any order; a key that the format did not have yet stood at its default."""
    field = Config.model_fields.get(key)
    default = field.get_default(call_default_factory=True) if field else None
    value = config.get(key, default)
    return sorted(value) if isinstance(value, list) else value


def _refuse_shared_arms(one: Run, two: Run) -> None:
    """Whose trials are which could not be told."""
    first, second = ({(arm[0], arm[1]) for arm in _arms(run)} for run in (one, two))
    for architecture, model in sorted(first & second):
        both = f"{name_of(one)} and {name_of(two)} both hold trials of {architecture} with the model '{model}'"
        raise ResultsError(f"{both}: give one of them another name in its config")


def _arms(run: Run) -> Iterator[tuple[str, str]]:
    yield from run.trials[["architecture", "model"]].drop_duplicates().itertuples(index=False, name=None)


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
