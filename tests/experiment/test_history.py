"""What a recording went through is told by its records: the replay's manifest keeps it whole."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from records import called, trial

from bench.errors import ResultsError
from bench.experiment.history import History, LiveSeconds, histories, history_of
from bench.experiment.record import SessionRecord, TrialRecord

BEGAN, ENDED = SessionRecord("t1", "began", "4 of 4"), SessionRecord("t2", "ended", "stopped")


def live(architecture: str, repetition: int, seconds: tuple[float, float, float], **values: Any) -> TrialRecord:
    """`seconds`: API, waiting, framework."""
    api, waiting, framework = seconds
    one = trial(architecture, repetition=repetition, events=[called(1), replace(called(2), reused=True)])
    return replace(one, timing="live", api_seconds=api, waiting_seconds=waiting, framework_seconds=framework, **values)


RECORDS: list[TrialRecord | SessionRecord] = [
    BEGAN,
    live("x", 1, (0.0, 0.0, 9.0), outcome="error"),
    live("x", 1, (7.0, 1.0, 2.0)),
    ENDED,
    live("y", 1, (1.0, 0.0, 1.0)),
    live("x", 2, (19.0, 0.0, 1.0)),
    live("x", 3, (0.0, 0.0, 5.0), outcome="error"),
]


def history(**manifest: Any) -> History:
    return history_of({"name": "run", "machine": {"system": "Linux"}, **manifest}, "m", "d1", RECORDS)


def test_a_history_counts_sessions_superseded_errors_and_reused_replies() -> None:
    found = history()
    assert (found.name, found.digest, found.machine) == ("run", "d1", {"system": "Linux"})
    assert found.sessions == (BEGAN, ENDED)
    assert (found.superseded, found.calls, found.reused) == (1, 8, 4)


def test_live_seconds_are_sums_by_arm_without_errors_and_the_extremes_of_single_trials() -> None:
    one, two = history().seconds
    assert one == LiveSeconds("demo", "x", "none", 2, 30.0, 3.0, least=0.05, most=0.2)
    assert (two.architecture, two.share) == ("y", 0.5) and one.share == pytest.approx(0.1)


def test_a_manifest_gives_back_the_history_that_it_was_given() -> None:
    first = history()
    kept = json.loads(json.dumps({"recordings": {"m": asdict(first)}}))
    second = history_of({"name": "again", **kept}, "m", "d2", [BEGAN])
    assert histories(kept) == {"m": first}
    assert second.before == first and second.live_seconds == first.seconds


def test_a_trial_without_any_seconds_has_no_share() -> None:
    assert LiveSeconds.of("s", "x", "none", [(0.0, 0.0)]).share == 0.0


def test_a_damaged_history_is_one_clear_line() -> None:
    with pytest.raises(ResultsError, match=r"^manifest.json of run: recordings: .*; restore the file from a copy.*$"):
        histories({"name": "run", "recordings": {"m": {"name": 3}}})
