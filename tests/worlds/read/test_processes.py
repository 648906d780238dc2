"""What happened to an agent's processes is in its record once, or its trial is an error."""

from __future__ import annotations

from dataclasses import replace

import pytest
from driven import driven

from bench.record.booked import booking_gap
from bench.record.events import Event
from bench.record.process_events import ProcessEnded
from bench.record.world_events import ProcessDied, ToolCalled

CRASH = {"point": "process", "effect": "before", "tool": "notify", "attempts": [1]}


@pytest.fixture(scope="module")
def events() -> tuple[Event, ...]:
    return driven(["python", "clerk.py"], [CRASH]).record.events


def test_a_trial_with_kills_adds_up(events: tuple[Event, ...]) -> None:
    assert booking_gap(events) is None


def without_first(events: tuple[Event, ...], kind: type) -> list[Event]:
    first = next(number for number, event in enumerate(events) if isinstance(event, kind))
    return [event for number, event in enumerate(events) if number != first]


def test_a_call_or_a_crash_that_is_missing_is_found(events: tuple[Event, ...]) -> None:
    assert "are in the record" in (booking_gap(without_first(events, ToolCalled)) or "")
    quiet = [replace(event, why="") if isinstance(event, ProcessEnded) else event for event in events]
    assert booking_gap(quiet) == "0 processes were killed as planned, and 2 crashes are in the record"
    assert "are in the record" in (booking_gap(without_first(events, ProcessDied)) or "")
