"""Whatever an agent does, its trial ends in a result or in a line that says why, and nothing of it is left."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from driven import driven, ends, interrupted, printed
from little_worlds import harm

from bench.driver import place
from bench.driver.tail import KEPT
from bench.experiment.trial import TrialResult


def left_behind(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def misbehaving(name: str, **entry: Any) -> TrialResult:
    return driven(["python", "misbehaving.py", name], **entry)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("never_ends", "no end within 1.5 s; give it more with time_limit_seconds, or see what it waits for: thinking"),
        ("dies_at_start", "ended with code 1: my key is missing"),
        ("dies_of_a_signal", "ended by signal 15: it wrote nothing"),
        ("fills_its_folder", "wrote more than 256 MB to its folder"),
    ],
)
def test_an_agent_that_does_not_end_well_has_given_up(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "LOOK_AGAIN", 0.05)
    result = misbehaving(name, **({"time_limit_seconds": 1.5} if name == "never_ends" else {}))
    assert (result.record.outcome, result.record.reason) == ("gave_up", f"the agent: {said}")


def test_of_a_gigabyte_of_output_the_end_is_kept() -> None:
    result = misbehaving("writes_1_gb")
    assert ends(result)[0].written > 1000 * 2**20
    assert len(printed(result)) == KEPT
    assert printed(result).endswith("the last line\n")


def test_of_200_connections_those_too_many_are_closed() -> None:
    burst = 100  # asyncio accepts so many before it makes the first of them
    assert 200 - burst - place.MOST_CONNECTIONS <= int(printed(misbehaving("opens_200_connections"))) < 200


def test_who_lacks_the_token_of_the_trial_is_turned_away() -> None:
    result = misbehaving("answers_for_another_trial")
    assert json.loads(printed(result)) == [401, 401]
    assert ends(result)[0].requests == 0


def test_each_bad_request_has_its_status_and_does_nothing() -> None:
    result = misbehaving("bad_requests")
    assert json.loads(printed(result)) == [
        [200, ""],
        [200, ""],
        [409, "key"],
        [404, "unknown_tool"],
        [422, "arguments"],
        [403, "declined"],
        [409, "stale"],
        [400, "versions"],
        [400, "key"],
        *[[400, "json"]] * 4,
        [422, "arguments"],
        [400, "json"],
        [422, "arguments"],
    ]
    assert "doubled" not in harm(result)


def test_one_tool_a_thousand_times_is_a_thousand_calls() -> None:
    result = misbehaving("one_tool_a_thousand_times")
    assert (result.record.outcome, ends(result)[0].requests) == ("wrong", 1000)


def test_calls_of_the_model_at_the_same_time_are_answered_on_virtual_time_too() -> None:
    assert json.loads(printed(misbehaving("asks_its_model_three_times_at_once"))) == [200, 200, 200]


def test_a_daemon_that_left_its_session_dies_with_its_agent() -> None:
    assert not left_behind(int(printed(misbehaving("leaves_a_daemon"))))


def test_an_interrupt_leaves_neither_process_nor_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = tmp_path / "pid"
    interrupted(["python", "misbehaving.py", "tells_its_number"], told.exists, env={"TOLD": str(told)})
    assert not left_behind(int(told.read_text(encoding="utf-8")))
    assert [path.name for path in tmp_path.iterdir()] == ["pid"]
