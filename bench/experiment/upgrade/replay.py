"""A carried-over trial run once more, from its own responses: what the earlier format did not keep is taken from there.

A trial is taken over only where the replay went as the trial did, event by event. So an upgrade also proves that the present
code still does what the code did that recorded the run.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.runtime.events import Answered, Called, Committed, Event, Faulted, Judged, Waited

NEW_FIELDS = ("cause", "caused_by", "inferred", "sample", "calls")
"""Fields that the earlier format did not have, or had by other definitions."""


class Differs(Exception):
    """The replay went another way than the trial."""


def completed(recorded: Sequence[Event], replayed: Sequence[Event]) -> tuple[Event, ...]:
    """The recorded events, each with what the replay knows more of it, and the verdicts that only the replay has.

    Raises Differs where they are not the same course of events.
    """
    if _unordered(recorded) != _unordered(replayed):
        raise Differs("its faults came to other ends, or other judgments were asked for")
    merged: list[Event] = []
    numbers: dict[int, int] = {}
    counterparts = ((number, event) for number, event in enumerate(replayed) if not _has_own_pace(event))
    places: dict[int, int] = {}
    for number, event in enumerate(recorded):
        kept = event if _has_own_pace(event) else _matched(event, counterparts, merged, numbers)
        places[number] = len(merged)
        merged.append(kept)
    if any(not _is_new(event) for _, event in counterparts):
        raise Differs("the replay goes on")
    return tuple(_renumbered(event, places if _has_own_pace(event) else numbers) for event in merged)


def _matched(event: Event, counterparts: Iterator[tuple[int, Event]], merged: list[Event], numbers: dict[int, int]) -> Event:
    """The event with the new fields of the replay's next one; verdicts on undamaged replies are put before it."""
    for number, counterpart in counterparts:
        if _is_new(counterpart):
            numbers[number] = len(merged)
            merged.append(counterpart)
            continue
        if _course(event) != _course(counterpart):
            raise Differs(f"{_course(event)} became {_course(counterpart)}")
        numbers[number] = len(merged)
        return _with_new_fields(event, counterpart)
    raise Differs("the replay ends earlier")


def _has_own_pace(event: Event) -> bool:
    """Whether it may come at another moment: a replay waits for nobody, receipts are written sooner or later, and of judgments
    that are asked for together any may come first."""
    return isinstance(event, Waited | Faulted) or (isinstance(event, Called) and event.cause == "judge")


def _unordered(events: Sequence[Event]) -> Counter[tuple[object, ...]]:
    """What of the events with a pace of their own must be there, at whatever moment."""
    faults = (event for event in events if isinstance(event, Faulted))
    judgments = (event for event in events if isinstance(event, Called) and event.cause == "judge")
    return Counter(
        [
            *((fault.effect, fault.subtask, fault.attempt, fault.stage, fault.call) for fault in faults),
            *((call.subtasks, call.attempt, call.seed, call.messages, call.reply, call.failure) for call in judgments),
        ]
    )


def _is_new(event: Event) -> bool:
    return isinstance(event, Judged) and event.view != "told"


def _course(event: Event) -> tuple[object, ...]:
    """What of an event must be the same in a replay: all but seconds and what the earlier format did not have."""
    match event:
        case Called():
            asked = (event.subtasks, event.attempt, event.try_, event.seed, event.messages)
            return ("call", event.call, *asked, event.reply, event.delivered, event.failure, event.tokens_in, event.tokens_out)
        case Judged():
            return ("verdict", event.calls[-1:], event.subtask, event.accepted, event.reason)
        case Committed():
            return ("commit", event.subtask, event.version, event.calls[-1:], event.verified, event.digest, event.made_from)
        case Answered():
            return ("answer", event.versions)
        case _:
            return (repr(event),)


def _with_new_fields(event: Event, counterpart: Event) -> Event:
    if isinstance(event, dict) or isinstance(counterpart, dict):
        return event
    names = {field.name for field in dataclasses.fields(event)} & set(NEW_FIELDS)
    return dataclasses.replace(event, **{name: getattr(counterpart, name) for name in names})


def _renumbered(event: Event, numbers: dict[int, int]) -> Event:
    """Events are named by their numbers, which have moved: the replay's, or the recording's for what has its own pace."""
    if isinstance(event, Called) and event.caused_by is not None:
        return dataclasses.replace(event, caused_by=numbers[event.caused_by])
    return event
