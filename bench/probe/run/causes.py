"""Identify each call of a cell, and say why calls were repeated more often than in the clean runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.probe.points import point_of
from bench.probe.run.course import AgentCourse
from bench.record.probe_events import CallClass, GatewayCall, PlannedCall, RepeatCause

CleanCalls = Mapping[tuple[str, int], PlannedCall]
"""The calls of the clean runs, by which call each is and how often it was made so far."""


def name_calls(course: AgentCourse, clean: CleanCalls) -> AgentCourse:
    """Return the course of the agent with each call named as in the clean runs, and with the repeated calls and their causes.

    A call that the clean runs lack gets the next number of its tool, and a class by what the witnesses saw in this course.
    """
    counts = Counter(identity for identity, _ in clean)
    totals = Counter(identity for _, identity, _ in course.own_calls())
    tools = Counter((call.door, call.tool) for call in clean.values())
    named = dict[int, GatewayCall]()
    made = defaultdict[str, list[GatewayCall]](list)
    for call, identity, nth in course.own_calls():
        known = clean.get((identity, nth))
        if known is None:
            tools[call.door, call.tool] += 1
        name = known.name if known else name_of(call.door, call.tool, tools[call.door, call.tool])
        kind = known.call_class if known else class_of(call, course)
        again = _call_before(call, made[identity], counts[identity]) if totals[identity] > counts[identity] else None
        named[call.number] = replace(
            call,
            name=name,
            call_class=kind,
            repeats=again.number if again else None,
            cause=cause_of(again, call, course) if again else "",
        )
        made[identity].append(named[call.number])
    return replace(course, calls=tuple(_all(course, named)))


def _call_before(call: GatewayCall, made: Sequence[GatewayCall], count: int) -> GatewayCall | None:
    """Return the call that another one repeats: after a restart the one of the former lives in its place, else the last.

    Args:
        call: A call that was made more often than in the clean runs, in all.
        made: The equal calls before it.
        count: How often the clean runs make it.
    """
    former = [earlier for earlier in made if earlier.life < call.life]
    place = sum(earlier.life == call.life for earlier in made)
    if place < len(former):
        return former[place]
    new = sum(earlier.repeats is None for earlier in made)
    return made[-1] if made and new >= count else None


def name_of(door: str, tool: str, number: int) -> str:
    return f"{door}.{tool}#{number}"


def class_of(call: GatewayCall, course: AgentCourse) -> CallClass:
    """Return the class of a call by what the witnesses saw. If calls were in flight together, a call counts as a read if its
    tool claims to read."""
    if call.door_kind == "model":
        return "model"
    for reading in course.readings:
        if reading.changed and call.number in reading.calls and (len(reading.calls) == 1 or call.reads is not True):
            return "effect"
    return "read" if call.reads else "unseen"


def cause_of(former: GatewayCall, again: GatewayCall, course: AgentCourse) -> RepeatCause:
    """Return why a call was repeated: the agent died, the model replied in between, or a client repeated it."""
    twice = again.life > 1 and any(point_of(call.point or "").processes > 1 for call in course.calls)
    if again.life > former.life or twice:
        return "restart"
    replies = (call.given for call in course.calls if call.door_kind == "model" and not call.given_otherwise)
    return "model" if any(given is not None and former.arrived <= given <= again.arrived for given in replies) else "client"


def _all(course: AgentCourse, named: Mapping[int, GatewayCall]) -> Iterator[GatewayCall]:
    for call in course.calls:
        whole = named.get(call.continues or call.number)
        known = named.get(call.number)
        yield known or (replace(call, name=whole.name, call_class=whole.call_class) if whole else call)
