"""Decide whether code that a model wrote may run on this machine. It may not if a guard of the sandbox is missing, unless the
user allows it.

If code may not run, a replay shows the grades that its recording stored for equal answers. The run's manifest names the grader
that gave them, which can be older than the pack's. If code would have to run, the run is refused in one line. A simulated
model's answers are the pack's own code, which the user chose to run, so they are not refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.common.errors import Unguarded
from bench.record.reading import read_grades, read_manifest, read_texts, read_trials
from bench.record.record import latest
from bench.run.experiment.answers import answer_of
from bench.run.experiment.grading import GradeKey, Graders, key_of
from bench.run.experiment.matrix import Matrix, TrialSpec
from bench.run.models.routed import answerers
from bench.run.sandbox import guards
from bench.scenario import Grade, scenario_key


@dataclass(frozen=True)
class Permission:
    """The way in which a run grades answers.

    graders        the graders by model
    unguarded      the missing guards without which the user allowed code to run; None if the user did not allow that
    stored_grades  run -> scenario -> digest of the grader that gave the grades shown
    notice         a line that tells the user which guards are missing; "" if all are in force
    """

    graders: Mapping[str, Graders]
    unguarded: tuple[str, ...] | None = None
    stored_grades: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notice: str = ""


def missing_guards() -> tuple[str, ...]:
    """Return the names of the sandbox's guards that are missing here."""
    return tuple(guard.name for guard in guards().missing)


def permission(matrix: Matrix, unguarded: bool = False) -> Permission:
    """Return how the trials of a matrix are graded on this machine. With `unguarded`, the user allows code to run without
    guards.

    Raises Unguarded if grading would run code of a model, and no stored grade can take its place.
    """
    missing = missing_guards()
    default = dict.fromkeys(matrix.models, Graders())
    if unguarded:
        notice = f"UNGUARDED: code of models is run without {', '.join(missing)}, as you say" if missing else ""
        return Permission(default, unguarded=missing, notice=notice)
    foreign = [spec for spec in matrix.specs if _runs_foreign_code(spec, matrix)] if missing else []
    if not foreign:
        return Permission(default)
    for spec in foreign:
        if matrix.models[spec.model].timing != "recorded":
            raise Unguarded(refusal(spec.scenario, missing))
        if matrix.scenarios[spec.scenario_key].checks_run_code:
            [run, *_] = _recordings(spec.model, matrix)
            raise Unguarded(f"{refusal(spec.scenario, missing)}; or see what was stored: bench report {run.name}")
    recordings = {spec.model: _recordings(spec.model, matrix) for spec in foreign}
    graders = {name: Graders(_stored_grades(folders, matrix), refusal("", missing)) for name, folders in recordings.items()}
    scenarios = sorted({spec.scenario for spec in foreign})
    runs = {folder.name: _graded_by(folder, scenarios) for folders in recordings.values() for folder in folders}
    notice = (
        f"Guards of the sandbox are missing ({', '.join(missing)}): no answer's code is run, the grades are those stored in"
    )
    return Permission({**default, **graders}, stored_grades=runs, notice=f"{notice} {', '.join(runs)}.")


def refusal(scenario: str, missing: Sequence[str]) -> str:
    """Return why no code is run, and what the user can do. `scenario` is "" for an answer without a stored grade."""
    subject = (
        f"'{scenario}' runs code that a model wrote"
        if scenario
        else "no stored grade is this answer's, and its code is not run"
    )
    problem = f"{subject}; here the sandbox lacks {', '.join(missing)} (see: bench doctor)"
    return f"{problem}: grade on a machine that has them, or say --unguarded, which is recorded"


def _runs_foreign_code(spec: TrialSpec, matrix: Matrix) -> bool:
    """Return whether judging or grading a trial runs code of a model or of an outside system, and not only the pack's code."""
    arm = matrix.arm(spec)
    if not (arm.scenario.checks_run_code or arm.scenario.grader_runs_code):
        return False
    return arm.architecture.part.is_outside or arm.model.timing != "simulated"


def _recordings(model: str, matrix: Matrix) -> list[Path]:
    """Return the folders of the runs that a model replays."""
    entries = (matrix.config.model.get(part.name) for part in answerers(matrix.models[model]))
    return [entry.replays for entry in entries if entry and entry.replays]


def _stored_grades(folders: Iterable[Path], matrix: Matrix) -> dict[GradeKey, Grade]:
    """Return the grades that these runs stored for answers to this matrix's tasks."""
    return {key: grade for folder in folders for key, grade in _grades_in(folder, matrix)}


def _grades_in(folder: Path, matrix: Matrix) -> Iterator[tuple[GradeKey, Grade]]:
    """Yield the stored grades of one run."""
    texts = read_texts(folder)
    for trial in latest(read_trials(folder)):
        scenario = matrix.scenarios.get(scenario_key(trial.scenario, trial.instance))
        if scenario is None or trial.grade is None:
            continue
        if (answer := answer_of(trial, scenario, texts, folder)) is not None:
            yield key_of(scenario, answer), trial.grade


def _graded_by(folder: Path, scenarios: Iterable[str]) -> dict[str, str]:
    """Return, by scenario, the digest of the grader that gave a run's present grades."""
    packs = read_manifest(folder).scenarios
    graded_by = {name: packs[name].graded_by for name in scenarios if name in packs}
    return graded_by | {
        grading.scenario: grading.graded_by for grading in read_grades(folder).history if grading.scenario in graded_by
    }
