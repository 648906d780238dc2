"""Grade the stored answers of a run again, with the packs' present graders. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.common.errors import BenchError, ResultsError, Unguarded
from bench.common.registry import attribute_at
from bench.record.places import place_of
from bench.record.provenance import now
from bench.record.reading import read_manifest, read_texts, read_trials
from bench.record.record import NewGrade, Regrade, TrialRecord, latest, outcome_of
from bench.record.store import append_grades, writing
from bench.run.experiment.answers import answer_of
from bench.run.experiment.grading import grade_of
from bench.run.experiment.new_manifest import joint_digest
from bench.run.experiment.trial import UNFIT_GRADE
from bench.run.experiment.untrusted import missing_guards, refusal
from bench.run.packs import load_pack
from bench.run.packs.environments import ENVIRONMENTS, of_packs
from bench.scenario import Grade, Scenario, TaskEnvironment, scenario_key


def regrade(folder: Path, packs: Sequence[Path], unguarded: bool = False) -> list[Regrade]:
    """Grade the answers of a run again and store the grades that changed. Return one entry for each scenario. With `unguarded`,
    a model's code runs even if guards of the sandbox are missing, which is recorded.

    Raises ResultsError if the folder holds no run, is being written to, or lacks a text; PackError if a pack cannot be loaded;
    Unguarded if grading needs code that has no permission to run.
    """
    manifest, missing = read_manifest(folder), missing_guards()
    with writing(folder):
        texts = read_texts(folder)
        trials = [trial for trial in latest(read_trials(folder)) if trial.grade is not None]
        regrades = []
        for name, pack in manifest.scenarios.items():
            scenarios = [load_pack(name, packs, instance) for instance in pack.instances]
            by_key = {scenario.key: scenario for scenario in scenarios}
            chosen = [trial for trial in trials if trial.scenario == name]
            absent_guards = missing if chosen and scenarios[0].grader_runs_code else ()
            if absent_guards and not unguarded:
                raise Unguarded(refusal(name, absent_guards))
            grades = [(trial, _grade(trial, by_key[scenario_key(name, trial.instance)], texts, folder)) for trial in chosen]
            changed = [NewGrade(trial.id, outcome_of(grade), grade) for trial, grade in grades if grade != trial.grade]
            digest = joint_digest([scenario.graded_by for scenario in scenarios])
            regrades.append(Regrade(now(), name, digest, len(grades), len(changed), absent_guards))
            append_grades(folder, [regrades[-1], *changed])
    return regrades


def _grade(trial: TrialRecord, scenario: Scenario, texts: Mapping[str, str], folder: Path) -> Grade:
    """Return the present grade of a trial's stored answer. Raises ResultsError if the grader fails or a text is missing."""
    answer = _answer_to_grade(trial, scenario, texts, folder)
    if answer is None:
        return UNFIT_GRADE
    try:
        return grade_of(scenario, answer)
    except Exception as error:  # an error in the pack's code, which its author must correct
        problem = f"{place_of(error) or scenario.name}: the grader fails on trial {trial.id}: {type(error).__name__}: {error}"
        raise ResultsError(" ".join(problem.split())) from error


def _answer_to_grade(trial: TrialRecord, scenario: Scenario, texts: Mapping[str, str], folder: Path) -> Any:
    """Return the trial's answer, or its world at the end; None if an output of the answer does not fit its schema."""
    if scenario.environment is None:
        return answer_of(trial, scenario, texts, folder)
    return _environment_at_end(scenario.environment, trial, texts, folder)


def _environment_at_end(environment: TaskEnvironment, trial: TrialRecord, texts: Mapping[str, str], folder: Path) -> Any:
    """Return the trial's world at its end, from the stored text."""
    digest = attribute_at(ENVIRONMENTS[environment.part].trial).world_digest(trial.events)
    if digest not in texts:
        raise ResultsError(f"{folder}: lacks the text '{digest}' of trial {trial.id}; restore it from a copy")
    try:
        return of_packs(environment).restore(texts[digest])
    except BenchError as error:
        raise ResultsError(f"{folder}: the text '{digest}' of trial {trial.id}: {error}; restore it from a copy") from error
