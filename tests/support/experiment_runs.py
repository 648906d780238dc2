"""Small runs, written and read again: of the pack `tiny` on one model, with and without faults."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trials import ROOTS

from bench.record.chain import seal, unseal
from bench.record.events import Called, Event, Waited
from bench.record.reading import read_records, read_trials
from bench.record.record import SessionRecord, TrialRecord
from bench.record.store import RunWriter
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.experiment.session import Session
from bench.run.trial import loop

PLANS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "none": [],
    "early": [{"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "total"}],
    "cut": [{"point": "call", "effect": "cut_off", "attempts": [1], "subtask": "gather"}],
    "limited": [{"point": "call", "effect": "rate_limit", "attempts": [1], "subtask": "total", "seconds": 0.01}],
}


def config(entry: dict[str, Any], **settings: Any) -> Config:
    """An experiment on one model, `small`, with this entry."""
    values: dict[str, Any] = {
        "name": "recorded",
        "scenarios": ["tiny"],
        "architectures": ["static", "runtime_structured"],
        "models": ["small"],
        "plans": list(PLANS),
        "repetitions": 3,
        "seed": 11,
        "back_off": {"base": 0.01},
        "model": {"small": entry},
        "plan": {name: {"faults": faults} for name, faults in PLANS.items()},
    }
    return Config.model_validate({**values, **settings})


def run(settings: Config, folder: Path, roots: Sequence[Path] = ROOTS) -> list[TrialRecord]:
    """Run what is missing in this folder; all trials in it."""
    return run_matrix_in(build_matrix(settings, roots, "code"), folder)


def run_matrix_in(matrix: Matrix, folder: Path, session: Session | None = None) -> list[TrialRecord]:
    writer = RunWriter(folder, manifest_of(matrix, folder.name))
    try:
        loop.run(run_matrix(matrix, writer, lambda _: None, session))
    finally:
        writer.close()
    return list(read_trials(folder))


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def without(path: Path, unwanted: Callable[[Any], bool]) -> None:
    """The chained file without these records, chained anew: as if they had never been written."""
    chained_anew(path, lambda lines: [line for line in lines if not unwanted(json.loads(line))])


def chained_anew(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """The chained file with a change of its lines, which are given without their links, chained anew: as a forger can."""
    before, after, plain, again = "", "", list[bytes](), list[bytes]()
    for line in path.read_bytes().splitlines(keepends=True):
        content, before = unseal(line, before)
        plain.append(content)
    for content in change(plain):
        line, after = seal(content, after)
        again.append(line)
    path.write_bytes(b"".join(again))


def as_it_happened(trial: TrialRecord) -> TrialRecord:
    """The record without what is this machine's own: framework time, when each call therefore began, a timer's waits."""
    events = tuple(map(_as_it_happened, trial.events))
    return replace(trial, id="", timing="recorded", framework_seconds=0.0, waiting_seconds=0.0, events=events)


def _as_it_happened(event: Event) -> Event:
    if isinstance(event, Called):
        return replace(event, started=0.0, client=0.0)
    return replace(event, started=0.0, seconds=0.0) if isinstance(event, Waited) else event


def timeless(folder: Path) -> dict[str, TrialRecord]:
    """The records by id, without the only thing in them that is really timed."""
    trials = list(read_trials(folder))
    assert len(trials) == len({trial.id for trial in trials})
    return {trial.id: replace(trial, framework_seconds=0.0) for trial in trials}


def sessions_of(folder: Path) -> list[SessionRecord]:
    """When `bench run` began and ended on this folder."""
    return [record for record in read_records(folder) if isinstance(record, SessionRecord)]
