"""Of an agent of several processes the one that made a call is killed, and the others go on."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from driven import driven, ends, printed, receipts
from little_worlds import ended, harm

from bench.record.events import Called, Faulted

CARELESS, CAREFUL = ["python", "foreman.py"], ["python", "foreman.py", "careful"]
FILES = {"files": ["clerk.py"], "kills": "caller"}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="who asks is known on Linux alone")


def crash(point: str) -> list[dict[str, object]]:
    return [{"point": "process", "effect": point, "tool": "notify", "attempts": [1]}]


@pytest.mark.parametrize(
    "point", [pytest.param("before", marks=pytest.mark.endurance), "unacknowledged", "unrecorded", "recorded"]
)
def test_only_the_process_that_made_the_call_dies_and_a_careful_agent_does_all_exactly_once(point: str) -> None:
    result = driven(CAREFUL, crash(point), **FILES)
    assert (result.record.outcome, harm(result), ended(result).lives) == ("solved", {}, 3)
    assert [(each.code, each.signal, each.why) for each in ends(result)] == [(0, None, "")], "the foreman never died"
    assert printed(result).splitlines() == ["a clerk ended with -9"] * 2 + ["the foreman ends"]
    assert (receipts(result)["planned"], receipts(result)["delivered"], receipts(result)["detected"]) == (2, 2, 2)


def test_a_worker_that_begins_anew_damages_what_a_whole_agent_does_that_begins_anew() -> None:
    result = driven(CARELESS, crash("unacknowledged"), **FILES)
    assert (result.record.outcome, harm(result), len(ends(result))) == ("wrong", {"doubled": 6, "orphaned": 2}, 1)


def test_a_process_that_dies_in_mid_reply_asks_again_because_of_its_death() -> None:
    result = driven(CAREFUL, [{"point": "process", "effect": "mid_stream", "attempts": [1]}], **FILES)
    calls = [event for event in result.record.events if isinstance(event, Called)]
    assert (result.record.outcome, ended(result).lives, len(ends(result))) == ("solved", 2, 1)
    assert [call.failure == "cut_off" for call in calls[:2]] == [True, False]
    assert Counter(event.effect for event in result.record.events if isinstance(event, Faulted)).keys() == {"mid_stream"}


def test_without_the_setting_all_processes_of_the_command_die() -> None:
    result = driven(CAREFUL, crash("unacknowledged"), files=["clerk.py"])
    assert [(each.signal, each.why) for each in ends(result)] == [(9, "crash"), (9, "crash"), (None, "")]
    assert result.record.outcome == "solved"
