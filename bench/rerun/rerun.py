"""Run a recorded trial again on the same draws with another fault plan, without any model behind an endpoint.

A simulated model answers anew, decided by its seeds. Any other model answers from what the run recorded. A rerun that asks for
a reply that was not recorded cannot be judged, and ends in an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from bench.common.errors import ConfigError, ResultsError
from bench.common.registry import is_path
from bench.record.events import Called, Waited, of_kind
from bench.record.manifest import Manifest
from bench.record.model_parameters import ModelParameters
from bench.record.process_events import ProcessEnded
from bench.record.reading import read_manifest, read_trials
from bench.record.record import TrialRecord, latest
from bench.record.world_events import EventOrigin, StepOrigin, WorldBegan, WorldEnded
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.run.experiment.model_entries import MODELS
from bench.run.experiment.recording import recorded_entries
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.experiment.untrusted import permission
from bench.run.trial.faults import FaultPlan
from bench.run.trial.slots import Slots

SHORTEST = 4
"""Fewest characters of a trial's id that can stand for it."""
PRINTED = {"output", "written", "own_log"}
"""What a process printed."""
WORST = "worst"
"""Instead of an id: the trial with most damage; in a run without damage, an unsolved trial."""


@dataclass(frozen=True)
class TrialFailure:
    """How a trial ended: its outcome, and in a world how often each kind of damage happened."""

    outcome: str
    damage: Mapping[str, int]

    @staticmethod
    def of(record: TrialRecord) -> TrialFailure:
        ended = next(iter(of_kind(record.events, WorldEnded)), None)
        kinds: Mapping[str, Any] = ended.damage if ended else {}
        return TrialFailure(record.outcome, {kind: times for kind, times in kinds.items() if times})

    @property
    def times(self) -> int:
        """The number of damaged effects, of all kinds."""
        return sum(self.damage.values())

    def beyond(self, control: TrialFailure) -> frozenset[str]:
        """Return the kinds of damage that occurred more often than in the control."""
        return frozenset(kind for kind, times in self.damage.items() if times > control.damage.get(kind, 0))

    @property
    def words(self) -> str:
        damage = ", ".join(f"{times} {kind}" for kind, times in self.damage.items())
        return f"{self.outcome.replace('_', ' ')}, with {damage}" if damage else self.outcome.replace("_", " ")


@dataclass(frozen=True)
class RerunArm:
    """A recorded trial with its arm, which can be run under any fault plan."""

    spec: TrialSpec
    matrix: Matrix

    async def run(self, plan: FaultPlan) -> TrialResult:
        """Run the trial under these faults."""
        graders = permission(self.matrix).graders[self.spec.model]
        model = self.matrix.models[self.spec.model]
        await model.prepare()
        try:
            return await run_trial(replace(self.spec, plan=plan), self.matrix, Slots(), graders)
        finally:
            await model.close()


@dataclass(frozen=True)
class Original:
    """A recorded trial, and the arm that runs it again."""

    folder: Path
    record: TrialRecord
    arm: RerunArm

    @property
    def plan(self) -> FaultPlan:
        return self.arm.spec.plan

    async def again(self, plan: FaultPlan | None = None) -> TrialResult:
        """Run the trial again, under its own faults unless other faults are given."""
        return await self.arm.run(plan or self.plan)


def original_of(folder: Path, trial: str, packs: Sequence[Path]) -> Original:
    """Find a trial of a run and prepare its experiment.

    Args:
        folder: The run.
        trial: The trial's id, its first characters (`SHORTEST` at least), or `WORST`.
        packs: Folders of packs.

    Raises:
        ConfigError: No trial has this id, or several have it; a pack of the run cannot be loaded.
        ResultsError: The run cannot be read.
    """
    return originals_of(folder, [record_of(folder, trial)], packs)[0]


def originals_of(folder: Path, records: Sequence[TrialRecord], packs: Sequence[Path]) -> list[Original]:
    """Prepare the experiments of some trials of a run. Raise as `original_of` does."""
    manifest = read_manifest(folder)
    for record in records:
        if why := why_not_rerun(record, manifest):
            raise ConfigError(f"trial {record.id}: {why}")
    matrix = build_matrix(_config_of(manifest, folder, records), packs, our_codebase().digest)
    specs = {_place(spec, spec.plan.name): spec for spec in matrix.specs}
    if lacking := [record for record in records if _place(record) not in specs]:
        raise ConfigError(
            f"trial {lacking[0].id}: the packs that are here have no such trial; give the folder that the run had"
        )
    alone = [(record, specs[_place(record)]) for record in records]
    return [Original(folder, record, RerunArm(spec, replace(matrix, specs=(spec,)))) for record, spec in alone]


def why_not_rerun(record: TrialRecord, manifest: Manifest) -> str:
    """Return why the agent of a trial cannot be started by this command; "" if it can."""
    name = record.architecture
    if name in manifest.config.architecture or name in ARCHITECTURES or is_path(name):
        return ""
    return f"'{name}' is not started from here: who was served its trials starts it, so they are not run again"


def differs(original: TrialRecord, rerun: TrialRecord) -> str:
    """Return in words the first place at which a rerun differs from the original; "" if events, outcome and grade are all
    equal.

    Seconds are left out: a live model's come from another machine. So is a wait for a slot at the endpoint, which only other
    trials cause. An event's origin is left out too: it follows from the other events, and older runs do not have it. So are the
    contracts of a world's tools where the original has none, and what a process printed, which can hold times and paths.
    """
    if (original.outcome, original.grade) != (rerun.outcome, rerun.grade):
        return f"it ended {rerun.outcome} in place of {original.outcome}"
    first, second = timeless(original.events), timeless(rerun.events)
    if any(began.tools == "" for began in of_kind(original.events, WorldBegan)):
        second = timeless([replace(event, tools="") if isinstance(event, WorldBegan) else event for event in rerun.events])
    for (number, event), (_, again) in zip(first, second, strict=False):
        if event != again:
            return f"event {number} is another"
    return f"it has {len(second)} events in place of {len(first)}" if len(first) != len(second) else ""


def timeless(events: Sequence[Any]) -> list[tuple[int, tuple[object, ...]]]:
    """Return the events that depend on no clock and on no other trial: each with its number, and its type and values. An event
    that caused a call is named by its place among them."""
    kept = [number for number, event in enumerate(events) if not (isinstance(event, Waited) and event.why == "slot")]
    places = {number: place for place, number in enumerate(kept)}
    return [(number, _values(events[number], places)) for number in kept]


def _values(event: Any, places: Mapping[int, int]) -> tuple[object, ...]:
    origin = next(
        ({field.name for field in fields(form)} for form in (StepOrigin, EventOrigin) if isinstance(event, form)), set()
    )
    left_out = origin | PRINTED if isinstance(event, ProcessEnded) else origin
    if isinstance(event, Called) and event.caused_by is not None:
        event = replace(event, caused_by=places[event.caused_by])
    values = (getattr(event, field.name) for field in fields(event) if field.name not in left_out)
    return (type(event), *(value for value in values if not isinstance(value, float)))


def record_of(folder: Path, trial: str) -> TrialRecord:
    """Return the trial of this name. Raise as `original_of` does."""
    read_manifest(folder)
    records = {record.id: record for record in latest(read_trials(folder))}
    if trial == WORST:
        return max(
            records.values(), key=lambda record: (TrialFailure.of(record).times, record.outcome not in ("solved", "error"))
        )
    matching = [record for id_, record in records.items() if id_.startswith(trial)] if len(trial) >= SHORTEST else []
    if len(matching) > 1:
        raise ConfigError(f"trial '{trial}': {len(matching)} trials of {folder.name} begin so; give more of the id")
    if not matching:
        raise ConfigError(f"trial '{trial}': {folder.name} has none; give {SHORTEST} characters of an id, or '{WORST}'")
    return matching[0]


def _config_of(manifest: Manifest, folder: Path, records: Sequence[TrialRecord]) -> Config:
    """Return the run's config for the arms of these trials. Models are simulated, or answer from the recording."""

    def each(name: Callable[[TrialRecord], str]) -> list[str]:
        return list(dict.fromkeys(map(name, records)))

    values = manifest.config.model_dump(exclude_unset=True)
    values |= {
        "scenarios": each(lambda record: f"{record.scenario}/{record.instance}" if record.instance else record.scenario),
        "architectures": each(lambda record: record.architecture),
        "models": each(lambda record: record.model),
        "plans": each(lambda record: record.plan),
        "repetitions": max(record.repetition for record in records),
        "instances": None,
        "model": _entries(manifest, folder),
    }
    return Config.model_validate(values)


def _entries(manifest: Manifest, folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return a config's table for each model of the run, and for each simulated model to which another passes requests on."""
    anew = {name: parameters for name, parameters in manifest.models.items() if _answers_anew(parameters)}
    entries: dict[str, Mapping[str, Any]] = {**recorded_entries(folder)}
    for parameters in anew.values():
        asked = {"answer_format": parameters.answer_format}
        entries |= {target: {**_settings(model), **asked} for target, model in parameters.models.items()}
    return entries | {name: {**_settings(model), "answer_format": model.answer_format} for name, model in anew.items()}


def _answers_anew(parameters: ModelParameters) -> bool:
    """Return whether a model is simulated, or passes requests only to models that are, and no recording is involved."""
    if parameters.recording:
        return False
    if parameters.kind == "routed":
        return all(map(_answers_anew, parameters.models.values()))
    return parameters.kind == "simulated"


def _settings(parameters: ModelParameters) -> dict[str, Any]:
    """Return the settings with which a model answers as it did in the run. Measured rates of repair are given as numbers, so
    the run that they were measured in is not needed."""
    shown = parameters.shown
    settings = {key: value for key, value in shown.items() if key in MODELS[parameters.kind].settings.model_fields}
    if bank := shown.get("bank"):
        settings["bank"] = bank["name"]
    if learns := shown.get("learns"):
        settings |= {"right_after": learns["right"], "right_after_source": learns["source"]}
    return settings


def _place(trial: TrialRecord | TrialSpec, plan: str = "") -> tuple[object, ...]:
    plan = plan or str(trial.plan)
    return trial.scenario, trial.instance, trial.architecture, trial.model, plan, trial.repetition


def require_equal(original: Original, rerun: TrialResult) -> None:
    """Raise ResultsError if a rerun with nothing changed differs from the recorded trial."""
    if why := differs(original.record, rerun.record):
        message = f"trial {original.record.id}: a rerun with nothing changed is another trial: {why}"
        detail = f" ({rerun.record.reason})" if rerun.record.outcome == "error" else ""
        raise ResultsError(f"{message}{detail}; run it on the version of the code and the packs that recorded it")
