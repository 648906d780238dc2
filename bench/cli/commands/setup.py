"""The steps before a run: choosing models, naming the run, and opening its folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.cli.commands.descriptors import raise_file_limit
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import folder_of
from bench.record.agreement import RecordedByOtherCode
from bench.record.manifest import LONGEST_NOTE, MAX_TAGS, TAG
from bench.record.reading import read_trials
from bench.record.record import latest
from bench.record.store import RunWriter, set_aside
from bench.rerun.prepared import study_values
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.recording import RECORDED_PREFIX, recorded_entries
from bench.run.experiment.runner import missing_trials
from bench.run.experiment.untrusted import Permission
from bench.run.models.cached import CachedModel, CacheSettings
from bench.run.models.model_part import BaseModelEntry
from bench.run.models.routed import answerers
from bench.run.openai.providers import provided_entries

OTHER_CODE = "--go-on-with-other-code"
Entries = dict[str, dict[str, Any]]
"""A model's name -> its table in a config."""


def chosen_models(words: Iterable[str]) -> tuple[list[str] | None, Entries]:
    """Return the names of the chosen models, and the config entries of models that no config has.

    Args:
        words: Names of models. `recorded:RUN` means every model of that run, `PROVIDER/NAME` a model of a known provider.

    Returns:
        The names, or None for the models of the config; and the new entries.

    Raises:
        ResultsError: the run does not exist.
        ConfigError: the provider is unknown.
    """
    names, entries = list[str](), Entries()
    for word in words:
        new_entries = _entries_of(word)
        names += new_entries or [word]
        entries |= new_entries
    return names or None, entries


def _entries_of(word: str) -> Entries:
    """Return the config entries that this word adds, by the model's name."""
    if (run := word.removeprefix(RECORDED_PREFIX)) != word:
        return recorded_entries(folder_of(run))
    return provided_entries(word) if "/" in word else {}


def with_concurrency(entries: Entries, concurrency: int | None) -> Entries:
    """Return the entries with this number of concurrent calls. Raises ConfigError if there are no entries."""
    if concurrency is None:
        return entries
    if not entries:
        raise ConfigError(
            "--concurrency: is for --model recorded:RUN or PROVIDER/NAME; of a model in the config its table says it"
        )
    return {name: {**entry, "concurrency": concurrency} for name, entry in entries.items()}


def cache_from(config: Config, runs: Sequence[str]) -> Config:
    """Return a config in which the caching models reuse the replies recorded in these runs.

    Raises:
        ConfigError: no model of the config caches.
    """
    caching_models = dict[str, BaseModelEntry]()
    for name, entry in config.model.items():
        if isinstance(entry, CacheSettings) and entry.cache and runs:
            caching_models[name] = entry.model_copy(update={"cache_from": (*entry.cache_from, *map(folder_of, runs))})
    if runs and not caching_models:
        raise ConfigError("--cache-from: no model of the config has cache = true, so no reply would be reused")
    return config.model_copy(update={"model": {**config.model, **caching_models}})


def run_name(config: Config, *middle_parts: str) -> str:
    """Return the default name of the run. The name of a replay always differs from the name of its recording."""
    replays = any(config.model[name].replays for name in config.models)
    return "-".join((config.name, *middle_parts, *config.models, *(["replay"] if replays else [])))


def open_run(
    console: Terminal,
    folder: Path,
    matrix: Matrix,
    sets_aside: bool,
    permitted: Permission,
    tags: Sequence[str] = (),
    note: str = "",
    continues_other_code: bool = False,
) -> RunWriter | None:
    """Begin the run in this folder, or continue it. Print what was done to the folder, and how the answers are graded.

    Args:
        sets_aside: Whether a folder of another experiment or of other code is renamed.
        permitted: How the sandbox grades the run's answers.
        tags: Words by which `bench runs` finds the run. A continued run keeps its earlier tags.
        note: A line about the run.
        continues_other_code: Whether this code may continue a run that other code recorded.

    Returns:
        The run's writer. None if other code recorded all trials: nothing is left to run.

    Raises:
        ConfigError: The config's study is unknown, a tag or the note cannot be kept, or the machine allows too few open files.
        ResultsError: The folder holds another experiment, or other code recorded only a part of the trials.
    """
    labels = _labels(tags, note)
    raise_file_limit(matrix)
    manifest = manifest_of(matrix, folder.name, study_values(matrix), permitted).model_copy(update=labels)
    if permitted.notice:
        console.print(permitted.notice)
    try:
        writer = RunWriter(folder, manifest)
    except ResultsError as error:
        if sets_aside:
            renamed = set_aside(folder)
            console.print(f"{folder} holds trials of another experiment or of other code; its name is now {renamed}")
        elif not isinstance(error, RecordedByOtherCode):
            raise
        elif not _continues_other_code(console, folder, matrix, error, continues_other_code):
            return None
        writer = RunWriter(folder, manifest, continues_other_code)
    for name in writer.repaired:
        line = f"{folder / name}: its last line was cut short and has been removed; its trial is run again"
        console.print(line)
    return writer


def _continues_other_code(
    console: Terminal, folder: Path, matrix: Matrix, other: RecordedByOtherCode, continues_other_code: bool
) -> bool:
    """Whether this code continues a run that other code recorded. If it does not, no trial is missing.

    Raises:
        ResultsError: trials are missing, and the user did not ask to run them with this code.
    """
    records = latest(read_trials(folder))
    failed = {record.place for record in records if record.outcome == "error"}
    unrun = len(missing_trials(matrix.specs, {record.place for record in records}))
    failures = len([spec for spec in matrix.specs if spec.place in failed])
    of_total = f"of {len(matrix.specs)} trials"
    if continues_other_code and unrun + failures:
        console.print(
            f"{folder}: {unrun + failures} {of_total} are left to this code, and the run's manifest says so: {other.what}"
        )
        return True
    if unrun:
        raise ResultsError(f"{other}; {unrun} {of_total} are missing: {OTHER_CODE} runs them by this code and marks the run")
    errors = f" {failures} of them ended in an error; {OTHER_CODE} runs these again by this code." if failures else ""
    console.print(
        f"{folder}: all {of_total[3:]} are recorded, and nothing is run.{errors} Other code recorded them: {other.what}"
    )
    return False


def _labels(tags: Sequence[str], note: str) -> dict[str, Any]:
    """Return the tags and the note for the manifest. Raises ConfigError if one of them cannot be stored."""
    for tag in tags:
        if not re.fullmatch(TAG, tag):
            raise ConfigError(f"--tag {tag}: use at most 50 letters, digits and . _ : = + -, a letter or a digit first")
    if len(tags) > MAX_TAGS:
        raise ConfigError(f"--tag: a run has {MAX_TAGS} tags at most")
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise ConfigError(f"--note: give one line of at most {LONGEST_NOTE} characters")
    return {"tags": tuple(dict.fromkeys(tags)), "note": note}


def reply_source_lines(matrix: Matrix) -> Iterable[str]:
    """Return a line for each model whose replies are simulated, recorded, or partly reused from an earlier run."""
    return dict.fromkeys(_reply_source_lines(matrix))  # a model behind a routed one can also be run itself


def _reply_source_lines(matrix: Matrix) -> Iterator[str]:
    for name, model in matrix.models.items():
        for part in answerers(model):
            entry = matrix.config.model.get(part.name)
            if isinstance(part, CachedModel) and isinstance(entry, CacheSettings) and entry.cache_from:
                reused_runs = ", ".join(run["name"] for run in part.before.runs)
                what = f"the replies of {reused_runs}, with their seconds" if reused_runs else "no reply"
                yield f"'{part.name}' takes over {what}{'; none of '.join(['', *part.before.others])}."
        if model.timing == "recorded":
            yield f"REPLAY of {model.endpoint}{f', for {name}' if len(matrix.models) > 1 else ''}"
        if any(part.parameters.get("kind") == "simulated" for part in answerers(model)):
            yield f"'{name}' is SIMULATED: it answers from the packs' references; no model spent tokens or seconds."
