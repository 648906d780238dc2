"""What commands need to open a run: the named models, whose replies they give, and the run's name and folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.cli.descriptors import make_room
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import folder_of
from bench.record.agreement import RecordedByOtherCode
from bench.record.manifest import LONGEST_NOTE, MOST_TAGS, TAG
from bench.record.reading import read_trials
from bench.record.record import latest
from bench.record.store import RunWriter, set_aside
from bench.rerun.prepared import prepared
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.model_part import BaseModelEntry
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.recording import RECORDED, recorded_entries
from bench.run.experiment.runner import missing_trials
from bench.run.experiment.untrusted import Permission
from bench.run.models.cached import CachedModel, CacheSettings
from bench.run.models.routed import answerers
from bench.run.openai.providers import provided_entries

OPTION = "--go-on-with-other-code"
Entries = dict[str, dict[str, Any]]
"""A config's tables of models, by name."""


def chosen_models(words: Iterable[str]) -> tuple[list[str] | None, Entries]:
    """Return the names of the models that these words mean (None for the config's), and the entries of models that stand in no
    config. `recorded:RUN` means every model of that run, `PROVIDER/NAME` a known provider's. Raises ResultsError if there is no
    such run, ConfigError if there is no such provider."""
    names, entries = list[str](), Entries()
    for word in words:
        added = _entries_of(word)
        names += added or [word]
        entries |= added
    return names or None, entries


def _entries_of(word: str) -> Entries:
    if (run := word.removeprefix(RECORDED)) != word:
        return recorded_entries(folder_of(run))
    return provided_entries(word) if "/" in word else {}


def declared(entries: Entries, concurrency: int | None) -> Entries:
    """Return the entries of models with this number of calls at a time. Raises ConfigError if there are no entries."""
    if concurrency is None:
        return entries
    if not entries:
        raise ConfigError(
            "--concurrency: is for --model recorded:RUN or PROVIDER/NAME; of a model in the config its table says it"
        )
    return {name: {**entry, "concurrency": concurrency} for name, entry in entries.items()}


def cache_from(config: Config, runs: Sequence[str]) -> Config:
    """Return the config in which caching models take over the replies recorded in these runs.

    Raises ConfigError if no model caches.
    """
    caching = dict[str, BaseModelEntry]()
    for name, entry in config.model.items():
        if isinstance(entry, CacheSettings) and entry.cache and runs:
            caching[name] = entry.model_copy(update={"cache_from": (*entry.cache_from, *map(folder_of, runs))})
    if runs and not caching:
        raise ConfigError("--cache-from: no model of the config has cache = true, so no reply would be reused")
    return config.model_copy(update={"model": {**config.model, **caching}})


def run_name(config: Config, *between: str) -> str:
    """Return the run's name. A replay's name always differs from its recording's."""
    replayed = any(config.model[name].replays for name in config.models)
    return "-".join((config.name, *between, *config.models, *(["replay"] if replayed else [])))


def open_run(
    console: Terminal,
    folder: Path,
    matrix: Matrix,
    aside: bool,
    permitted: Permission,
    tags: Sequence[str] = (),
    note: str = "",
    goes_on: bool = False,
) -> RunWriter | None:
    """Begin the run in this folder, or continue it. Print what was done to the folder and how the run is graded.

    Args:
        aside: Whether a folder of another experiment or of other code is renamed.
        permitted: How the run is graded.
        tags: Words on the run. A continued run keeps its earlier tags.
        note: A line on the run.
        goes_on: Whether this code may go on with a run that other code recorded.

    Returns:
        The run's writer. None if other code recorded all trials: nothing is left to run.

    Raises:
        ConfigError: The config's study is unknown, a tag or the note cannot be kept, or the machine allows too few open files.
        ResultsError: The folder holds another experiment, or other code recorded only a part of the trials.
    """
    labels = _labels(tags, note)
    make_room(matrix)
    manifest = manifest_of(matrix, folder.name, prepared(matrix), permitted).model_copy(update=labels)
    if permitted.notice:
        console.print(permitted.notice)
    try:
        writer = RunWriter(folder, manifest)
    except ResultsError as error:
        if aside:
            renamed = set_aside(folder)
            console.print(f"{folder} holds trials of another experiment or of other code; its name is now {renamed}")
        elif not isinstance(error, RecordedByOtherCode):
            raise
        elif not _is_left_to_other_code(console, folder, matrix, error, goes_on):
            return None
        writer = RunWriter(folder, manifest, goes_on)
    for name in writer.repaired:
        line = f"{folder / name}: its last line was cut short and has been removed; its trial is run again"
        console.print(line)
    return writer


def _is_left_to_other_code(console: Terminal, folder: Path, matrix: Matrix, other: RecordedByOtherCode, goes_on: bool) -> bool:
    """Return whether this code goes on with a run that other code recorded; if not, nothing is missing. Raises ResultsError if
    trials are missing and the user did not ask for that."""
    records = latest(read_trials(folder))
    failed = {record.place for record in records if record.outcome == "error"}
    unrecorded = len(missing_trials(matrix.specs, {record.place for record in records}))
    again = len([spec for spec in matrix.specs if spec.place in failed])
    of_all = f"of {len(matrix.specs)} trials"
    if goes_on and unrecorded + again:
        console.print(
            f"{folder}: {unrecorded + again} {of_all} are left to this code, and the run's manifest says so: {other.what}"
        )
        return True
    if unrecorded:
        raise ResultsError(f"{other}; {unrecorded} {of_all} are missing: {OPTION} runs them by this code and marks the run")
    errors = f" {again} of them ended in an error; {OPTION} runs these again by this code." if again else ""
    console.print(
        f"{folder}: all {of_all[3:]} are recorded, and nothing is run.{errors} Other code recorded them: {other.what}"
    )
    return False


def _labels(tags: Sequence[str], note: str) -> dict[str, Any]:
    for tag in tags:
        if not re.fullmatch(TAG, tag):
            raise ConfigError(f"--tag {tag}: use at most 50 letters, digits and . _ : = + -, a letter or a digit first")
    if len(tags) > MOST_TAGS:
        raise ConfigError(f"--tag: a run has {MOST_TAGS} tags at most")
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise ConfigError(f"--note: give one line of at most {LONGEST_NOTE} characters")
    return {"tags": tuple(dict.fromkeys(tags)), "note": note}


def whose_replies(matrix: Matrix) -> Iterable[str]:
    """Return a line for each model whose replies are simulated or recorded, or come in part from an earlier run."""
    return dict.fromkeys(_whose_replies(matrix))  # a model behind a routed one can also be run itself


def _whose_replies(matrix: Matrix) -> Iterator[str]:
    for name, model in matrix.models.items():
        for part in answerers(model):
            entry = matrix.config.model.get(part.name)
            if isinstance(part, CachedModel) and isinstance(entry, CacheSettings) and entry.cache_from:
                taken = ", ".join(run["name"] for run in part.before.runs)
                what = f"the replies of {taken}, with their seconds" if taken else "no reply"
                yield f"'{part.name}' takes over {what}{'; none of '.join(['', *part.before.others])}."
        if model.timing == "recorded":
            yield f"REPLAY of {model.endpoint}{f', for {name}' if len(matrix.models) > 1 else ''}"
        if any(part.parameters.get("kind") == "simulated" for part in answerers(model)):
            yield f"'{name}' is SIMULATED: it answers from the packs' references; no model spent tokens or seconds."
