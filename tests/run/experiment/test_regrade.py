"""Grades are made anew from the stored answers: no model is asked, and whatever reads the run has the new grades."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
from study_runs import run_of_matrix

import bench
from bench.cli.authoring.new import new_scenario
from bench.common.errors import ResultsError
from bench.record.files import GRADES, RESPONSES, TEXTS, TRIALS
from bench.record.reading import read_grades
from bench.record.store import RunWriter, writing
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.regrade import regrade

CONFIG = {
    "name": "test",
    "scenarios": ["demo"],
    "architectures": ["monolithic", "static"],
    "models": ["m"],
    "repetitions": 2,
    "seed": 7,
    "model": {"m": {"kind": "simulated"}},
}


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    new_scenario("demo", tmp_path / "packs")
    return tmp_path / "packs"


@pytest.fixture
def folder(tmp_path: Path, packs: Path) -> Path:
    return Path(run_of_matrix(tmp_path, matrix(packs)).folder or "")


def matrix(packs: Path) -> Matrix:
    return build_matrix(Config.model_validate(CONFIG), [packs], "code")


def harsher(packs: Path, tmp_path: Path) -> Path:
    """The same packs with a grader that finds nothing right: in a folder of their own, since a module is loaded once."""
    edited = Path(shutil.copytree(packs, tmp_path / "edited"))
    grader = edited / "demo" / "grader.py"
    code = grader.read_text(encoding="utf-8")
    assert "correct = all(parts.values())" in code
    grader.write_text(code.replace("correct = all(parts.values())", "correct = False"), encoding="utf-8")
    return edited


def test_the_same_grader_changes_no_grade_and_says_so(folder: Path, packs: Path) -> None:
    before = bench.load_run(folder).trials
    [done] = regrade(folder, [packs])
    assert (done.scenario, done.answers, done.changed) == ("demo", 4, 0)
    assert bench.load_run(folder).trials.equals(before)
    assert bench.load_run(folder).regrades == (done,)


def test_an_edited_grader_grades_the_stored_answers_and_what_was_recorded_stays_as_it_was(
    folder: Path, packs: Path, tmp_path: Path
) -> None:
    recorded = {name: (folder / name).read_bytes() for name in (TRIALS, TEXTS, RESPONSES)}
    assert set(bench.load_run(folder).trials["outcome"]) == {"solved"}
    [done] = regrade(folder, [harsher(packs, tmp_path)])
    assert (done.answers, done.changed) == (4, 4)
    assert set(bench.load_run(folder).trials["outcome"]) == {"wrong"}
    assert {name: (folder / name).read_bytes() for name in recorded} == recorded


def test_grades_can_be_made_anew_again_and_the_last_ones_count(folder: Path, packs: Path, tmp_path: Path) -> None:
    regrade(folder, [harsher(packs, tmp_path)])
    [back] = regrade(folder, [packs])
    assert back.changed == 4
    assert set(bench.load_run(folder).trials["outcome"]) == {"solved"}
    assert [regraded.changed for regraded in read_grades(folder).history] == [4, 4]


def test_a_run_goes_on_after_its_grader_was_mended_once_its_grades_are_made_anew(
    folder: Path, packs: Path, tmp_path: Path
) -> None:
    mended = harsher(packs, tmp_path)
    manifest = manifest_of(matrix(mended), folder.name)
    with pytest.raises(
        ResultsError, match=r"another version of the grader of 'demo'; make its grades anew by `bench more regrade"
    ):
        RunWriter(folder, manifest)
    regrade(folder, [mended])
    writer = RunWriter(folder, manifest)
    assert set(writer.ended) == {spec.place for spec in matrix(mended).specs}
    writer.close()


def test_a_grader_that_raises_is_one_line_with_its_place_and_changes_nothing(folder: Path, packs: Path, tmp_path: Path) -> None:
    broken = harsher(packs, tmp_path)
    grader = broken / "demo" / "grader.py"
    grader.write_text(
        grader.read_text(encoding="utf-8").replace("correct = False", "correct = parts['nothing']"), encoding="utf-8"
    )
    with pytest.raises(ResultsError, match=r"demo/grader.py:\d+: the grader fails on trial \w+: KeyError: 'nothing'"):
        regrade(folder, [broken])
    assert not (folder / GRADES).exists()


def test_an_answer_on_which_the_grader_raises_is_wrong_and_the_others_are_graded_all_the_same(
    packs: Path, tmp_path: Path
) -> None:
    spoiling = {"point": "state", "effect": "wrong_value", "subtask": "decide", "attempts": [1]}
    config = {**CONFIG, "plans": ["none", "spoiled"], "plan": {"spoiled": {"faults": [spoiling]}}}
    folder = Path(run_of_matrix(tmp_path, build_matrix(Config.model_validate(config), [packs], "code")).folder or "")
    broken = harsher(packs, tmp_path)
    grader = broken / "demo" / "grader.py"
    code = grader.read_text(encoding="utf-8")
    grader.write_text(code.replace("correct = False", "correct = all(parts.values()) or parts['nothing']"))
    [done] = regrade(folder, [broken])
    trials = bench.load_run(folder).trials.set_index("plan")["outcome"]
    assert set(trials["none"]) == {"solved"} and set(trials["spoiled"]) == {"wrong"}
    assert (done.answers, done.changed) == (8, 4)
    assert all("(demo/grader.py:" in new.grade.note for new in read_grades(folder).grades.values())


def test_nobody_grades_a_run_anew_that_is_being_written_to(folder: Path, packs: Path) -> None:
    with writing(folder), pytest.raises(ResultsError, match="another bench run is writing here"):
        regrade(folder, [packs])


def test_a_run_whose_trials_depend_on_the_reference_never_holds_trials_of_two_of_them(
    folder: Path, packs: Path, tmp_path: Path
) -> None:
    edited = Path(shutil.copytree(packs, tmp_path / "edited"))
    reference = edited / "demo" / "reference" / "answer.json"
    reference.write_text(reference.read_text(encoding="utf-8").replace('"days_left": 6', '"days_left": 7'), encoding="utf-8")
    with pytest.raises(ResultsError, match="another version of the reference"):
        RunWriter(folder, manifest_of(matrix(edited), folder.name))


def test_a_disk_that_is_full_leaves_a_run_that_was_not_graded_anew(
    folder: Path, packs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(ResultsError, match="cannot be written: No space left on device"):
        regrade(folder, [packs])
    assert not (folder / GRADES).exists()
