"""Workers at a queue: a claim whose worker dies, and a step that two workers claim."""

from __future__ import annotations

import pytest
from trips import BARE, PATTERNS, REMEDIED, effects, harm, worked

from bench.record.events import Faulted, of_kind
from bench.record.world_events import ToolCalled

BOOKED = ["book_flight", "book_hotel", "book_car"]
DIES = [{"point": "process", "effect": "worker_dies", "tool": "pay 1", "attempts": [1]}]
TWICE = [{"point": "process", "effect": "claimed_twice", "tool": "pay 1", "attempts": [1]}]


def test_bare_a_step_whose_worker_died_is_nobodys() -> None:
    result = worked("work_queue", BARE, DIES)
    assert effects(result) == BOOKED
    stages = [getattr(fault, "stage", "") for fault in of_kind(result.record.events, Faulted)]
    assert stages[:2] == ["planned", "delivered"]


def test_with_remedies_another_worker_takes_the_step_up_when_the_lease_has_run_out() -> None:
    result = worked("work_queue", REMEDIED, DIES)
    assert (result.record.outcome, harm(result)) == ("solved", {})
    calls = [event for event in result.record.events if isinstance(event, ToolCalled)]
    before, paid = (next(call for call in calls if call.tool == tool) for tool in ("book_car", "pay"))
    assert paid.minute - before.minute == 15


def test_bare_a_step_that_two_workers_claim_is_done_twice_and_with_remedies_one_of_them_wins() -> None:
    assert harm(worked("work_queue", BARE, TWICE)) == {"doubled": 1}
    mended = worked("work_queue", REMEDIED, TWICE)
    assert (mended.record.outcome, harm(mended), effects(mended).count("pay")) == ("solved", {}, 1)


@pytest.mark.parametrize("pattern", sorted({*PATTERNS} - {"work_queue"}))
def test_a_pattern_without_workers_makes_no_claim(pattern: str) -> None:
    events = worked(pattern, BARE, DIES).record.events
    assert not of_kind(events, Faulted)
