"""Where a guard of the sandbox is missing, no code of a model is run, unless the user says so; and what is done says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from trials import ROOTS

from bench.common.errors import ResultsError, Unguarded
from bench.record.files import GRADES, MANIFEST
from bench.record.reading import read_grades, read_trials
from bench.record.record import NewGrade
from bench.record.store import RunWriter, append_grades
from bench.run.experiment.config import Config
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.regrade import regrade
from bench.run.experiment.trial import run_trial
from bench.run.experiment.untrusted import permission
from bench.run.packs import load_pack
from bench.run.sandbox import SandboxBroken, cell, guards
from bench.run.sandbox.guards import WITHOUT_ENV
from bench.run.serve.session import external_matrix
from bench.run.trial import loop
from bench.run.trial.slots import Slots
from bench.scenario import Grade

GRADED, CHECKED, NEITHER = "multi_file_debugging", "functions", "tiny"
"""Packs in which code is run by the grader alone, by the checks as well, and by nothing."""
SIMULATED = {"kind": "simulated"}
LIVE = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1"}


def experiment(entry: dict[str, Any], pack: str = GRADED, **settings: Any) -> Config:
    settings_of_pack = {
        "scenarios": [pack],
        "architectures": ["static"],
        "plans": ["none"],
        "repetitions": 1,
        "instances": 1,
        "plan": {},
    }
    return config(entry, **{**settings_of_pack, **settings})


def matrix(entry: dict[str, Any], pack: str = GRADED) -> Matrix:
    return build_matrix(experiment(entry, pack), ROOTS, "code")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    run(experiment(SIMULATED), tmp_path / "recorded")
    return tmp_path / "recorded"


def replayed(recorded: Path) -> dict[str, Any]:
    return {"kind": "recorded", "run": str(recorded), "model": "small"}


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The sandbox lacks a guard: a real launcher, which leaves it out."""
    monkeypatch.setenv(WITHOUT_ENV, "TCP")
    return tuple(guard.name for guard in guards().missing)


@pytest.fixture
def runs_nothing(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there is a recording, whatever is run in the sandbox is our failure."""
    assert recorded.exists()
    monkeypatch.setattr(cell, "START_CHILD", "raise SystemExit('code was run')")


@pytest.mark.parametrize(("pack", "checks", "grader"), [(GRADED, False, True), (CHECKED, True, True), (NEITHER, False, False)])
def test_a_pack_is_known_to_run_code_by_what_it_imports(pack: str, checks: bool, grader: bool) -> None:
    scenario = load_pack(pack, ROOTS)
    assert (scenario.checks_run_code, scenario.grader_runs_code) == (checks, grader)


def test_a_check_that_only_parses_code_in_the_sandbox_runs_none() -> None:
    assert [load_pack(pack, ROOTS).checks_use_sandbox for pack in (GRADED, CHECKED, NEITHER)] == [True, True, False]


def test_a_replay_shows_the_stored_grades_and_says_so(recorded: Path, tmp_path: Path, lacking: tuple[str, ...]) -> None:
    [trial] = read_trials(recorded)
    stored = Grade(True, 0.75, {}, "as no grader says it")
    append_grades(recorded, [NewGrade(trial.id, "solved", stored)])
    permitted = permission(matrix(replayed(recorded)))
    [after] = run(experiment(replayed(recorded)), tmp_path / "replay")
    assert after.grade == stored and after.outcome == "solved"
    [line] = permitted.notice.splitlines()
    assert all(name in line for name in lacking) and "the grades are those stored in recorded" in line
    grader = json.loads((recorded / MANIFEST).read_text())["scenarios"][GRADED]["graded_by"]
    assert permitted.unguarded is None and permitted.stored_grades == {"recorded": {GRADED: grader}}


@pytest.mark.usefixtures("lacking")
def test_an_answer_that_nobody_graded_gets_no_grade(recorded: Path) -> None:
    replay = matrix(replayed(recorded))
    [scenario] = replay.scenarios.values()
    answer = scenario.answer_of({**scenario.reference, **scenario.wrong[0].outputs})
    with pytest.raises(Unguarded, match="no stored grade is this answer's, and its code is not run; here the sandbox lacks"):
        asyncio.run(permission(replay).graders["small"].grade(scenario, answer))


def test_a_trial_whose_answer_is_not_to_be_graded_is_an_error_without_a_traceback() -> None:
    built = matrix(SIMULATED)
    record = loop.run(run_trial(built.specs[0], built, Slots(), Graders({}, "the reason"))).record
    assert (record.outcome, record.reason, record.grade, record.traceback) == ("error", "the reason", None, None)


@pytest.mark.parametrize("pack", [GRADED, CHECKED])
@pytest.mark.usefixtures("lacking")
def test_what_a_live_model_writes_is_refused_in_one_line(pack: str) -> None:
    with pytest.raises(Unguarded) as refused:
        permission(matrix(LIVE, pack))
    line = str(refused.value)
    assert f"'{pack}' runs code that a model wrote" in line and "TCP" in line and "--unguarded" in line and "\n" not in line


def test_nothing_is_refused_where_all_guards_are_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.run.experiment.untrusted.missing_guards", lambda: ())
    assert not permission(matrix(LIVE, CHECKED)).stored_grades


@pytest.mark.parametrize(("entry", "pack"), [(SIMULATED, CHECKED), (SIMULATED, GRADED), (LIVE, NEITHER)])
@pytest.mark.usefixtures("lacking")
def test_the_packs_own_code_and_packs_without_any_are_not_affected(entry: dict[str, Any], pack: str) -> None:
    assert not permission(matrix(entry, pack)).stored_grades


@pytest.mark.usefixtures("lacking")
def test_an_outside_systems_answers_are_refused_whatever_model_it_asks() -> None:
    served = external_matrix(experiment(SIMULATED, architectures=["external"]), ROOTS, "code")
    with pytest.raises(Unguarded, match=f"'{GRADED}' runs code"):
        permission(served)


@pytest.mark.usefixtures("runs_nothing", "lacking")
def test_grades_are_made_anew_only_where_the_user_says_so(recorded: Path) -> None:
    with pytest.raises(Unguarded, match=f"'{GRADED}' runs code that a model wrote; here the sandbox lacks"):
        regrade(recorded, ROOTS)
    assert not (recorded / GRADES).exists()
    with pytest.raises((SandboxBroken, ResultsError), match="code was run"):
        regrade(recorded, ROOTS, unguarded=True)


def test_the_users_word_stands_in_the_regrade_and_in_the_manifest(recorded: Path, lacking: tuple[str, ...]) -> None:
    [done] = regrade(recorded, ROOTS, unguarded=True)
    assert (done.answers, done.changed, done.unguarded) == (1, 0, lacking)
    assert read_grades(recorded).history == (done,)
    permitted = permission(matrix(LIVE), unguarded=True)
    assert permitted.unguarded == lacking and "UNGUARDED" in permitted.notice


def test_a_run_goes_on_only_under_the_same_word(recorded: Path) -> None:
    same = matrix(SIMULATED)
    with pytest.raises(ResultsError, match="another word on missing guards"):
        RunWriter(recorded, manifest_of(same, "recorded", permission=permission(same, unguarded=True)))
