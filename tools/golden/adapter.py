"""All that the golden net asks of the package: who moves a module of `bench` mends the imports here, and nothing else of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pandas as pd

import bench
from bench.record.plan_entries import EVERY
from bench.record.store import RunWriter
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.keys import key_of
from bench.run.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.recording import recorded_entries
from bench.run.experiment.runner import run_matrix
from bench.run.trial.faults import Fault, FaultSchedule
from bench.run.trial.loop import run

ROOT = Path(__file__).parents[2]
PACKS = [ROOT / "scenarios"]
IN_ITS_PLACE = "bare_agent"
"""It runs where a config names nothing but commands."""
SAMPLES = (1, 2)
WORLD_POINTS = ("tool", "event", "process")
WORLD_TARGET, WORLD_KEYS, WORLD_TRIES = "a target", ("a key", "another key"), (1, 2)
"""A draw in a world depends on these words and on no world: words that are made up do as well as real ones."""

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Size:
    """How many instances of a pack, repetitions, and cases that the config names, at most; None: all that it asks for."""

    instances: int | None = None
    repetitions: int | None = None
    cases: int | None = None


def read(folder: Path) -> Frames:
    """Return the frames of a run by name."""
    return bench.load_run(folder).frames


def run_anew(experiment: Matrix) -> Frames:
    """Run the whole experiment in a temporary folder and return its frames."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "golden")
        writer = RunWriter(folder, manifest_of(experiment, folder.name))
        try:
            run(run_matrix(experiment, writer, lambda _: None))
        finally:
            writer.close()
        return read(folder)


def simulated(config: Path, size: Size) -> Matrix:
    """Return a config's experiment on simulated models, without architectures that need an extra or are commands."""
    given = load_config(config, {})
    made_up = [name for name in given.models if given.model[name].kind == "simulated"]
    models = {} if made_up else {name: {"kind": "simulated"} for name in given.models}
    changes = {**_sized(given, size), "architectures": _runnable(given) or [IN_ITS_PLACE], "models": made_up or None}
    return build_matrix(load_config(config, changes, models), PACKS, "golden")


def recorded(folder: Path, size: Size) -> Matrix:
    """Return a committed run's experiment on its own recorded replies, without architectures that need an extra."""
    settings = {**bench.load_run(folder).config.model_dump(), "model": recorded_entries(folder), "study": None}
    given = Config.model_validate(settings)
    changes = {**_sized(given, size), "architectures": _runnable(given)}
    return build_matrix(Config.model_validate(settings | changes), PACKS, "golden")


def _sized(config: Config, size: Size) -> dict[str, Any]:
    changes: dict[str, Any] = {"repetitions": min(config.repetitions, size.repetitions or config.repetitions)}
    if size.instances:
        changes["instances"] = min(config.instances or size.instances, size.instances)
    if size.cases and all("/" in name for name in config.scenarios):
        by_pack = groupby(config.scenarios, lambda name: name.partition("/")[0])
        changes["scenarios"] = [name for _, names in by_pack for name in islice(names, size.cases)]
    return changes


def _runnable(config: Config) -> list[str]:
    """Return the architectures that need no extra and are no command."""
    extra = {part.name for part in ARCHITECTURES if part.extra}
    bases = {name: config.architecture[name].base if name in config.architecture else name for name in config.architectures}
    return [name for name, base in bases.items() if base and base not in extra]


def planned(experiment: Matrix, trial: TrialSpec) -> list[tuple[object, ...]]:
    """Return every fault that the schedule of a trial can plan, each with the next number that its generator draws."""
    schedule = FaultSchedule(trial.plan, key_of(experiment.config.seed, trial), lambda _: None)
    subtasks = [subtask.name for subtask in experiment.scenarios[trial.scenario_key].task.subtasks]
    faults = [*_in_calls(schedule, trial, subtasks, experiment.config.max_attempts), *_in_world(schedule, trial)]
    return [
        (fault.point, fault.effect, due.subtask, due.attempt, due.sample, due.key, due.draw.random(), _fields_of(fault))
        for due in faults
        for fault in [due.fault]
    ]


def _fields_of(fault: Fault) -> dict[str, object]:
    """Return what a fault says; without `only` all that its trigger draws is struck, as it was before there was that field."""
    return {name: value for name, value in asdict(fault).items() if name != "only" or value is not None}


def _in_calls(schedule: FaultSchedule, trial: TrialSpec, subtasks: list[str], attempts: int) -> Iterator[Any]:
    for point in dict.fromkeys(fault.point for fault in trial.plan.faults if fault.point not in WORLD_POINTS):
        for attempt in range(1, attempts + 1):
            for sample in SAMPLES:
                yield from schedule.due(point, subtasks, attempt, sample)


def _in_world(schedule: FaultSchedule, trial: TrialSpec) -> Iterator[Any]:
    for fault in trial.plan.faults:
        if fault.point in WORLD_POINTS:
            target = WORLD_TARGET if fault.subtask == EVERY else fault.subtask
            for key in WORLD_KEYS:
                for try_ in WORLD_TRIES:
                    due = schedule.due_in_world((fault.point,), target, key, try_, lambda candidate, it=fault: candidate is it)  # type: ignore[misc]
                    yield from [due] if due else []


__all__ = ["ROOT", "Fault", "Frames", "Matrix", "Size", "TrialSpec", "planned", "read", "recorded", "run_anew", "simulated"]
