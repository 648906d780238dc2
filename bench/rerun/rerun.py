"""A recorded trial, run again on the same random draws with another fault plan, without any model behind an endpoint.

A simulated model answers again from its seeds. Any other model answers from the replies that the run recorded. A rerun that
asks for an unrecorded reply cannot be judged; it ends in an error that says so.
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

MIN_ID_LENGTH = 4
"""The least number of first characters of a trial's id by which the trial can be named."""
PRINTED_FIELDS = {"output", "written", "own_log"}
"""The fields of an event that hold what a process printed."""
WORST = "worst"
"""The word that names, instead of an id, the trial with most damage; in a run without damage, an unsolved trial."""


@dataclass(frozen=True)
class TrialFailure:
    """The end of a trial: its outcome, and in a world the number of damaged effects by kind."""

    outcome: str
    damage: Mapping[str, int]

    @staticmethod
    def of(record: TrialRecord) -> TrialFailure:
        """Return the end of a recorded trial."""
        end_event = next(iter(of_kind(record.events, WorldEnded)), None)
        kinds: Mapping[str, Any] = end_event.damage if end_event else {}
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
        """The outcome and the damage in words."""
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
class RerunnableTrial:
    """A recorded trial, and the arm that can run it again."""

    folder: Path
    record: TrialRecord
    arm: RerunArm

    @property
    def plan(self) -> FaultPlan:
        return self.arm.spec.plan

    async def run_again(self, plan: FaultPlan | None = None) -> TrialResult:
        """Run the trial again, under its own faults or under the given faults."""
        return await self.arm.run(plan or self.plan)


def rerunnable_trial(folder: Path, trial: str, packs: Sequence[Path]) -> RerunnableTrial:
    """Find a trial of a run and prepare its experiment.

    Args:
        folder: The run.
        trial: The trial's id, its first characters (`MIN_ID_LENGTH` at least), or `WORST`.
        packs: Folders of packs.

    Raises:
        ConfigError: No trial has this id, or several have it; a pack of the run cannot be loaded.
        ResultsError: The run cannot be read.
    """
    return rerunnable_trials(folder, [record_of(folder, trial)], packs)[0]


def rerunnable_trials(folder: Path, records: Sequence[TrialRecord], packs: Sequence[Path]) -> list[RerunnableTrial]:
    """Prepare the experiments of some trials of a run. Raises the errors of `rerunnable_trial`."""
    manifest = read_manifest(folder)
    for record in records:
        if reason := why_not_rerun(record, manifest):
            raise ConfigError(f"trial {record.id}: {reason}")
    matrix = build_matrix(_config_of(manifest, folder, records), packs, our_codebase().digest)
    specs = {_identity(spec, spec.plan.name): spec for spec in matrix.specs}
    if lacking := [record for record in records if _identity(record) not in specs]:
        raise ConfigError(
            f"trial {lacking[0].id}: the packs that are here have no such trial; give the folder that the run had"
        )
    trials = []
    for record in records:
        spec = specs[_identity(record)]
        trials.append(RerunnableTrial(folder, record, RerunArm(spec, replace(matrix, specs=(spec,)))))
    return trials


def why_not_rerun(record: TrialRecord, manifest: Manifest) -> str:
    """Return why this command cannot start the agent of a trial; "" if it can."""
    name = record.architecture
    if name in manifest.config.architecture or name in ARCHITECTURES or is_path(name):
        return ""
    return f"'{name}' is not started from here: who was served its trials starts it, so they are not run again"


def difference_between(original: TrialRecord, rerun: TrialRecord) -> str:
    """Describe the first difference between a rerun and the original trial; "" if events, outcome and grade are all equal.

    These values are not compared:
    - seconds: the seconds of a live model come from another machine
    - waits for a slot at the endpoint, which only other trials cause
    - the origin of an event: it follows from the other events, and older runs do not have it
    - the contracts of a world's tools, if the original has none
    - the text that a process printed: it can hold times and paths
    """
    if (original.outcome, original.grade) != (rerun.outcome, rerun.grade):
        return f"it ended {rerun.outcome} in place of {original.outcome}"
    original_events, rerun_events = without_times(original.events), without_times(rerun.events)
    if any(began_event.tools == "" for began_event in of_kind(original.events, WorldBegan)):
        rerun_events = without_times(
            [replace(event, tools="") if isinstance(event, WorldBegan) else event for event in rerun.events]
        )
    for (number, event), (_, rerun_event) in zip(original_events, rerun_events, strict=False):
        if event != rerun_event:
            return f"event {number} is another"
    if len(original_events) != len(rerun_events):
        return f"it has {len(rerun_events)} events in place of {len(original_events)}"
    return ""


def without_times(events: Sequence[Any]) -> list[tuple[int, tuple[object, ...]]]:
    """Return the events without those that depend on a clock or on another trial. Each event has its number, its type and
    its values. An event that caused a call is identified by its index among the returned events."""
    numbers = [number for number, event in enumerate(events) if not (isinstance(event, Waited) and event.why == "slot")]
    places = {number: place for place, number in enumerate(numbers)}
    return [(number, _compared_values(events[number], places)) for number in numbers]


def _compared_values(event: Any, places: Mapping[int, int]) -> tuple[object, ...]:
    """Return the type and the values of an event, without its origin and without times. `places` maps the number of each
    compared event to its index."""
    left_out = set(PRINTED_FIELDS) if isinstance(event, ProcessEnded) else set()
    for origin in (EventOrigin, StepOrigin):
        left_out |= {field.name for field in fields(origin)} if isinstance(event, origin) else set()
    if isinstance(event, Called) and event.caused_by is not None:
        event = replace(event, caused_by=places[event.caused_by])
    values = (getattr(event, field.name) for field in fields(event) if field.name not in left_out)
    return (type(event), *(value for value in values if not isinstance(value, float)))


def record_of(folder: Path, trial: str) -> TrialRecord:
    """Return the record of the trial with this name. Raises the errors of `rerunnable_trial`."""
    read_manifest(folder)
    records = {record.id: record for record in latest(read_trials(folder))}
    if trial == WORST:
        return max(
            records.values(), key=lambda record: (TrialFailure.of(record).times, record.outcome not in ("solved", "error"))
        )
    matching = [record for id_, record in records.items() if id_.startswith(trial)] if len(trial) >= MIN_ID_LENGTH else []
    if len(matching) > 1:
        raise ConfigError(f"trial '{trial}': {len(matching)} trials of {folder.name} begin so; give more of the id")
    if not matching:
        raise ConfigError(f"trial '{trial}': {folder.name} has none; give {MIN_ID_LENGTH} characters of an id, or '{WORST}'")
    return matching[0]


def _config_of(manifest: Manifest, folder: Path, records: Sequence[TrialRecord]) -> Config:
    """Return the run's config for the arms of these trials. Models are simulated, or answer from the recording."""

    def distinct_names(name_of: Callable[[TrialRecord], str]) -> list[str]:
        """Return the distinct names in the records."""
        return list(dict.fromkeys(map(name_of, records)))

    values = manifest.config.model_dump(exclude_unset=True)
    values |= {
        "scenarios": distinct_names(
            lambda record: f"{record.scenario}/{record.instance}" if record.instance else record.scenario
        ),
        "architectures": distinct_names(lambda record: record.architecture),
        "models": distinct_names(lambda record: record.model),
        "plans": distinct_names(lambda record: record.plan),
        "repetitions": max(record.repetition for record in records),
        "instances": None,
        "model": _model_tables(manifest, folder),
    }
    return Config.model_validate(values)


def _model_tables(manifest: Manifest, folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return a config's table for each model of the run, and for each simulated model to which another passes requests on."""
    entries: dict[str, Mapping[str, Any]] = {**recorded_entries(folder)}
    simulated = {name: model for name, model in manifest.models.items() if _answers_anew(model)}
    for router in simulated.values():
        for name, model in router.models.items():
            entries[name] = {**_settings(model), "answer_format": router.answer_format}
    for name, model in simulated.items():
        entries[name] = {**_settings(model), "answer_format": model.answer_format}
    return entries


def _answers_anew(parameters: ModelParameters) -> bool:
    """Return whether a model is simulated, or passes requests only to models that are, and no recording is involved."""
    if parameters.recording:
        return False
    if parameters.kind == "routed":
        return all(map(_answers_anew, parameters.models.values()))
    return parameters.kind == "simulated"


def _settings(parameters: ModelParameters) -> dict[str, Any]:
    """Return the settings with which a model answers as in the run. Measured repair rates are included as numbers, so the
    run in which they were measured is not needed."""
    shown = parameters.shown
    settings = {key: value for key, value in shown.items() if key in MODELS[parameters.kind].settings.model_fields}
    if bank := shown.get("bank"):
        settings["bank"] = bank["name"]
    if learns := shown.get("learns"):
        settings |= {"right_after": learns["right"], "right_after_source": learns["source"]}
    return settings


def _identity(trial: TrialRecord | TrialSpec, plan: str = "") -> tuple[object, ...]:
    """Return the scenario, instance, architecture, model, plan and repetition of a trial."""
    plan = plan or str(trial.plan)
    return trial.scenario, trial.instance, trial.architecture, trial.model, plan, trial.repetition


def require_equal(original: RerunnableTrial, rerun: TrialResult) -> None:
    """Raise ResultsError if a rerun with nothing changed differs from the recorded trial."""
    if first_difference := difference_between(original.record, rerun.record):
        message = f"trial {original.record.id}: a rerun with nothing changed is another trial: {first_difference}"
        detail = f" ({rerun.record.reason})" if rerun.record.outcome == "error" else ""
        raise ResultsError(f"{message}{detail}; run it on the version of the code and the packs that recorded it")
