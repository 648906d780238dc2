"""A run of an earlier format is carried over: its words, and by a replay what the earlier format did not keep.

The runs in tests/support/format_2 are a few trials of two runs of a real model, as version 0.1.0 recorded them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from experiment_runs import copied, sessions_of
from little_worlds import ROOT
from trials import ROOTS

from bench.analysis.ledger import book, imbalance
from bench.errors import ResultsError
from bench.experiment.files import FORMAT, MANIFEST, TRIALS
from bench.experiment.reading import read_manifest, read_texts, read_trials
from bench.experiment.record import TrialRecord
from bench.experiment.recording import responses_of
from bench.experiment.upgrade.upgrade import upgrade
from bench.models.base import Reply
from bench.packs import load_pack
from bench.runtime.events import Called, Committed, Faulted, Judged

FORMAT_2 = Path(__file__).parents[1] / "support" / "format_2"
RUNS = {"paper": 6, "systems": 3}
"""Run -> its trials."""
STAGES = {"moot": "not_applicable", "seen": "detected", "unnoticed": "undetected"}


def old_trials(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / TRIALS).read_bytes().splitlines()]
    return [line for line in lines if line["kind"] == "trial"]


@pytest.fixture(scope="module", params=RUNS)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(FORMAT_2 / request.param, tmp_path_factory.mktemp("upgrade") / request.param)
    done = upgrade(folder, ROOTS)
    assert done and (done.trials, done.replayed, done.obstacle) == (RUNS[request.param],) * 2 + ("",)
    return folder


def of_kind(record: TrialRecord, kind: type) -> list[Any]:
    return [event for event in record.events if isinstance(event, kind)]


def test_every_trial_is_carried_over_with_its_course_and_its_numbers(upgraded: Path) -> None:
    trials = list(read_trials(upgraded))
    olds = old_trials(FORMAT_2 / upgraded.name)
    assert len(trials) == len(olds) == RUNS[upgraded.name]
    for new, old in zip(trials, olds, strict=True):
        same = ("id", "scenario", "architecture", "model", "plan", "repetition", "outcome", "tokens", "api_seconds", "timing")
        assert {name: getattr(new, name) for name in same} == {name: old[name] for name in same}
        calls = [event for event in old["events"] if event["kind"] == "call"]
        told = [(call.call, call.seed, call.reply, call.tokens_in, call.tokens_out) for call in of_kind(new, Called)]
        assert told == [(call["call"], call["seed"], call["reply"], call["tokens_in"], call["tokens_out"]) for call in calls]
        stages = [STAGES.get(event["stage"], event["stage"]) for event in old["events"] if event["kind"] == "fault"]
        assert [event.stage for event in of_kind(new, Faulted)] == stages
        assert imbalance(book(new.events), new.tokens) is None


def test_what_the_earlier_format_did_not_keep_is_there(upgraded: Path) -> None:
    trials = list(read_trials(upgraded))
    calls = [call for trial in trials for call in of_kind(trial, Called)]
    assert {"retry", "first"} <= {call.cause for call in calls}
    for trial in trials:
        for call in of_kind(trial, Called):
            assert call.cause == "judge" or (call.caused_by is not None) == (call.cause in ("retry", "rerun"))
            cause = trial.events[call.caused_by] if call.caused_by is not None else None
            assert cause is None or (isinstance(cause, Judged) and not cause.accepted)
        struck = [fault for fault in of_kind(trial, Faulted) if fault.stage == "delivered"]
        undamaged = [verdict for verdict in of_kind(trial, Judged) if verdict.view == "undamaged"]
        assert bool(struck) == bool(undamaged) and {verdict.fault for verdict in undamaged} <= {one.fault for one in struck}
    commits = [commit for trial in trials for commit in of_kind(trial, Committed)]
    assert all(commit.calls for commit in commits)


def test_the_manifest_tells_where_it_comes_from_and_asks_what_the_packs_ask_now(upgraded: Path) -> None:
    manifest, old = read_manifest(upgraded), json.loads((FORMAT_2 / upgraded.name / "manifest.json").read_text())
    assert (manifest["format"], manifest["upgraded_from"]) == (FORMAT, 2)
    assert {key: manifest[key] for key in ("started", "code", "packages", "machine")} == {
        key: old[key] for key in ("started", "code", "packages", "machine")
    }
    asked = load_pack("multi_file_debugging", ROOTS)
    [pack] = manifest["scenarios"].values()
    assert (pack["asked"], pack["graded_by"]) == (asked.asked, asked.graded_by)
    assert [session.at for session in sessions_of(upgraded)] == [
        json.loads(line)["at"]
        for line in (FORMAT_2 / upgraded.name / TRIALS).read_bytes().splitlines()
        if json.loads(line)["kind"] == "session"
    ]


def test_each_reply_of_the_model_is_a_response_of_its_own(upgraded: Path) -> None:
    responses = list(responses_of(upgraded, lambda _: True))
    replies = [one.outcome.text for one in responses if isinstance(one.outcome, Reply)]
    texts = read_texts(upgraded)
    calls = [call for trial in read_trials(upgraded) for call in of_kind(trial, Called) if call.asked]
    assert replies == [texts[call.reply] for call in calls if call.failure is None]


def test_the_old_files_stay_as_they_were(upgraded: Path) -> None:
    old, aside = FORMAT_2 / upgraded.name, upgraded.with_name(f"{upgraded.name}.format-2")
    assert files(aside) == files(old)
    assert {path.name for path in upgraded.parent.iterdir()} == {upgraded.name, aside.name}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_without_its_pack_a_run_is_carried_over_by_translation_and_says_so(tmp_path: Path) -> None:
    folder = copied(FORMAT_2 / "paper", tmp_path / "paper")
    done = upgrade(folder, [tmp_path])
    assert done and (done.trials, done.replayed) == (6, 0)
    assert done.obstacle.startswith("unknown scenario 'multi_file_debugging'; there is no pack in ")
    trials = list(read_trials(folder))
    assert [trial.tokens for trial in trials] == [trial["tokens"] for trial in old_trials(FORMAT_2 / "paper")]
    assert {verdict.view for trial in trials for verdict in of_kind(trial, Judged)} == {"told"}
    [pack] = read_manifest(folder)["scenarios"].values()
    assert pack["asked"] != load_pack("multi_file_debugging", ROOTS).asked


def other_reply(folder: Path) -> None:
    """One reply of the recording is another: the replay goes another way there."""
    path = folder / TRIALS
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    trial = next(line for line in lines if line["kind"] == "trial" and line["architecture"] == "static")
    call = next(event for event in trial["events"] if event["kind"] == "call")
    call["reply"] = next(event for event in trial["events"][5:] if event["kind"] == "call")["reply"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_no_command_that_a_run_names_is_started(tmp_path: Path) -> None:
    """Whoever wrote the run may have named any: those are carried over as they stand."""
    folder, made = copied(FORMAT_2 / "paper", tmp_path / "run"), tmp_path / "made"
    lines = [json.loads(line) for line in (folder / TRIALS).read_bytes().splitlines()]
    for line in lines:
        if line["kind"] == "trial":
            line.update(scenario="refunds", architecture="evil", plan="none")
    (folder / TRIALS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = json.loads((folder / "manifest.json").read_text())
    changed = {"scenarios": ["refunds"], "architectures": ["evil"], "architecture": {"evil": {"command": ["touch", str(made)]}}}
    manifest["config"] |= {**changed, "plans": ["none"], "plan": {}, "study": ""}
    manifest["scenarios"] = {"refunds": next(iter(manifest["scenarios"].values()))}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    done = upgrade(folder, [*ROOTS, ROOT])
    assert done and done.replayed == 0 and not made.exists()
    assert done.obstacle == "its agents are commands, which an upgrade starts none of"


def test_a_trial_whose_replay_goes_another_way_is_named_and_keeps_its_own_course(tmp_path: Path) -> None:
    folder = copied(FORMAT_2 / "paper", tmp_path / "paper")
    other_reply(folder)
    before = [trial["outcome"] for trial in old_trials(folder)]
    done = upgrade(folder, ROOTS)
    assert done and (done.trials, done.replayed) == (6, 5)
    assert "static" in done.obstacle and "replay" in done.obstacle
    assert [trial.outcome for trial in read_trials(folder)] == before


@pytest.mark.parametrize("rest", ["paper.upgrading", "paper.format-2"])
def test_what_is_in_the_way_is_named_and_nothing_is_touched(tmp_path: Path, rest: str) -> None:
    folder = copied(FORMAT_2 / "paper", tmp_path / "paper")
    (tmp_path / rest).mkdir()
    with pytest.raises(ResultsError, match=f"{rest}: is in the way of an upgrade; move it, and run the command again"):
        upgrade(folder, ROOTS)
    assert files(folder) == files(FORMAT_2 / "paper") and list((tmp_path / rest).iterdir()) == []


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("step", ["_write", "_replays", "_completed", "_of_the_present"])
def test_an_upgrade_that_is_interrupted_leaves_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    folder = copied(FORMAT_2 / "paper", tmp_path / "paper")

    def interrupt(*_: object) -> None:
        raise Interrupted

    monkeypatch.setattr(f"bench.experiment.upgrade.upgrade.{step}", interrupt)
    with pytest.raises(Interrupted):
        upgrade(folder, ROOTS)
    assert files(folder) == files(FORMAT_2 / "paper")


DAMAGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "in the middle": (lambda lines: [lines[0], lines[1][:50] + b"\n", *lines[2:]], "trials.jsonl: line 2 is damaged"),
    "of another form": (lambda lines: [lines[0], b'{"kind": "trial"}\n', *lines[2:]], "trials.jsonl: line 2 is damaged"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_line_is_named_and_the_old_files_stay(tmp_path: Path, what: str) -> None:
    folder = copied(FORMAT_2 / "paper", tmp_path / "paper")
    change, said = DAMAGES[what]
    lines = (folder / TRIALS).read_bytes().splitlines(keepends=True)
    (folder / TRIALS).write_bytes(b"".join(change(lines)))
    before = files(folder)
    with pytest.raises(ResultsError, match=said):
        upgrade(folder, ROOTS)
    assert files(folder) == before and list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("place", ["config", "models", "scenarios", "ruler"])
@pytest.mark.parametrize("value", [None, 3, "x", [], {"x": []}, {"x": {"size": 1.5}}])
def test_a_manifest_of_another_shape_is_one_line_or_carried_over(tmp_path: Path, place: str, value: object) -> None:
    folder = copied(FORMAT_2 / "systems", tmp_path / "systems")
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, place: value}))
    before = files(folder)
    try:
        assert upgrade(folder, [])
    except ResultsError as error:
        assert "\n" not in str(error) and files(folder) == before


def test_a_last_line_cut_short_is_as_good_as_not_written(tmp_path: Path) -> None:
    folder = copied(FORMAT_2 / "systems", tmp_path / "systems")
    lines = [line for line in (folder / TRIALS).read_bytes().splitlines(keepends=True) if b'"kind":"session"' not in line]
    (folder / TRIALS).write_bytes(b"".join(lines) + lines[0][:100])
    done = upgrade(folder, ROOTS)
    assert done and (done.trials, done.replayed) == (3, 3)


def test_a_run_that_holds_no_trial_yet_is_carried_over(tmp_path: Path) -> None:
    folder = copied(FORMAT_2 / "systems", tmp_path / "systems")
    (folder / TRIALS).write_bytes((folder / TRIALS).read_bytes().splitlines(keepends=True)[0])
    done = upgrade(folder, ROOTS)
    assert done and done.trials == 0 and list(read_trials(folder)) == []


def test_a_run_of_the_earlier_format_is_refused_elsewhere_with_what_to_do(tmp_path: Path) -> None:
    copied(FORMAT_2 / "systems", tmp_path / "results" / "systems")
    for words in (
        ["report", "systems"],
        ["run", "configs/x.toml", "--model", "recorded:systems"],
        ["compare", "systems", "systems"],
    ):
        code, _, err = bench(tmp_path, *words)
        assert code == 2 and err.count("\n") == 1, err
        assert "is of format 2, this version reads format 3; bench upgrade results/systems" in err
    packs = str(ROOTS[0])
    code, out, err = bench(tmp_path, "upgrade", "systems", "--scenarios", packs)
    assert (code, err) == (0, "") and "3 trials carried over, 3 of them completed by a replay" in out
    assert "the old files are in results/systems.format-2" in out
    code, out, _ = bench(tmp_path, "upgrade", "systems", "--scenarios", packs)
    assert (code, out) == (0, "systems: has the present format already\n")
