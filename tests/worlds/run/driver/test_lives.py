"""A command is killed as planned and started again: what a careless agent then breaks, and a careful one does not."""

from __future__ import annotations

import pytest
from driven import driven, ends, receipts
from little_worlds import ended, harm

from bench.record.events import Called

CARELESS, CAREFUL = ["python", "clerk.py"], ["python", "clerk.py", "careful"]
POINTS = ("before", "unacknowledged", "unrecorded", "recorded")


def crash(point: str) -> list[dict[str, object]]:
    return [{"point": "process", "effect": point, "tool": "notify", "attempts": [1]}]


@pytest.mark.parametrize("point", POINTS)
def test_an_agent_that_gives_keys_and_keeps_notes_does_all_exactly_once(point: str) -> None:
    result = driven(CAREFUL, crash(point))
    assert (result.record.outcome, harm(result), ended(result).lives) == ("solved", {}, 3)
    assert (receipts(result)["planned"], receipts(result)["delivered"]) == (2, 2)
    assert [(each.signal, each.why) for each in ends(result)] == [(9, "crash"), (9, "crash"), (None, "")]


@pytest.mark.parametrize(
    ("point", "damage"),
    [
        pytest.param("before", {"doubled": 4}, marks=pytest.mark.endurance),
        pytest.param("unacknowledged", {"doubled": 6, "orphaned": 2}, marks=pytest.mark.endurance),
        ("unrecorded", {"doubled": 6, "orphaned": 2}),
        ("recorded", {"doubled": 6}),
    ],
)
def test_one_that_begins_anew_does_again_all_that_it_had_done(point: str, damage: dict[str, int]) -> None:
    result = driven(CARELESS, crash(point))
    assert (result.record.outcome, ended(result).lives) == ("wrong", 3)
    assert harm(result) == damage
    assert receipts(result)["planned"] == receipts(result)["delivered"] == 2


def test_a_death_in_mid_reply_is_paid_lost_and_drawn_by_the_number_of_the_reply() -> None:
    result = driven(CAREFUL, [{"point": "process", "effect": "mid_stream", "attempts": [1, 3]}])
    assert (result.record.outcome, harm(result), ended(result).lives) == ("solved", {}, 3)
    assert receipts(result)["delivered"] == 2
    calls = [event for event in result.record.events if isinstance(event, Called)]
    assert [call.failure == "cut_off" for call in calls] == [True, False, True, False, False, False]
    assert all(call.tokens_in for call in calls)


def test_a_lost_answer_closes_the_connection_and_a_fault_of_a_tool_is_503() -> None:
    faults = [
        {"point": "tool", "effect": "lost_ack", "tool": "refund", "attempts": [1]},
        {"point": "tool", "effect": "error", "tool": "notify", "attempts": [1]},
    ]
    careful, careless = driven(CAREFUL, faults), driven(CARELESS, faults)
    assert (careful.record.outcome, harm(careful)) == ("solved", {})
    assert harm(careless) == {"lost": 2, "orphaned": 2}
    assert [len(ends(each)) for each in (careful, careless)] == [1, 1]


def test_each_call_that_the_door_took_is_booked() -> None:
    result = driven(CAREFUL)
    booked = sum(event.kind == "tool" for event in result.record.events)  # type: ignore[union-attr]
    assert sum(each.requests for each in ends(result)) == booked == 11
