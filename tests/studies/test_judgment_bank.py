"""The bank of replies: recorded in a run, told in a table, and answered from by a simulated model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_runs import run_of_matrix

from bench.analysis.frames import Run
from bench.errors import ConfigError
from bench.experiment.bank import banked, load_bank
from bench.experiment.config import Config
from bench.experiment.matrix import build_matrix
from bench.packs.loading import load_pack
from bench.render.table import markdown
from bench.studies.judgment_bank import judgments, tables

PACKS = [Path(__file__).parents[2] / "scenarios"]


def run_of(folder: Path, model: dict[str, Any], **changed: Any) -> Run:
    values: dict[str, Any] = {
        "name": "bank",
        "study": "judgment_bank",
        "scenarios": ["contract_renewal:renewal_dev"],
        "architectures": ["every_judgment"],
        "models": ["m"],
        "plans": ["none"],
        "instances": 2,
        "repetitions": 2,
        "seed": 7,
        "max_attempts": 1,
        "model": {"m": {"kind": "simulated", **model}},
    }
    return run_of_matrix(folder, build_matrix(Config.model_validate(values | changed), PACKS, "code"))


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("bank"), {"failure_rate": 0.3})


def test_each_judgment_is_asked_once_in_each_state_for_each_seed(bank: Run) -> None:
    assert bank.folder
    replies = [reply for _, reply in banked(bank.folder)]
    places = [(one.instance, one.judgment, one.state, one.repetition) for one in replies]
    assert len(set(places)) == len(places) == len(bank.calls)
    assert {one.judgment for one in replies} == {"risk", "offer", "after_change", "close"}
    assert sum(one.repetition == 1 for one in replies) == sum(one.repetition == 2 for one in replies)


def test_the_table_counts_each_reply_once(bank: Run) -> None:
    assert bank.folder
    replies = [reply for _, reply in banked(bank.folder)]
    found = {one.name: one for one in judgments(bank)}
    assert sum(one.right.n for one in found.values()) == len(replies)
    for name, one in found.items():
        own = [reply for reply in replies if reply.judgment == name]
        assert one.right.k == sum(reply.is_right for reply in own)
        assert one.right.k + one.misformed + one.caught + one.passed == len(own)
    assert sum(one.misformed for one in found.values()) > 0
    assert "after_change" in markdown(next(iter(tables(bank))))


def test_a_simulated_model_answers_from_it(bank: Run, tmp_path: Path) -> None:
    """Asked for the same judgments under the same seeds it is right as often as the bank is, and where it was."""
    again = run_of(tmp_path, {"bank": str(bank.folder)}, repetitions=1)
    assert again.folder and bank.folder
    assert json.loads((again.folder / "manifest.json").read_text())["models"]["m"]["bank"]["name"] == "run"
    always = {(one.instance, one.judgment, one.state): set[bool]() for _, one in banked(bank.folder)}
    for _, one in banked(bank.folder):
        always[one.instance, one.judgment, one.state].add(one.is_right)
    for _, one in banked(again.folder):
        assert one.is_right in always[one.instance, one.judgment, one.state]
    assert not all(one.is_right for _, one in banked(again.folder))


@pytest.mark.parametrize("scenario", ["contract_renewal", "contract_renewal:epsilon_1"])
def test_a_bank_of_another_scenario_is_refused_in_a_line(bank: Run, tmp_path: Path, scenario: str) -> None:
    with pytest.raises(ConfigError, match=f"holds no reply to 'after_change' of scenario '{scenario}'; record it"):
        run_of(tmp_path, {"bank": str(bank.folder)}, scenarios=[scenario])


def test_a_bank_that_lacks_one_judgment_is_refused(bank: Run) -> None:
    known = load_pack("contract_renewal:renewal_dev", PACKS)
    subtasks = known.task.subtasks
    further = replace(known, task=replace(known.task, subtasks=(*subtasks, replace(subtasks[0], name="second_look"))))
    assert bank.folder
    assert load_bank(bank.folder, [known]).model == "m"
    with pytest.raises(ConfigError, match="holds no reply to 'second_look' of scenario 'contract_renewal:renewal_dev'"):
        load_bank(bank.folder, [known, further])


def test_a_command_whose_model_has_a_bank_is_refused(bank: Run, tmp_path: Path) -> None:
    """It would be answered rightly, in a run that says that its model errs."""
    mine = {"architectures": ["mine"], "architecture": {"mine": {"command": ["python"]}}}
    with pytest.raises(ConfigError, match="'mine' is a command, and asks for calls of tools, of which a bank"):
        run_of(tmp_path, {"bank": str(bank.folder)}, **mine)
