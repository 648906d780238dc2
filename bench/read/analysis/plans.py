"""The fault plans of a run that have a single fault, and the subtasks that a round after such a fault asks for again."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.record.plan_entries import FaultEntry


def single_faults(run: Run) -> dict[str, FaultEntry]:
    """Return plan -> its fault, for plans with a single fault, in the config's order."""
    return {plan: faults[0] for plan in run.names("plan") if len(faults := run.config.faults_of(plan)) == 1}


def subtasks_of_round(run: Run, scenario: str) -> dict[str, tuple[str, ...]]:
    """Return plan -> the subtasks from the struck subtask to its checkpoint, for plans whose fault breaks the form of an
    output."""
    pack, by_plan = scenario.partition(":")[0], dict[str, tuple[str, ...]]()
    for plan, fault in single_faults(run).items():
        struck = fault.subtask.get(pack) if isinstance(fault.subtask, dict) else fault.subtask
        if fault.point != "output" or not run.manifest.descriptions.effect(fault.effect, fault.point).breaks_form:
            continue
        stages = run.pack(scenario).stages
        subtasks = next((tuple(stage[stage.index(struck) :]) for stage in stages if struck in stage), ())
        if subtasks := subtasks or _observed_subtasks(run, scenario, plan, str(struck)):
            by_plan[plan] = subtasks
    return by_plan


def _observed_subtasks(run: Run, scenario: str, plan: str, struck: str) -> tuple[str, ...]:
    """Return the subtasks of a round as the trials of `static` show them, for an early run whose manifest has no stages: the
    rejection that caused the struck subtask's first retry caused these calls too. They begin with the struck subtask, and the
    longest round is returned."""
    calls = run.calls
    rows = calls[calls["scenario"].eq(scenario) & calls["plan"].eq(plan) & calls["architecture"].eq("static")]
    retries = rows[rows["subtask"].eq(struck) & rows["attempt"].eq(2)]
    rounds = []
    for trial, cause in zip(retries["trial"].tolist(), retries["caused_by"].tolist(), strict=True):
        names = rows.loc[rows["trial"].eq(trial) & rows["caused_by"].eq(cause).fillna(False), "subtask"].tolist()
        rounds.append(tuple(names[names.index(struck) :]) if struck in names else ())
    return max(rounds, key=len, default=())
