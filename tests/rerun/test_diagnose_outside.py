"""An agent from outside is diagnosed as far as it can be run again, and the answer says where it cannot."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from commands import bench, free_port, start, workplace
from driven import matrix_of
from outside_system import OutsideSystem

from bench.rerun.diagnose import Diagnosis, counts_by_verdict, diagnose
from bench.rerun.diagnosis_text import trial_lines
from bench.rerun.rerun import RerunArm, RerunnableTrial
from bench.run.trial.loop import run

TOKEN = "the-token-of-these-tests"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was served, in which the system gave up."""
    folder = tmp_path_factory.mktemp("served")
    config, port = workplace(folder), free_port()
    words = ("serve", str(config), "--port", str(port), "--name", "outside", "--scenario", "demo", "--repetitions", "1")
    with (
        start(folder, *words, BENCH_SERVE_TOKEN=TOKEN) as process,
        httpx2.Client(trust_env=False, timeout=60, headers={"Authorization": f"Bearer {TOKEN}"}) as client,
    ):
        process.wait_until_said("Ctrl-C stops")
        outside = OutsideSystem(f"http://127.0.0.1:{port}", client)
        while outside.status_of("/trial") != 410:
            assert outside.post("/trial/give-up", {"reason": "too hard"}).json()["outcome"] == "gave_up"
        process.ended()
    return folder


def test_a_served_trial_is_not_run_again_and_the_answer_says_why(served: Path) -> None:
    code, out, err = bench(served, "explain", "diagnose", "outside")
    assert (code, err) == (3, "")
    lines = out.splitlines()
    assert lines[0] == "None of 2 failed trials of outside can be diagnosed."
    assert lines[-1].endswith(
        "'external' is not started from here: who was served its trials starts it, so they are not run again."
    )


def test_one_served_trial_is_told_of_as_well(served: Path) -> None:
    code, out, _ = bench(served, "explain", "diagnose", "outside", "--trial", "worst")
    assert code == 3
    assert "It cannot be diagnosed: 'external' is not started from here" in out


def test_nothing_can_be_shrunk_of_a_served_trial(served: Path) -> None:
    code, out, err = bench(served, "explain", "shrink", "outside", "--trial", "worst")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "'external' is not started from here" in err


@pytest.fixture(scope="module")
def command() -> Diagnosis:
    """A command that gives no keys, killed after its first effect."""
    matrix = matrix_of(["python", "clerk.py"], [{"point": "process", "effect": "unacknowledged", "attempts": [1]}])
    arm = RerunArm(matrix.specs[0], matrix)
    record = run(arm.run(arm.spec.plan)).record
    return run(diagnose(RerunnableTrial(Path("commands"), record, arm)))


def test_of_a_command_the_commit_is_mended_by_keys(command: Diagnosis) -> None:
    assert not command.undiagnosable
    doubled = [entry for entry in command.entries if entry.entry.kind == "doubled"]
    assert doubled and all(entry.minimal == (frozenset({"commit"}),) for entry in doubled)


def test_of_a_command_three_parts_cannot_be_mended_and_the_answer_says_which(command: Diagnosis) -> None:
    assert command.asked == ("proposer", "commit")
    lines = trial_lines(command)
    assert (
        sum(line.startswith(("The verifier could not", "The signal could not", "The pattern could not")) for line in lines) == 3
    )
    assert any(line.startswith("What to do about the commit: send an Idempotency-Key") for line in lines)


def test_keys_hold_no_effect_to_its_versions_so_that_a_stale_effect_clears_no_commit() -> None:
    matrix = matrix_of(
        ["python", "clerk.py"], [{"point": "tool", "effect": "second_writer", "tool": "refund", "attempts": [1]}]
    )
    arm = RerunArm(matrix.specs[0], matrix)
    diagnosis = run(diagnose(RerunnableTrial(Path("commands"), run(arm.run(arm.spec.plan)).record, arm)))
    assert {entry.entry.kind for entry in diagnosis.entries} == {"stale"}
    assert counts_by_verdict([diagnosis])["commit"] == {"not asked": len(diagnosis.entries)}
    assert any("the commit was not asked, since a key does not hold" in line for line in trial_lines(diagnosis))


@pytest.mark.parametrize("words", ["diagnose nowhere", "diverge nowhere", "shrink nowhere --trial worst"])
def test_a_run_that_is_not_there_is_named_in_one_line(words: str, tmp_path: Path) -> None:
    code, out, err = bench(tmp_path, "explain", *words.split())
    assert (code, out) == (2, "")
    assert err == "bench: results/nowhere: holds no run (no manifest.json); name a folder that `bench run` wrote\n"


def test_a_run_without_any_trial_is_not_said_to_be_unharmed(served: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "empty"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes((served / "results" / "outside" / "manifest.json").read_bytes())
    (folder / "trials.jsonl").write_text("")
    code, out, err = bench(tmp_path, "explain", "diagnose", "empty")
    assert (code, out) == (2, "")
    assert "no trial has ended yet; go on with its bench run" in err
