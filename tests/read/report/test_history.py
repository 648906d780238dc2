"""A report says what its run, and the recording behind a replay, went through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from records import edit_manifest, experiment, trial, with_manifest, write_run

import bench
from bench.read.analysis.published import load_published
from bench.read.report.history import history_facts, sandbox_text, sessions_text
from bench.read.report.written_report import report_of
from bench.read.tables.latency_tables import framework_time
from bench.record.history import History, LiveSeconds
from bench.record.messages import Timing
from bench.record.origin import Machine
from bench.record.record import EndpointTrouble, SessionRecord, TrialRecord

KILLED = (
    SessionRecord("t1", "began", "9 of 9"),
    SessionRecord("t2", "ended", "stopped"),
    SessionRecord("t3", "began", "4 of 9"),
    SessionRecord("t4", "began", "3 of 9"),
    SessionRecord("t5", "ended", "complete"),
)


def of_time(timing: Timing, repetitions: int = 3) -> list[TrialRecord]:
    return [
        replace(record, timing=timing, framework_seconds=0.25) for record in experiment(("static",), ("none",), repetitions)
    ]


HISTORY = TypeAdapter(History)


def replay(tmp_path: Path, *models: History) -> bench.Run:
    folder = write_run(tmp_path / "run", of_time("recorded"))
    edit_manifest(
        folder,
        models={"m": {"kind": "openai", "recording": {"name": "live", "digest": "d1"}}},
        recordings={
            f"m{number}" if number else "m": HISTORY.dump_python(model, mode="json") for number, model in enumerate(models)
        },
    )
    return bench.load_run(folder)


def recording(**values: Any) -> History:
    seconds = (LiveSeconds("k8s_oomkill", "static", "none", 10, 1000.0, 0.5, 0.0001, 0.002),)
    whole = History("live", "d1", KILLED, Machine(system="Linux", processors=2), 3, 679, 319, seconds)
    return replace(whole, **values)


def test_each_session_is_said_with_its_end_and_a_killed_one_with_none() -> None:
    assert sessions_text(KILLED) == "3 sessions: t1 to t2 (stopped), t3, no end recorded, t4 to t5 (complete)"
    assert sessions_text(KILLED[:1]) == "1 session: t1, no end recorded"
    seen = EndpointTrouble("http://here/v1", 8, 2, 3, 1, 16.04), EndpointTrouble("http://there/v1", 8, 0, 8, 1, 2.0)
    assert sessions_text([KILLED[0], SessionRecord("t2", "ended", "complete", seen)]) == (
        "1 session: t1 to t2 (complete; http://here/v1: the limit of 8 calls in flight fell 2 times, to 3 at least and "
        "paused 1 times, 16.0 s in all; http://there/v1: paused 1 times, 2.0 s in all)"
    )
    assert sessions_text(()) == "its sessions are not recorded"


def test_a_replay_says_what_its_recording_went_through(tmp_path: Path) -> None:
    facts = dict(history_facts(replay(tmp_path, recording())))
    assert facts["Recording"] == (
        "live, digest d1: 3 sessions: t1 to t2 (stopped), t3, no end recorded, t4 to t5 (complete); "
        "3 records of errors were superseded on resume; 319 of 679 calls reused another trial's reply; "
        "machine: system Linux, processors 2"
    )


@pytest.mark.usefixtures("unmade")
def test_the_report_itself_says_so_and_lists_the_replays_own_session(tmp_path: Path) -> None:
    text = report_of(replay(tmp_path, recording())).files["report.md"].decode()
    assert "- Recording: live, digest d1: 3 sessions" in text
    assert "- Sessions: 1 session: 2026-01-02T03:04:05+00:00 to 2026-01-02T04:04:05+00:00 (complete)" in text
    assert "## Latency" in text


def test_models_of_one_recording_share_its_line_and_their_own_counts_are_added(tmp_path: Path) -> None:
    facts = list(history_facts(replay(tmp_path, recording(), recording(superseded=1, calls=1, reused=1))))
    [text] = [text for name, text in facts if name == "Recording"]
    assert "4 records of errors" in text and "320 of 680 calls" in text


def test_a_replay_of_a_replay_names_both_and_keeps_the_live_seconds(tmp_path: Path) -> None:
    run = replay(tmp_path, recording(name="again", seconds=(), before=recording()))
    assert dict(history_facts(run))["Recording"].endswith("itself a replay of live")
    [table] = framework_time(run, load_published())
    assert len(table.rows) == 1


def test_a_replay_that_kept_no_history_says_so(tmp_path: Path) -> None:
    assert dict(history_facts(replay(tmp_path)))["Recording"] == ("live: what it went through was not kept; replay it again")


def test_the_framework_time_of_a_live_run_and_of_its_replay_are_the_same_rows(tmp_path: Path) -> None:
    records = [*of_time("live"), replace(trial(repetition=4, outcome="error"), timing="live")]
    run, published = bench.load_run(write_run(tmp_path / "live", records)), load_published()
    history = History.of("live", "d1", run.manifest.machine, None, records)
    [ours], [theirs] = (table.texts() for each in (run, replay(tmp_path, history)) for table in framework_time(each, published))
    assert ours[4:] == theirs[4:] == ["3", "0.7500", "8.85", "8.4746%", "8.1967% to 8.7719%", "–"]


def test_the_papers_share_stands_beside_the_arms_that_it_has(tmp_path: Path) -> None:
    [table] = framework_time(replay(tmp_path, recording()), load_published())
    [row] = table.texts()
    assert row[-1] == "18.0%"


def test_no_latency_of_a_simulated_model_is_taken_apart(tmp_path: Path) -> None:
    run = bench.load_run(write_run(tmp_path / "run", experiment()))
    assert framework_time(run, load_published()) == []


@pytest.mark.parametrize(
    ("guards", "words"),
    [
        ({"one": "in force", "two": "in force"}, "all guards in force"),
        ({"one": "in force", "two": "missing: no kernel"}, "two missing: no kernel"),
        ({}, "not recorded"),
    ],
)
def test_the_guards_that_code_ran_under_are_said(tmp_path: Path, guards: dict[str, str], words: str) -> None:
    run = replay(tmp_path)
    assert sandbox_text(with_manifest(run, sandbox=guards)) == words


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ({"unguarded": ["TCP"]}, "TCP missing: why; models' code was run all the same, as the user said (--unguarded)"),
        ({"unguarded": []}, "TCP missing: why"),
        (
            {"stored_grades": {"live": {"pack": "0123456789abcdef"}}},
            "TCP missing: why; no answer's code was run: the grades are those stored in live (pack by the grader 0123456789ab)",
        ),
    ],
)
def test_what_was_done_about_a_missing_guard_is_said(tmp_path: Path, kept: dict[str, Any], words: str) -> None:
    run = replay(tmp_path)
    assert sandbox_text(with_manifest(run, **{"sandbox": {"TCP": "missing: why"}, **kept})) == words


@pytest.mark.usefixtures("unmade")
def test_a_new_run_says_its_guards_and_an_older_one_has_no_such_line(tmp_path: Path) -> None:
    run = replay(tmp_path)
    newer = with_manifest(run, sandbox={"one": "in force"})
    older, newer_text = (report_of(each).files["report.md"].decode() for each in (run, newer))
    assert "- Sandbox: all guards in force" in newer_text and "- Sandbox" not in older
