"""The fault plans of a run that a study can use."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.record.plan_entries import FaultEntry


def single_faults(run: Run) -> dict[str, FaultEntry]:
    """Return plan -> its fault, for plans with a single fault, in the config's order."""
    return {plan: faults[0] for plan in run.names("plan") if len(faults := run.config.faults_of(plan)) == 1}


def subtasks_of_round(run: Run, scenario: str) -> dict[str, tuple[str, ...]]:
    """Return plan -> the subtasks from the struck subtask to its checkpoint."""
    pack, by_subtask = scenario.partition(":")[0], dict[str, tuple[str, ...]]()
    for plan, fault in single_faults(run).items():
        struck = fault.subtask.get(pack) if isinstance(fault.subtask, dict) else fault.subtask
        if fault.point != "output" or not run.manifest.descriptions.effect(fault.effect, fault.point).breaks_form:
            continue
        stages = run.pack(scenario).stages
        again = next((tuple(stage[stage.index(struck) :]) for stage in stages if struck in stage), ())
        if again := again or _observed_subtasks(run, scenario, plan, str(struck)):
            by_subtask[plan] = again
    return by_subtask


def _observed_subtasks(run: Run, scenario: str, plan: str, struck: str) -> tuple[str, ...]:
    """Find these subtasks in the trials of `static`, for an early run whose manifest has no stages. They are the calls of the
    rejection that caused the struck subtask's first retry, from the struck subtask on."""
    calls = run.calls
    rows = calls[calls["scenario"].eq(scenario) & calls["plan"].eq(plan) & calls["architecture"].eq("static")]
    retries = rows[rows["subtask"].eq(struck) & rows["attempt"].eq(2)]
    rounds = []
    for trial, cause in zip(retries["trial"].tolist(), retries["caused_by"].tolist(), strict=True):
        names = rows.loc[rows["trial"].eq(trial) & rows["caused_by"].eq(cause).fillna(False), "subtask"].tolist()
        rounds.append(tuple(names[names.index(struck) :]) if struck in names else ())
    return max(rounds, key=len, default=())
