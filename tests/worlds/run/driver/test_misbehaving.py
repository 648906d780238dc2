"""Whatever an agent does, its trial ends in a result or in a line that says why, and nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import time
from typing import Any

import pytest
from driven import driven, ends, interrupted, printed
from little_worlds import harm
from trials import Fault
from waiting import wait_until

from bench.record.events import Called, SetAside
from bench.run.experiment.trial import TrialResult
from bench.wire.tail import MAX_TAIL_BYTES
from bench.worlds.run.driver import command_session, folder


def left_behind(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z"
    except ProcessLookupError:
        return False


def misbehaving(name: str, faults: Sequence[Fault] = (), **entry: Any) -> TrialResult:
    return driven(["python", "misbehaving.py", name], faults, **entry)


NO_END = "no end within 3 s; give it more with time_limit_seconds, or see what it waits for: thinking"
ASKED_NOTHING = "it asked neither its model nor a tool"
REFUSED = "its last request was refused: 400: logprobs: no probabilities are given; leave the field out"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("never_ends", f"{NO_END}; {ASKED_NOTHING}"),
        ("ends_at_once", f"ended with code 0; {ASKED_NOTHING}"),
        ("dies_at_start", f"ended with code 1: my key is missing; {ASKED_NOTHING}"),
        ("dies_of_a_signal", f"ended by signal 15: it wrote nothing; {ASKED_NOTHING}"),
        ("dies_of_a_refusal", f"ended with code 1: Error code: 400; {REFUSED}"),
        ("ends_after_a_refusal", f"ended with code 0; {REFUSED}"),
        (
            "repeats_a_refused_request",
            f"no end after 9 calls of the model; give it more with model_calls, or see what it repeats; {REFUSED}",
        ),
        (
            "asks_with_another_key",
            f"ended with code 0; {ASKED_NOTHING}; a request was turned away: 401: Incorrect API key provided: send the one that"
            " came with this address, as 'Authorization: Bearer KEY'",
        ),
    ],
)
def test_an_agent_that_asked_nothing_or_ended_of_our_refusal_is_an_error_that_says_so(name: str, words: str) -> None:
    bounds = {"never_ends": {"time_limit_seconds": 3}, "repeats_a_refused_request": {"model_calls": 9}}
    result = misbehaving(name, (), **bounds.get(name, {}))
    assert (result.record.outcome, result.record.reason) == ("error", f"the agent: {words}")


@pytest.mark.parametrize("name", ["asks_again_after_a_refusal", "asks_for_what_is_not_served"])
def test_an_agent_that_works_on_after_a_refusal_is_graded(name: str) -> None:
    assert misbehaving(name).record.outcome == "wrong"


def test_settings_of_an_agent_that_are_not_passed_on_are_recorded_within_bounds() -> None:
    [event] = [event for event in misbehaving("sends_settings").record.events if isinstance(event, SetAside)]
    kept = dict(event.settings)
    assert len(kept.pop("metadata")) == 200
    assert {name: json.loads(value) for name, value in kept.items() if "vendor" not in name} == {
        "temperature": 0.2,
        "verbosity": "low",
        "reasoning": {"effort": "none"},
        "thinking": {"type": "adaptive"},
        "effort": "low",
    }
    assert len(event.settings) == 100


def test_an_agent_that_fills_its_folder_has_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_session, "FOLDER_CHECK_INTERVAL_S", 0.05)
    result = misbehaving("fills_its_folder")
    assert (result.record.outcome, result.record.reason) == ("gave_up", "the agent: wrote more than 256 MB to its folder")


def test_of_a_gigabyte_of_output_the_end_is_kept() -> None:
    result = misbehaving("writes_1_gb")
    assert ends(result)[0].written > 1000 * 2**20
    assert len(printed(result)) == MAX_TAIL_BYTES
    assert printed(result).endswith("the last line\n")


def test_of_200_connections_those_too_many_are_closed() -> None:
    too_many = 200 - command_session.MAX_CONNECTIONS
    assert printed(misbehaving("opens_200_connections", env={"TOO_MANY": str(too_many)})) == f"{too_many}\n"


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


@pytest.mark.parametrize("name", ["nests_its_folders", "links_its_log"])
def test_whatever_is_in_its_folder_harms_no_trial_and_goes_with_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(command_session, "FOLDER_CHECK_INTERVAL_S", 0.02)
    result = misbehaving(name)
    assert (result.record.outcome, ends(result)[0].code, ends(result)[0].own_log) == ("wrong", 0, None)
    assert list(tmp_path.glob("agent-*")) == []


def test_folders_count_as_files_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_session, "FOLDER_CHECK_INTERVAL_S", 0.02)
    monkeypatch.setattr(folder, "MAX_FILES", 50)
    assert misbehaving("makes_folders").record.reason == "the agent: made more than 50 files and folders in its folder"


def test_an_agent_that_asks_without_end_has_given_up_after_as_many_calls_as_it_may_make() -> None:
    result = misbehaving("asks_without_end", model_calls=7)
    text = "the agent: no end after 7 calls of the model; give it more with model_calls, or see what it repeats"
    assert (result.record.outcome, result.record.reason) == ("gave_up", text)
    assert len([event for event in result.record.events if isinstance(event, Called)]) == 7


def test_calls_at_an_address_that_names_the_agent_count_as_well() -> None:
    result = misbehaving("asks_without_end", model_calls=7, env={"WHERE": "/agent"})
    assert "no end after 7 calls of the model" in result.record.reason


def test_calls_of_all_lives_count_against_the_bound() -> None:
    """Who begins anew and asks the same again has made those calls twice."""
    crash = {"point": "process", "effect": "unacknowledged", "attempts": [1]}
    calls = len([event for event in driven(["python", "clerk.py"]).record.events if isinstance(event, Called)])
    assert driven(["python", "clerk.py"], model_calls=calls).record.outcome != "gave_up"
    assert driven(["python", "clerk.py"], [crash], model_calls=calls).record.outcome == "gave_up"


def test_an_agent_without_a_folder_to_be_started_in_has_given_up() -> None:
    result = misbehaving("removes_its_folder", faults=[{"point": "process", "effect": "unacknowledged", "attempts": [1]}])
    assert result.record.reason == "the agent: cannot be started in its folder: No such file or directory"
    assert len(ends(result)) == 1


def test_who_stops_the_process_that_watches_over_it_reaches_the_time_limit() -> None:
    result = misbehaving("stops_who_watches_over_it", time_limit_seconds=0.5)
    assert str(result.record.reason).startswith("the agent: no end within 0.5 s")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can tell whose process it was")
def test_who_kills_the_process_that_watches_over_it_leaves_none_behind() -> None:
    result = misbehaving("kills_who_watches_over_it")
    assert str(result.record.reason).startswith("the agent: ended together with the process that watched over it")
    [life] = ends(result)
    assert (life.code, life.signal, life.why) == (None, None, "broken: the process that watched over it was killed")
    pid = int(printed(result))
    wait_until(lambda: not left_behind(pid))  # it is no child of ours, for which we could wait


def test_what_is_no_http_is_refused_and_prints_nothing_of_ours(capfd: pytest.CaptureFixture[str]) -> None:
    assert printed(misbehaving("sends_what_is_no_http")) == "400\n"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(("effect", "status"), [("rate_limit", 429), ("server_error", 500)])
def test_nothing_that_an_agent_sees_names_a_test(effect: str, status: int) -> None:
    seen = printed(misbehaving("looks_for_signs_of_a_test", [{"point": "call", "effect": effect, "attempts": [1]}]))
    assert all(f"\n{each} " in seen for each in (200, 401, 404, status))
    assert '"model":"assistant"' in seen.replace(" ", "")
    created = re.findall(r'"created(?:_at)?": ?(\d+)', seen)
    assert len(created) > 5
    assert all(abs(int(each) - time()) < 60 for each in created)
    assert re.findall(r"bench|simulat|inject|\bfault|crash|\btrial|endpoint", seen.lower()) == []


def test_one_tool_a_thousand_times_is_a_thousand_calls() -> None:
    result = misbehaving("one_tool_a_thousand_times")
    assert (result.record.outcome, ends(result)[0].requests) == ("wrong", 1000)


def test_calls_of_the_model_at_the_same_time_are_answered_on_virtual_time_too() -> None:
    assert json.loads(printed(misbehaving("asks_its_model_three_times_at_once"))) == [200, 200, 200]


def test_a_daemon_that_left_its_session_dies_with_its_agent() -> None:
    assert not left_behind(int(printed(misbehaving("leaves_a_daemon"))))


def test_an_interrupt_leaves_neither_process_nor_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "pid"
    interrupted(["python", "misbehaving.py", "tells_its_number"], path.exists, env={"TOLD": str(path)})
    assert not left_behind(int(path.read_text(encoding="utf-8")))
    assert list(tmp_path.glob("agent-*")) == []
