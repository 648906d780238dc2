"""Every run is its own recording: its log, read as what its models said to which request."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import CallFailed, ConfigError, ResultsError, failures_by_kind, nearest
from bench.experiment.record import TrialRecord
from bench.experiment.store import TEXTS, TRIALS, latest, read_manifest, read_texts, read_trials
from bench.models.base import Message, Reply, Usage
from bench.models.recorded import Exchange, Recording
from bench.runtime.events import Called
from bench.scenario import Scenario

RECORDED = "recorded:"
"""What stands before a run's name on the command line, where its recorded models are to answer."""


def recorded_entries(folder: Path) -> dict[str, dict[str, Any]]:
    """A config's entry for each model that the run in `folder` recorded, by the model's name. Raises ResultsError."""
    manifest = read_manifest(folder)
    return {name: {"kind": "recorded", "run": str(folder), "model": name} for name in manifest["models"]}


def load_recording(
    folder: Path, model: str, scenarios: Mapping[str, Scenario], seed: int, repetitions: int
) -> tuple[Recording, dict[str, object]]:
    """What `model` said in a run, and its parameters there with the recording's own name and digest added.

    Raises ResultsError where the folder holds no whole run of this format, ConfigError where the run cannot answer for these
    scenarios: it lacks the model, a scenario or a repetition, or was recorded with another seed or another version of a pack.
    """
    manifest = read_manifest(folder)
    name, models = manifest["name"], manifest["models"]
    if model not in models:
        raise ConfigError(f"recording {folder}: holds no model '{model}'; {nearest(model, models)}")
    _refuse_other_packs(folder, manifest["scenarios"], scenarios)
    if manifest["config"]["seed"] != seed:
        said = f"recording {folder}: was made with seed {manifest['config']['seed']}, this config has {seed}"
        raise ConfigError(f"{said}: no request would be the same; use that seed, or record again")
    texts = read_texts(folder)
    trials = [trial for trial in latest(read_trials(folder)) if trial.model == model]
    if not trials:
        raise ResultsError(f"recording {folder}: holds no trial of '{model}' yet; let its run end, or go on with it")
    whole = _whole_repetitions(trials)
    if whole < repetitions:
        said = f"recording {folder}: holds {whole} whole repetitions of '{model}', this config asks for {repetitions}"
        raise ConfigError(f"{said}; give --repetitions {max(whole, 1)}, or record the rest first")
    exchanges = [exchange for trial in trials for exchange in _exchanges(trial, texts, folder)]
    own = {"name": name, "digest": _digest(folder), "started": manifest["started"], "trials": len(trials)}
    concurrency = manifest.get("concurrency", {}).get(model, 1)  # earlier manifests lack it; their calls came one by one
    return Recording(name, manifest["started"][:10], exchanges, concurrency), {**models[model], "recording": own}


def answered_by(model: str, folder: Path) -> Iterator[Exchange]:
    """What this model answered so far in the run in `folder`, in its own name or behind another one's."""
    texts = read_texts(folder)
    for trial in read_trials(folder):
        for one in _exchanges(trial, texts, folder):
            if (one.outcome.by or trial.model) == model:
                yield one


ASKED_ALIKE = ("kind", "model", "temperature", "max_tokens", "top_p", "response_format", "weights", "extra_body")
"""The parameters of a model that decide what it may reply to a request."""


def asked_before(folders: Sequence[Path], parameters: Mapping[str, object]) -> tuple[list[Exchange], list[dict[str, str]]]:
    """What models with such parameters answered in the runs in `folders`, and the name and digest of those runs.

    A run without such a model has nothing to give. Raises ResultsError where a folder holds no run.
    """
    exchanges, runs = list[Exchange](), list[dict[str, str]]()
    for folder in folders:
        manifest = read_manifest(folder)
        alike = [name for name, theirs in manifest["models"].items() if _asked_alike(theirs, parameters)]
        exchanges += itertools.chain.from_iterable(answered_by(name, folder) for name in alike)
        runs += [{"name": manifest["name"], "digest": _digest(folder)}] if alike else []
    return exchanges, runs


def _asked_alike(theirs: Mapping[str, object], ours: Mapping[str, object]) -> bool:
    return all(theirs.get(key) == ours.get(key) for key in ASKED_ALIKE)


def _refuse_other_packs(folder: Path, recorded: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> None:
    for name, scenario in scenarios.items():
        if name not in recorded:
            raise ConfigError(f"recording {folder}: holds nothing of scenario '{name}'; leave it out, or record it")
        if recorded[name]["digest"] != scenario.digest:
            said = f"recording {folder}: was made with another version of the pack '{name}'"
            raise ConfigError(f"{said} (its digest is {recorded[name]['digest']}, now {scenario.digest}); record again")


def _whole_repetitions(trials: Sequence[TrialRecord]) -> int:
    """How many repetitions, counted from the first, hold a trial of every arm that the run has."""
    arms: dict[int, set[tuple[str, str]]] = {}
    for trial in trials:
        arms.setdefault(trial.repetition, set()).add((trial.scenario, trial.arm))
    every = set().union(*arms.values())
    return next(number for number in itertools.count() if arms.get(number + 1) != every)


def _exchanges(trial: TrialRecord, texts: Mapping[str, str], folder: Path) -> Iterator[Exchange]:
    """The requests that reached the model. What a fault kept from it, no model ever answered."""
    asked: Counter[tuple[tuple[Message, ...], int]] = Counter()
    answered: Counter[tuple[tuple[Message, ...], int]] = Counter()
    for call in trial.events:
        if not isinstance(call, Called) or not call.asked:
            continue
        try:
            messages = tuple(Message(role, texts[digest]) for role, digest in call.messages)
            said = texts[call.reply] if call.reply is not None else ""
        except KeyError as missing:
            named = f"{folder / TEXTS}: lacks the text {missing} of trial {trial.id}"
            raise ResultsError(f"{named}; restore the file from a copy, or record again") from missing
        sent = (messages, call.seed)
        asked[sent] += 1
        outcome, seconds = _outcome(call, said), round(call.seconds - call.delay, 9)
        yield Exchange(trial.arm, *sent, asked[sent], answered[sent], outcome, seconds)
        answered[sent] += isinstance(outcome, Reply)


def _outcome(call: Called, said: str) -> Reply | CallFailed:
    """What the model behind it did: a reply that an injected fault cut off later was whole when it came."""
    if call.finish is None and call.failure is not None:
        failure = failures_by_kind()[call.failure](call.detail, retry_after=call.retry_after, partial=said)
        failure.by = call.by
        return failure
    usage = None if call.usage_in is None or call.usage_out is None else Usage(call.usage_in, call.usage_out)
    return Reply(said, call.finish or "stop", usage, call.by, call.reused)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (TRIALS, TEXTS):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:20]
