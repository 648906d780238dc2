"""What is read from a run's folder: one row a trial, a call, a planned fault, a wait; and what is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from records import (
    accepted,
    called,
    committed,
    experiment,
    fault,
    id_of,
    rejected,
    run_of,
    smooth,
    trial,
    write_run,
)

import bench
from bench.common.errors import ResultsError
from bench.read.analysis.arms import Condition, arms_of, control_of, missing_trials, require_receipts
from bench.record.archive import archive
from bench.record.events import Answered, Event, Stage, Waited
from bench.record.messages import Timing
from bench.record.record import Outcome


def test_importing_bench_loads_neither_pandas_nor_matplotlib() -> None:
    text = "import sys, bench; sys.exit(any(name in sys.modules for name in ('pandas', 'scipy', 'matplotlib', 'pydantic')))"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0
    assert not hasattr(bench, "no_such_thing")


def test_a_trials_row_holds_its_ledger_its_faults_and_its_seconds(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(plan="paper", repetition=2)])
    [row] = run.trials.to_dict("records")
    assert {name: row[name] for name in ("scenario", "architecture", "model", "plan", "repetition")} == {
        "scenario": "demo",
        "architecture": "static",
        "model": "m",
        "plan": "paper",
        "repetition": 2,
    }
    assert (row["tokens"], row["in_answer"], row["rejected"], row["retry_tokens"]) == (380, 260, 120, 140)
    assert (row["superseded"], row["lost"], row["judging"], row["calls"]) == (0, 0, 0, 3)
    assert [row[f"faults_{stage}"] for stage in ("planned", "delivered", "not_applicable", "detected")] == [1, 1, 0, 1]
    assert (row["outcome"], row["correct"], row["score"], row["timing"]) == ("solved", True, 1.0, "simulated")


@pytest.mark.parametrize(("timing", "seconds"), [("live", 0.001), ("simulated", 0.0), ("recorded", 0.0)])
def test_framework_time_is_part_of_the_latency_only_where_the_seconds_are_real(
    tmp_path: Path, timing: Timing, seconds: float
) -> None:
    [row] = run_of(tmp_path / "run", [trial(timing=timing)]).trials.to_dict("records")
    assert row["framework_seconds"] == 0.001
    assert row["latency_seconds"] == pytest.approx(2.1 + 0.5 + seconds, abs=1e-9)


def test_a_calls_row_says_what_it_was_for_and_what_became_of_it(tmp_path: Path) -> None:
    events: list[Event] = [
        called(1, "a", "b", failure="timed_out", tokens=(100, 0)),
        *(called(2, "a", "b", cause="retry", usage=(110, 21)), accepted(2, "a"), rejected(2, "b")),
        called(3, "b", cause="retry", attempt=2),
    ]
    run = run_of(tmp_path / "run", [trial(outcome="gave_up", events=events)])
    rows = run.calls[["call", "subtask", "attempt", "cause", "account", "verdict", "failure"]].values.tolist()
    assert rows == [
        [1, "all", 1, "first", "lost", "lost", "timed_out"],
        [2, "all", 1, "retry", "rejected", "rejected:schema", ""],
        [3, "b", 2, "retry", "superseded", "unread", ""],
    ]
    assert run.calls["usage_in"].isna().tolist() == [True, False, True]


def test_giving_up_is_neither_correct_nor_an_error_and_scores_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(outcome="gave_up", events=[called(1), rejected(1, "a")])])
    [row] = run.trials.to_dict("records")
    assert (row["outcome"], row["correct"], row["score"], row["in_answer"]) == ("gave_up", False, 0.0, 0)


def test_an_error_has_neither_a_grade_nor_a_score(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(outcome="error", reason="no connection")])
    assert run.trials["correct"].isna().all()
    assert run.trials["score"].isna().all()


def test_a_trial_whose_ledger_does_not_add_up_is_an_error_that_says_why(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(tokens=241)])
    [row] = run.trials.to_dict("records")
    assert (row["outcome"], row["reason"]) == ("error", "the ledger adds up to 240 tokens, but 241 were counted")


def test_of_a_trial_that_was_run_again_the_last_record_counts(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(outcome="error"), trial(repetition=2), trial()])
    assert run.trials["outcome"].tolist() == ["solved", "solved"]
    assert run.errors_rerun == 1
    assert len(run.calls) == 4


def test_a_failed_trial_that_other_code_ran_again_under_another_id_counts_once(tmp_path: Path) -> None:
    plans = ("none", "paper")
    failed = [trial(plan=plan, outcome="error", id=f"first {plan}") for plan in plans]
    again = [trial(plan=plan, id=f"second {plan}") for plan in plans]
    run = run_of(tmp_path / "run", [*failed, *again, trial(repetition=2, outcome="error"), trial(repetition=2)])
    assert list(run.trials["outcome"]) == ["solved"] * 3 and run.errors_rerun == 3
    assert run.rerun == {*(id_of(record.id) for record in again), trial(repetition=2).id}
    assert set(run.faults["trial"]) == {id_of("second paper")}


def test_rows_stand_in_the_configs_order_whatever_the_order_of_ending(tmp_path: Path) -> None:
    records = experiment(("static", "monolithic"))
    folder = write_run(tmp_path / "run", records)
    manifest_order = bench.load_run(folder)
    shuffled = write_run(tmp_path / "other", records[::-1])
    (shuffled / "manifest.json").write_text(manifest_order.manifest.text)
    other = bench.load_run(shuffled)
    assert other.trials.equals(manifest_order.trials)
    assert other.calls.equals(manifest_order.calls)
    assert other.names("architecture") == ["static", "monolithic"]


def test_a_run_without_a_trial_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no trial is recorded yet"):
        bench.load_run(write_run(tmp_path / "run", []))


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no run"):
        bench.load_run(tmp_path)


# Receipts


def struck(*stages: Stage, point: str = "output") -> list[Event]:
    return [*fault(*stages, point=point), *smooth()]


@pytest.mark.parametrize("stages", [("planned", "delivered", "recovered"), ("planned", "not_applicable")])
def test_a_fault_that_was_delivered_or_inapplicable_has_its_receipt(tmp_path: Path, stages: tuple[Stage, ...]) -> None:
    require_receipts(run_of(tmp_path / "run", [trial(plan="paper", events=struck(*stages))]))


@pytest.mark.parametrize("stages", [("planned",), ("delivered",), ("planned", "not_applicable", "delivered")])
def test_a_fault_without_a_receipt_forbids_every_number_and_names_the_trial(tmp_path: Path, stages: tuple[Stage, ...]) -> None:
    run = run_of(tmp_path / "run", [*experiment(), trial(plan="paper", repetition=9, events=struck(*stages))])
    missing = id_of("static-paper-9-demo-m")
    with pytest.raises(ResultsError, match=rf"not delivered in 1 trials \({missing}\): the run reports no numbers"):
        require_receipts(run)


@pytest.mark.parametrize(
    ("outcome", "point", "ended", "silent"),
    [
        ("wrong", "output", "undetected", True),
        ("wrong", "state", "undetected", True),
        ("wrong", "call", "undetected", False),
        ("wrong", "output", "recovered", False),
        ("solved", "output", "undetected", False),
    ],
)
def test_silent_corruption_is_a_wrong_answer_behind_an_undetected_fault_in_its_content(
    tmp_path: Path, outcome: Outcome, point: str, ended: Stage, silent: bool
) -> None:
    events = struck("planned", "delivered", ended, point=point)
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome=outcome, events=events)])
    assert run.trials["silent_corruption"].tolist() == [silent]


@pytest.mark.parametrize(
    ("verdicts", "undetected"),
    [
        ([accepted(2, "b")], True),
        ([rejected(2, "b"), accepted(2, "b")], True),
        ([accepted(2, "b"), rejected(2, "b")], False),
        ([committed(1, "b", version=9), rejected(1, "b"), accepted(2, "b")], True),
        ([], False),
    ],
)
def test_an_undetected_failure_is_a_wrong_answer_of_which_every_part_was_accepted_at_last(
    tmp_path: Path, verdicts: list[Event], undetected: bool
) -> None:
    made: list[Event] = [called(1, "a"), accepted(1, "a"), committed(1, "a"), committed(None, "c"), called(2, "b")]
    answer = Answered((("b", 1), ("c", 1)))
    events: list[Event] = [*made, *verdicts, committed(2, "b", made_from=[("a", 1)]), answer]
    outcomes: list[Outcome] = ["wrong", "solved"]
    run = run_of(
        tmp_path / "run", [trial(repetition=at, outcome=outcome, events=events) for at, outcome in enumerate(outcomes, 1)]
    )
    assert run.trials["undetected_failure"].tolist() == [undetected, False]


@pytest.mark.parametrize(
    ("outcome", "point", "stage", "finish"),
    [
        ("solved", "output", "recovered", "recovered"),
        ("solved", "process", "recovered", "recovered"),
        ("wrong", "output", "recovered", "answered_wrong"),
        ("wrong", "process", "recovered", "restarted"),
        ("ungraded", "output", "recovered", "answered"),
        ("wrong", "output", "undetected", "undetected"),
        ("gave_up", "process", "gave_up", "gave_up"),
    ],
)
def test_recovered_is_said_only_where_the_answer_is_right(
    tmp_path: Path, outcome: Outcome, point: str, stage: Stage, finish: str
) -> None:
    events = struck("planned", "delivered", stage, point=point)
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome=outcome, events=events)])
    assert run.faults["finish"].tolist() == [finish]


def test_a_fault_in_a_trial_that_ended_in_an_error_did_not_make_it_give_up(tmp_path: Path) -> None:
    events = struck("planned", "delivered", "gave_up")
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome="error", events=events)])
    assert run.faults["finish"].tolist() == ["error"]


# Arms


def test_means_are_of_the_trials_that_did_not_end_in_an_error(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(), trial(repetition=2, outcome="error"), trial(repetition=3, outcome="gave_up")])
    arm = arms_of(run)[Condition("demo", "m", "none")]["static"]
    assert (len(arm.trials), len(arm.usable)) == (3, 2)
    assert (arm.solved().k, arm.solved().n) == (1, 2)


def test_a_control_is_the_same_arm_without_faults(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", experiment())
    arms = arms_of(run)
    struck_arm = arms[Condition("demo", "m", "paper")]["static"]
    other = control_of(arms, struck_arm)
    assert other is arms[Condition("demo", "m", "none")]["static"]
    assert control_of(arms, other) is None
    assert struck_arm.minus(other, "tokens").difference.mean == pytest.approx(140.0)


def test_trials_that_are_not_recorded_yet_are_counted(tmp_path: Path) -> None:
    records = experiment()
    assert missing_trials(run_of(tmp_path / "whole", records)) == 0
    part = write_run(tmp_path / "part", records[:-2])
    assert missing_trials(bench.load_run(part)) == 2


def test_waits_are_rows_of_their_own(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(events=[Waited("backoff", 1.0, 2.5), *smooth()])])
    assert run.waits[["why", "started", "seconds"]].values.tolist() == [["backoff", 1.0, 2.5]]


def test_a_run_is_loaded_by_what_commands_take_its_name_its_folder_or_its_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_run(tmp_path / "results" / "run", [trial()])
    archived = archive(folder)
    for name in ("run", "results/run", "results/run/", str(folder), folder, archived, str(archived)):
        assert bench.load_run(name).trials["trial"].tolist() == [trial().id]
    shutil.rmtree(folder)
    assert bench.load_run("run").name == bench.load_run(archived).name == "by-hand"
