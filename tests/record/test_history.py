"""What a recording went through is told by its records: the replay's manifest keeps it whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records import called, edit_manifest, experiment, manifest_of, trial, write_run

from bench.common.errors import ResultsError
from bench.record.history import History, LiveSeconds
from bench.record.manifest import manifest_in
from bench.record.origin import Machine
from bench.record.reading import read_manifest
from bench.record.record import SessionRecord, TrialRecord

BEGAN, ENDED = SessionRecord("t1", "began", "4 of 4"), SessionRecord("t2", "ended", "stopped")


def live(architecture: str, repetition: int, seconds: tuple[float, float, float], **values: Any) -> TrialRecord:
    """`seconds`: API, waiting, framework."""
    api, waiting, framework = seconds
    record = trial(architecture, repetition=repetition, events=[called(1), replace(called(2), reused=True)])
    return replace(record, timing="live", api_seconds=api, waiting_seconds=waiting, framework_seconds=framework, **values)


RECORDS: list[TrialRecord | SessionRecord] = [
    BEGAN,
    live("x", 1, (0.0, 0.0, 9.0), outcome="error"),
    live("x", 1, (7.0, 1.0, 2.0)),
    ENDED,
    live("y", 1, (1.0, 0.0, 1.0)),
    live("x", 2, (19.0, 0.0, 1.0)),
    live("x", 3, (0.0, 0.0, 5.0), outcome="error"),
]


def history(before: History | None = None) -> History:
    return History.of("run", "d1", Machine(system="Linux"), before, RECORDS)


def test_a_history_counts_sessions_superseded_errors_and_reused_replies() -> None:
    past = history()
    assert (past.name, past.digest, past.machine) == ("run", "d1", Machine(system="Linux"))
    assert past.sessions == (BEGAN, ENDED)
    assert (past.superseded, past.calls, past.reused) == (1, 8, 4)


def test_live_seconds_are_sums_by_arm_without_errors_and_the_extremes_of_single_trials() -> None:
    first, two = history().seconds
    assert first == LiveSeconds("demo", "x", "none", 2, 30.0, 3.0, least=0.05, most=0.2)
    assert (two.architecture, two.share) == ("y", 0.5) and first.share == pytest.approx(0.1)


def test_a_manifest_gives_back_the_history_that_it_was_given() -> None:
    first = history()
    written = manifest_of(experiment()).model_copy(update={"recordings": {"m": first}})
    read = manifest_in(written.text.encode()).recordings["m"]
    second = History.of("again", "d2", Machine(), read, [BEGAN])
    assert second.before == first and second.live_seconds == first.seconds


def test_a_trial_without_any_seconds_has_no_share() -> None:
    assert LiveSeconds.of("s", "x", "none", [(0.0, 0.0)]).share == 0.0


def test_a_damaged_history_is_one_clear_line(tmp_path: Path) -> None:
    edit_manifest(write_run(tmp_path / "run", experiment()), recordings={"m": {"name": 3}})
    with pytest.raises(
        ResultsError, match=r"manifest.json: cannot be read: recordings.m.name: .*; restore the file from a copy$"
    ):
        read_manifest(tmp_path / "run")
