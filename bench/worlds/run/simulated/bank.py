"""Read a run of `every_judgment` as a bank of replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bench.common.errors import ConfigError, ResultsError
from bench.record.reading import read_manifest, read_records, read_texts
from bench.record.record import TrialRecord, latest
from bench.record.verify import sources
from bench.record.world_events import ASKED, REPAIRED, Stored
from bench.run.models.bank import Bank, BankedReply
from bench.run.models.erring import ErringRepair, Learning, measure_rates
from bench.scenario import Scenario

Kept = TypeVar("Kept")


def load_bank(folder: Path, scenarios: Iterable[Scenario]) -> Bank:
    """Return the bank of replies that a run of `every_judgment` recorded.

    Raises ConfigError if the run holds replies of no model or of several models, or lacks replies to a judgment of these
    scenarios: a simulated model would silently answer that judgment rightly. Raises ResultsError if the folder holds no run.
    """
    manifest = read_manifest(folder)
    replies = list(replies_in(folder))
    models = sorted({model for model, _ in replies})
    if len(models) != 1:
        problem = f"of several models ({', '.join(models)})" if models else "no judgments"
        todo = "record it with studies/judgment_bank/config.toml and one --model"
        raise ConfigError(f"bank {folder}: it holds {problem}; {todo}")
    bank = Bank(manifest.name, sources(folder), models[0], [reply for _, reply in replies])
    wanted = {(each.name, subtask.name) for each in scenarios for subtask in each.task.subtasks}
    if lacking := sorted(wanted - bank.judgments):
        scenario, judgment = lacking[0]
        problem = f"holds no reply to '{judgment}' of scenario '{scenario}'"
        raise ConfigError(f"bank {folder}: it {problem}; record it with that scenario, or leave the scenario or `bank` out")
    return bank


def replies_in(folder: Path) -> Iterator[tuple[str, BankedReply]]:
    """Yield (model, reply) in recorded order. Raises ResultsError if a record names a text that the run lacks."""
    return _stored_entries(folder, ASKED, _reply)


def load_learning(folder: Path) -> Learning:
    """Return how often a judgment was right after each signal of rejection, in a run of `every_repair`.

    Raises ConfigError if the run holds replies of no model or of several models, ResultsError if the folder holds no run.
    """
    replies = list(repairs(folder))
    models = sorted({model for model, _ in replies})
    if len(models) != 1:
        problem = f"replies of several models ({', '.join(models)})" if models else "no reply to a rejection"
        todo = "record it with studies/repair_bank/config.toml and one --model"
        raise ConfigError(f"repairs {folder}: it holds {problem}; {todo}")
    return measure_rates(read_manifest(folder).name, models[0], [repair for _, repair in replies])


def repairs(folder: Path) -> Iterator[tuple[str, ErringRepair]]:
    """Yield (model, reply to a rejection) in recorded order. Raises ResultsError as `replies_in` does."""
    return _stored_entries(folder, REPAIRED, _repair)


def _stored_entries(folder: Path, log: str, read: Callable[[TrialRecord, dict[str, Any]], Kept]) -> Iterator[tuple[str, Kept]]:
    """Yield (model, entry) for each entry of this log that a run's trials stored."""
    texts = read_texts(folder)
    trials = latest(trial for trial in read_records(folder) if isinstance(trial, TrialRecord) and trial.outcome != "error")
    for trial in trials:
        for event in trial.events:
            if isinstance(event, Stored) and event.name == log:
                yield trial.model, _entry(trial, _text(texts, event.value, folder), folder, read)


def _text(texts: dict[str, str], digest: str, folder: Path) -> str:
    """Return the text with this digest. Raises ResultsError if the run lacks it."""
    if digest not in texts:
        raise ResultsError(f"{folder}: the text {digest} is missing; the run is not whole")
    return texts[digest]


def _entry(trial: TrialRecord, text: str, folder: Path, read: Callable[[TrialRecord, dict[str, Any]], Kept]) -> Kept:
    """Return an entry of a trial's log, parsed by `read`. Raises ResultsError if the entry cannot be read."""
    try:
        return read(trial, json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultsError(f"{folder}: a judgment of trial {trial.id} cannot be read; restore the run from a copy") from error


def _reply(trial: TrialRecord, stored: dict[str, Any]) -> BankedReply:
    """Return a stored judgment as a reply of the bank."""
    notes, output = tuple(stored.pop("notes")), stored.pop("said")  # recordings call the output `said`
    stored |= {"scenario": trial.scenario, "instance": trial.instance, "repetition": trial.repetition}
    return BankedReply(output=output, notes=notes, **stored)


def _repair(trial: TrialRecord, stored: dict[str, Any]) -> ErringRepair:
    """Return a stored judgment after a rejection as a repair."""
    signal = stored.pop("signal")
    reply = _reply(trial, stored)
    place = (reply.scenario, reply.instance, reply.judgment, reply.state)
    return ErringRepair(*place, signal, not reply.rejected, reply.is_right)
