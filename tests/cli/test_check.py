"""`bench check` passes a sound pack and says of an unsound one what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cli.check import check_pack
from bench.cli.scaffold import new_scenario
from bench.errors import PackError

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def problems(folder: Path) -> list[str]:
    return [verdict.problem for _, verdict in check_pack(folder.name, [folder.parent]) if verdict.problem]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return new_scenario("demo", tmp_path)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_new_pack_is_sound_as_it_is(pack: Path) -> None:
    assert problems(pack) == []


@pytest.mark.parametrize("name", ["multi_file_debugging", "k8s_oomkill"])
def test_the_packs_that_ship_are_sound_in_every_size_and_refuse_six_wrong_answers_or_more(name: str) -> None:
    verdicts = list(check_pack(name, [SCENARIOS]))
    assert [verdict.problem for _, verdict in verdicts if verdict.problem] == []
    assert len(list((SCENARIOS / name / "reference" / "wrong").glob("*.json"))) >= 6


def test_a_wrong_answer_that_the_grader_lets_pass_is_named(pack: Path) -> None:
    right = {"volume": "archive", "days_left": 6, "confidence": 0.9}
    (pack / "reference" / "wrong" / "right.json").write_text(json.dumps({"why": "no reason", "outputs": {"decide": right}}))
    assert problems(pack) == ["'right' is graded correct, though no reason"]


def test_a_reference_that_its_own_grader_refuses_is_named(pack: Path) -> None:
    (pack / "reference" / "truth" / "truth.json").write_text('{"volume": "root", "days_left": 6}')
    assert "not root in 6" in problems(pack)


def test_a_reference_that_its_own_verifier_rejects_is_named(pack: Path) -> None:
    replace(pack / "documents" / "volumes.txt", "archive", "attic")
    assert "measure: volumes.txt has no volume 'archive'" in problems(pack)


def test_a_prompt_that_says_a_secret_is_named(pack: Path) -> None:
    replace(pack / "prompts" / "decide.md", "Which volume", "Since the archive is full: which volume")
    assert problems(pack) == ["the prompt of 'decide' says 'archive is full'"]


def test_a_baseline_that_is_right_makes_the_pack_too_easy(pack: Path) -> None:
    replace(pack / "scenario.py", '"volume": least[0], "days_left": 1', '"volume": "archive", "days_left": 6')
    assert problems(pack) == ["the baseline is graded correct: the pack is too easy to tell anything"]


def test_a_reference_that_seems_too_weak_costs_a_retry_and_is_named(pack: Path) -> None:
    replace(pack / "reference" / "answer.json", '"confidence": 0.9', '"confidence": 0.1')
    assert problems(pack) == ["runtime_structured: gave_up decide: no accepted output in 3 attempts"]


def test_a_pack_without_wrong_answers_is_not_sound(pack: Path) -> None:
    for path in (pack / "reference" / "wrong").glob("*.json"):
        path.unlink()
    assert len(problems(pack)) == 1


@pytest.mark.parametrize("name", ["Demo", "1demo", "de mo", "../demo", ""])
def test_a_name_that_is_no_identifier_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PackError, match="is no name for a pack"):
        new_scenario(name, tmp_path)


def test_a_new_pack_never_overwrites_one(pack: Path) -> None:
    with pytest.raises(PackError, match="exists already"):
        new_scenario("demo", pack.parent)
