"""A run of `every_judgment`, read as a bank of replies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.errors import ConfigError, ResultsError
from bench.experiment.reading import read_manifest, read_records, read_texts
from bench.experiment.record import TrialRecord, latest
from bench.experiment.verify import sources
from bench.models.bank import Bank, BankedReply
from bench.scenario import Scenario
from bench.worlds.patterns.every_judgment import ASKED
from bench.worlds.runtime.events import Stored


def load_bank(folder: Path, scenarios: Iterable[Scenario]) -> Bank:
    """The bank that a run recorded. Raises ConfigError where it holds the replies of no model or of several, or none to one of
    these scenarios' judgments, which would be answered rightly without a word; ResultsError where the folder holds no run."""
    manifest = read_manifest(folder)
    replies = list(banked(folder))
    models = sorted({model for model, _ in replies})
    if len(models) != 1:
        problem = f"of several models ({', '.join(models)})" if models else "no judgments"
        raise ConfigError(f"bank {folder}: it holds {problem}; record it with configs/judgment_bank.toml and one --model")
    bank = Bank(manifest.name, sources(folder), models[0], [reply for _, reply in replies])
    wanted = {(each.name, subtask.name) for each in scenarios for subtask in each.task.subtasks}
    if lacking := sorted(wanted - bank.judgments):
        scenario, judgment = lacking[0]
        problem = f"holds no reply to '{judgment}' of scenario '{scenario}'"
        raise ConfigError(f"bank {folder}: it {problem}; record it with that scenario, or leave the scenario or `bank` out")
    return bank


def banked(folder: Path) -> Iterator[tuple[str, BankedReply]]:
    """(model, reply) in the order of recording. Raises ResultsError where the run's texts do not hold what its records name."""
    texts = read_texts(folder)
    trials = latest(trial for trial in read_records(folder) if isinstance(trial, TrialRecord) and trial.outcome != "error")
    for trial in trials:
        for event in trial.events:
            if isinstance(event, Stored) and event.name == ASKED:
                yield trial.model, _reply(trial, _text(texts, event.value, folder), folder)


def _text(texts: dict[str, str], digest: str, folder: Path) -> str:
    if digest not in texts:
        raise ResultsError(f"{folder}: the text {digest} is missing; the run is not whole")
    return texts[digest]


def _reply(trial: TrialRecord, text: str, folder: Path) -> BankedReply:
    try:
        kept = json.loads(text)
        kept["notes"] = tuple(kept["notes"])
        return BankedReply(scenario=trial.scenario, instance=trial.instance, repetition=trial.repetition, **kept)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultsError(f"{folder}: a judgment of trial {trial.id} cannot be read; restore the run from a copy") from error
