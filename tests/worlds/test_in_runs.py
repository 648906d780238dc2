"""A run in worlds: planned, run, kept, read as frames, and graded anew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import run
from little_worlds import ROOT

import bench
from bench.common.errors import ConfigError, PackError
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.regrade import regrade
from bench.run.packs import load_pack


def config(faults: list[dict[str, Any]], **changes: Any) -> Config:
    values = {
        "name": "worlds",
        "scenarios": ["refunds"],
        "architectures": ["clerks:bare", "clerks:careful"],
        "models": ["m"],
        "plans": ["none", "plan"],
        "repetitions": 1,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        "plan": {"plan": {"faults": faults}},
    }
    return Config.model_validate({**values, **changes})


CRASH = {"point": "process", "effect": "unacknowledged", "tool": "refund", "attempts": [1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run(config([CRASH]), folder, [ROOT])
    return folder


def test_damage_stands_in_the_frames_by_kind_and_the_two_counts_agree(folder: Path) -> None:
    trials = bench.load_run(folder).trials
    doubled = trials[trials["damage_doubled"] > 0]
    assert doubled[["architecture", "plan", "damage_doubled"]].to_numpy().tolist() == [["clerks:bare", "plan", 4]]
    assert trials["recount_agrees"].tolist() == [True] * 4
    kept = trials[(trials["architecture"] == "clerks:careful") & (trials["plan"] == "plan")]
    assert kept[["lives", "tool_calls", "outcome"]].to_numpy().tolist() == [[3, 13, "solved"]]


def test_receipts_of_crashes_add_up(folder: Path) -> None:
    faults = bench.load_run(folder).faults
    assert faults[["delivered", "adds_up"]].values.tolist() == [[True, True]] * 4
    assert set(faults["impact"]) == {"effective"}


def test_a_pack_without_a_world_has_no_damage(tmp_path: Path) -> None:
    from experiment_runs import config as plain  # noqa: PLC0415  the other experiment's

    run(plain({"kind": "simulated"}, plans=["none"], repetitions=1), tmp_path)
    trials = bench.load_run(tmp_path).trials
    assert trials[["damage_lost", "recount_agrees", "lives"]].isna().all(axis=None)
    assert (trials["tool_calls"] == 0).all()


def test_worlds_are_graded_anew_from_what_was_kept_of_them(folder: Path, tmp_path: Path) -> None:
    again = Path(shutil.copytree(folder, tmp_path / "run"))
    [done] = regrade(again, [ROOT])
    assert (done.answers, done.changed) == (4, 0)
    edited = tmp_path / "edited"
    shutil.copytree(ROOT, edited)
    entry = edited / "refunds" / "scenario.py"
    entry.write_text(entry.read_text(encoding="utf-8").replace("Grade(all(settled),", "Grade(False,"), encoding="utf-8")
    [done] = regrade(again, [edited])
    assert done.changed == 3


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({**CRASH, "tool": "refnd"}, "has no tool 'refnd' that unacknowledged can strike; did you mean 'refund'"),
        ({**CRASH, "tool": "read_order"}, "has no tool 'read_order' that unacknowledged can strike"),
        ({**CRASH, "tool": {"other": "x"}}, "names no tool for scenario 'refunds'; add refunds ="),
        ({"point": "event", "effect": "late", "event": "opend", "attempts": [1]}, "did you mean 'opened'"),
        ({"point": "event", "effect": "says_yes", "event": "opened", "attempts": [1]}, "no event 'opened' that says_yes"),
        (
            {"point": "process", "effect": "approval_pending", "tool": "refund", "attempts": [1]},
            "'refund' that approval_pending",
        ),
    ],
)
def test_a_fault_that_can_strike_nothing_in_the_world_is_refused(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_matrix(config([fault]), [ROOT], "code")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({**CRASH, "subtask": "decide"}, "strikes no subtask; name the tool"),
        ({**CRASH, "event": "opened"}, "strikes no event; name the tool"),
        ({**CRASH, "effect": "mid_stream"}, "mid_stream strikes no tool; its attempts count the replies"),
        ({"point": "output", "effect": "empty", "tool": "refund", "attempts": [1]}, "strikes no tool; name the subtask"),
        ({**CRASH, "effect": "unacknowleged"}, "did you mean 'unacknowledged'"),
        ({**CRASH, "point": "tool"}, "cannot strike at 'tool', only at process"),
    ],
)
def test_a_fault_that_names_the_wrong_kind_of_target_is_refused(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config([fault])


def test_who_cannot_act_in_a_world_is_refused_there_and_its_faults_elsewhere() -> None:
    with pytest.raises(ConfigError, match="has a world, in which architecture 'static' cannot act"):
        build_matrix(config([], architectures=["static"]), [ROOT], "code")
    tiny = [ROOT.parent / "packs"]
    with pytest.raises(ConfigError, match="scenario 'tiny' has no world"):
        build_matrix(config([CRASH], scenarios=["tiny"], architectures=["static"]), tiny, "code")


def test_what_determines_a_world_is_in_what_is_asked(tmp_path: Path) -> None:
    def asked(old: str, new: str) -> str:
        folder = tmp_path / new.replace(" ", "_").replace("'", "")[:20]
        shutil.copytree(ROOT / "refunds", folder / "refunds")
        entry = folder / "refunds" / "scenario.py"
        text = entry.read_text(encoding="utf-8")
        assert old in text
        entry.write_text(text.replace(old, new), encoding="utf-8")
        return load_pack("refunds", [folder]).asked

    digests = {asked('"price": 40', '"price": 41'), asked("Moment(10)", "Moment(11)"), asked("id INTEGER", "id  INTEGER")}
    assert len(digests | {load_pack("refunds", [ROOT]).asked}) == 4


def test_a_document_that_is_given_and_a_document_of_the_pack_share_no_name(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "refunds", tmp_path / "refunds")
    (tmp_path / "refunds" / "documents" / "order").write_text("an order", encoding="utf-8")
    with pytest.raises(PackError, match="'order' is given with each call and is a document or subtask as well"):
        load_pack("refunds", [tmp_path])
