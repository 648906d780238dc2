"""A recorded trial, run again on the same draws with another fault plan, and without any model behind an endpoint.

A simulated model answers anew, which its seeds decide. Any other model answers from what the run recorded: a rerun that asks it
for something else cannot be judged, and ends in an error that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from bench.errors import ConfigError, ResultsError
from bench.experiment.code import our_codebase
from bench.experiment.config import Config
from bench.experiment.manifest import Manifest
from bench.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.experiment.model_entries import MODELS
from bench.experiment.reading import read_manifest, read_trials
from bench.experiment.record import TrialRecord, latest
from bench.experiment.recording import recorded_entries
from bench.experiment.trial import TrialResult, run_trial
from bench.experiment.untrusted import permission
from bench.runtime.faults import FaultPlan
from bench.runtime.slots import Slots
from bench.studies.counterfactual.failure import TrialFailure

SHORTEST = 4
"""Characters of a trial's id that may stand for it."""
WORST = "worst"
"""In the place of an id: the trial with most damage, and of a run without any a trial that is not solved."""


@dataclass(frozen=True)
class RerunArm:
    """A trial that can be run under any plan."""

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
        """Run the trial again, under its own faults if no others are given."""
        return await self.arm.run(plan or self.plan)


def original_of(folder: Path, trial: str, packs: Sequence[Path]) -> Original:
    """Find a trial of a run and make its experiment ready.

    Args:
        folder: The run.
        trial: The trial's id, its first characters (`SHORTEST` at least), or `WORST`.
        packs: Folders of packs.

    Raises:
        ConfigError: No trial has this id, or several have it; a pack of the run cannot be loaded.
        ResultsError: The run cannot be read.
    """
    manifest = read_manifest(folder)
    record = _record_of(folder, trial)
    config = _config_of(manifest, folder, record)
    matrix = build_matrix(config, packs, our_codebase().digest)
    place = _place(record)
    spec = next((spec for spec in matrix.specs if _place(spec, spec.plan.name) == place), None)
    if spec is None:
        raise ConfigError(f"trial {record.id}: the packs that are here have no such trial; give the folder that the run had")
    return Original(folder, record, RerunArm(spec, matrix))


def differs(original: TrialRecord, rerun: TrialRecord) -> str:
    """Return where a rerun leaves the original, in words; "" where all events, the outcome and the grade are the same.

    Seconds are left out: those of a live model's calls are another machine's.
    """
    if (original.outcome, original.grade) != (rerun.outcome, rerun.grade):
        return f"it ended {rerun.outcome} in place of {original.outcome}"
    for number, (event, again) in enumerate(zip(original.events, rerun.events, strict=False)):
        if _timeless(event) != _timeless(again):
            return f"event {number} is another"
    if len(original.events) != len(rerun.events):
        return f"it has {len(rerun.events)} events in place of {len(original.events)}"
    return ""


def _timeless(event: Any) -> tuple[object, ...]:
    return (type(event), *(value for value in astuple(event) if not isinstance(value, float)))


def _record_of(folder: Path, trial: str) -> TrialRecord:
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


def _config_of(manifest: Manifest, folder: Path, record: TrialRecord) -> Config:
    """Return the run's config for this trial's arm alone; its model answers as it is simulated, or from the recording."""
    values = manifest.config.model_dump(exclude_unset=True)
    pack = record.scenario
    values |= {
        "scenarios": [f"{pack}/{record.instance}" if record.instance else pack],
        "architectures": [record.architecture],
        "models": [record.model],
        "plans": [record.plan],
        "repetitions": record.repetition,
        "instances": None,
        "model": _entries(manifest, folder),
    }
    return Config.model_validate(values)


def _entries(manifest: Manifest, folder: Path) -> Mapping[str, Mapping[str, Any]]:
    recorded = recorded_entries(folder)
    entries = {}
    for name, parameters in manifest.models.items():
        shown = parameters.shown
        if shown.get("recording") or shown.get("kind") != "simulated":
            entries[name] = recorded[name]
            continue
        known = MODELS["simulated"].settings.model_fields
        entries[name] = {key: value for key, value in shown.items() if key in known}
        if bank := shown.get("bank"):
            entries[name]["bank"] = bank["name"]
    return entries


def _place(trial: TrialRecord | TrialSpec, plan: str = "") -> tuple[object, ...]:
    plan = plan or str(trial.plan)
    return trial.scenario, trial.instance, trial.architecture, trial.model, plan, trial.repetition


def require_equal(original: Original, rerun: TrialResult) -> None:
    """Raise ResultsError where a rerun with nothing changed is not the trial that was recorded."""
    if why := differs(original.record, rerun.record):
        message = f"trial {original.record.id}: a rerun with nothing changed is another trial: {why}"
        detail = f" ({rerun.record.reason})" if rerun.record.outcome == "error" else ""
        raise ResultsError(f"{message}{detail}; run it on the version of the code and the packs that recorded it")
