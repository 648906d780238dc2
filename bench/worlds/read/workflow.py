"""A trial in a world as a workflow: its steps, its completion time and its waiting for people, in minutes of world time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.record.events import Event, of_kind
from bench.record.intervals import Interval, covered_time
from bench.record.moment import Moment
from bench.record.world_events import COMPENSATION, PersonAsked, PersonDecided, Stepped, ToolCalled, WorldBegan


@dataclass(frozen=True)
class StepTaken:
    """One step of a trial, from its first start to its last end. `ended` is None if the step never ended. `why` says why the
    step failed; "" if it did not."""

    name: str
    attempts: int
    began: Moment
    ended: Moment | None
    why: str

    @property
    def done(self) -> bool:
        """Whether the step ended without a failure."""
        return self.ended is not None and not self.why

    @property
    def minutes(self) -> int | None:
        """The minutes from its first beginning to its last end; None if it never ended."""
        return self.ended.total - self.began.total if self.ended else None


def steps_of(events: Sequence[Event]) -> list[StepTaken]:
    """Return the steps that began, in the order of their starts. A repeated step is one row with its last end."""
    step_events = of_kind(events, Stepped)
    if not step_events:
        return []
    attempts = Counter(event.step for event in step_events if event.stage == "began")
    starts = {event.step: _moment(event) for event in reversed(step_events) if event.stage == "began"}
    ends = {event.step: event for event in step_events if event.stage == "ended"}
    return [
        StepTaken(
            name,
            attempts[name],
            starts[name],
            _moment(ends[name]) if name in ends else None,
            ends[name].why if name in ends else "",
        )
        for name in attempts
    ]


def completion_minutes(events: Sequence[Event], steps: Sequence[StepTaken]) -> int | None:
    """Return the minutes from the world's start to the end of the last step; None if no step ended."""
    ends = [step.ended.total for step in steps if step.ended]
    began = next((_moment(event).total for event in of_kind(events, WorldBegan)), 0)
    return max(ends) - began if ends else None


def minutes_at_work(steps: Sequence[StepTaken]) -> int:
    """Return the minutes in which at least one step was in progress. Unlike completion time, this leaves out the calendar time
    between steps. Minutes that several steps share count once."""
    return covered_time([(step.began.total, step.ended.total) for step in steps if step.ended])


def waiting_for_people(events: Sequence[Event]) -> int:
    """Return the minutes spent waiting for people's answers. A wait lasts from the first time that a question was asked, across
    crashes, until the agent no longer waited. Minutes that several waits share count once."""
    if not of_kind(events, PersonAsked):
        return 0
    asked: dict[str, int] = {}
    waits: list[Interval] = []
    for event in events:
        if isinstance(event, PersonAsked):
            asked.setdefault(event.ticket, _moment(event).total)
        elif isinstance(event, PersonDecided) and event.ticket in asked:
            waits.append((asked[event.ticket], _moment(event).total))
    return covered_time(waits)


def tool_retries(events: Sequence[Event]) -> int:
    """Return the number of calls that repeat an effect whose previous call failed or was throttled."""
    unanswered: set[tuple[str, str]] = set()
    retries = 0
    for call in of_kind(events, ToolCalled):
        retries += (call.tool, call.effect) in unanswered
        if call.outcome == "failed" or call.code == "throttled":
            unanswered.add((call.tool, call.effect))
        else:
            unanswered.discard((call.tool, call.effect))
    return retries


class CompensationCounts(NamedTuple):
    """The number of pairs of effects that were undone one directly after the other, and the number of these pairs that were not
    undone in reverse order."""

    pairs: int
    out_of_order: int


def compensations(events: Sequence[Event]) -> CompensationCounts:
    """Count the pairs of effects of a trial that were undone one directly after the other, and the pairs in the wrong order."""
    place_done: dict[str, int] = {}
    pairs = out_of_order = 0
    last_place: int | None = None
    effects = [call for call in of_kind(events, ToolCalled) if call.outcome == "done" and call.access != "read"]
    for place, call in enumerate(effects):
        if call.role != COMPENSATION:
            place_done[call.effect], last_place = place, None
            continue
        undone_place = place_done.get(call.effect)
        if last_place is not None and undone_place is not None:
            pairs, out_of_order = pairs + 1, out_of_order + (undone_place > last_place)
        last_place = undone_place
    return CompensationCounts(pairs, out_of_order)


def count_refused(events: Sequence[Event], *codes: str) -> int:
    """Return the number of calls that were refused with one of these codes."""
    return sum(call.code in codes for call in of_kind(events, ToolCalled))


def _moment(event: Stepped | PersonAsked | PersonDecided | WorldBegan) -> Moment:
    return Moment(event.day, event.minute)
