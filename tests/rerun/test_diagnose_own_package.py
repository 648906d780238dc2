"""Code of a user's own package is diagnosed by mends that are ours: it is never loaded again as its own mend, and what cannot
be mended is not cleared."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnosis.own.planted import HARMLESS, WEAKNESSES, Edit, clerk, edits_of, write_package
from diagnosis.own.score import CRASH, read_scored, rows, score, summary
from diagnosis.score import PROVOKED
from experiment_runs import run

from bench.rerun.diagnose import Diagnosis, counts_by_verdict, diagnose, is_failed
from bench.rerun.diagnosis_text import diagnosis_lines, trial_lines
from bench.rerun.mended_parts import FOREIGN_CODE, LACKS_METHODS
from bench.rerun.rerun import rerunnable_trials
from bench.run.experiment.config import Config
from bench.run.trial import loop

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "diagnosing.md").read_text(encoding="utf-8")
NO_KEY, NOBODY_ASKED = "the key of an effect is dropped", "no person is asked where the policy wants one"
SOME_KEYS = "effects of one kind have no key"


def diagnosed(package: str, edits: tuple[Edit, ...], case: str, folder: Path) -> Diagnosis:
    """A failed trial of this package, which lies in the current folder."""
    write_package(folder, package, edits[0].base, edits)
    settings = Config.model_validate(
        {
            "name": "own",
            "scenarios": [f"contract_renewal/{case}"],
            "architectures": ["mine"],
            "architecture": {"mine": {"base": f"{package}.agent:careful"}},
            "models": ["m"],
            "model": {"m": {"kind": "simulated"}},
            "plans": ["provoked"],
            "plan": {"provoked": {"faults": [*PROVOKED, CRASH]}},
            "repetitions": 1,
            "seed": 20261128,
        }
    )
    packs = [ROOT / "scenarios"]
    [record] = run(settings, folder / "run", packs)
    assert is_failed(record)
    [original] = rerunnable_trials(folder / "run", [record], packs)
    return loop.run(diagnose(original))


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_weak_commit_of_ones_own_copy_is_blamed_and_nothing_else(tmp_path: Path) -> None:
    diagnosis = diagnosed("own_keyless", edits_of(NO_KEY), "case_03", tmp_path)
    assert diagnosis.blamed == {"commit"}
    assert diagnosis.not_asked == {"pattern": FOREIGN_CODE}
    assert "  not asked in 1 of 1 trials: pattern" in diagnosis_lines("own", 1, [diagnosis])


def test_a_boundary_that_is_not_ours_is_mended_as_well(tmp_path: Path) -> None:
    diagnosis = diagnosed("own_clerk", edits_of(SOME_KEYS), "case_10", tmp_path)
    assert diagnosis.blamed == {"commit"}
    assert diagnosis.is_explained


def test_a_weak_pattern_of_ones_own_is_not_asked_and_neither_cleared_nor_is_another_part_blamed(tmp_path: Path) -> None:
    diagnosis = diagnosed("own_silent", edits_of(NOBODY_ASKED), "case_12", tmp_path)
    assert not diagnosis.blamed
    assert counts_by_verdict([diagnosis])["pattern"] == {"not asked": len(diagnosis.entries)}
    lines = diagnosis_lines("own", 1, [diagnosis])
    assert not [line for line in lines if "not to blame" in line]
    assert f"The pattern could not be mended: {FOREIGN_CODE}." in trial_lines(diagnosis)


def test_a_part_with_methods_that_ours_lacks_is_not_exchanged_and_not_cleared(tmp_path: Path) -> None:
    key = 'return f"clerk {effect.key}" if "send" not in effect.tool else None'
    own_method = f"return self.form_of(effect)\n\n    def form_of(self, effect: StepEffect) -> str | None:\n        {key}"
    edits = (clerk("commit", 'return f"clerk {effect.key}"', own_method),)
    diagnosis = diagnosed("own_method", edits, "case_10", tmp_path)
    assert diagnosis.not_asked["commit"] == LACKS_METHODS
    assert "commit" not in diagnosis.blamed


@pytest.mark.parametrize("name", [*WEAKNESSES, *HARMLESS])
def test_each_edit_of_a_package_can_be_made(name: str, tmp_path: Path) -> None:
    edits = edits_of(name)
    write_package(tmp_path, "package", edits[0].base, edits)
    for path in (tmp_path / "package").rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_six_weaknesses_of_each_part_are_planted_beside_eight_harmless_edits() -> None:
    parts = [edit.part for edit in WEAKNESSES.values()]
    assert {part: parts.count(part) for part in parts} == dict.fromkeys(("commit", "verifier", "signal", "pattern"), 6)
    assert len(HARMLESS) == 8
    assert all(edit.part != WEAKNESSES[beside].part for edit, beside in HARMLESS.values())


def test_the_committed_trials_are_of_every_edit() -> None:
    assert {trial.edit for trial in read_scored()} == {*WEAKNESSES, *HARMLESS}


@pytest.mark.endurance
def test_the_command_diagnoses_the_committed_trials_so_again() -> None:
    assert list(score()) == read_scored()


def test_the_page_has_the_table_of_the_committed_trials() -> None:
    assert [row for row in rows(read_scored()) if row not in PAGE] == []


def test_the_page_adds_up_the_committed_trials() -> None:
    asked, _, harmless = summary(read_scored())
    words = " ".join(PAGE.split())
    assert f"In {asked} of these trials the command names the weak part and no other part." in words
    assert f"A harmless edit is blamed in {harmless} trials." in words
