"""Names the calls of a cell as in the clean runs, and finds out why calls were repeated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun
from bench.record.probe_events import CallClass, GatewayCall, PlannedCall, RepeatCause

CleanCalls = Mapping[tuple[str, int], PlannedCall]
"""The calls of the clean runs, by which call each is and how often it was made so far."""


def name_calls(agent_run: AgentRun, clean: CleanCalls) -> AgentRun:
    """Return a run of the agent with each call named as in the clean runs, and with the repeated calls and their causes.

    A call that the clean runs lack gets the next number of its tool, and a class by the readings of this run.
    """
    clean_counts = Counter(identity for identity, _ in clean)
    total_counts = Counter(identity for _, identity, _ in agent_run.outer_calls())
    tools = Counter((call.door, call.tool) for call in clean.values())
    named = dict[int, GatewayCall]()
    earlier_calls = defaultdict[str, list[GatewayCall]](list)
    for call, identity, nth in agent_run.outer_calls():
        known = clean.get((identity, nth))
        if known is None:
            tools[call.door, call.tool] += 1
        name = known.name if known else name_of(call.door, call.tool, tools[call.door, call.tool])
        call_class = known.call_class if known else class_of(call, agent_run)
        repeated = (
            _repeated_call(call, earlier_calls[identity], clean_counts[identity])
            if total_counts[identity] > clean_counts[identity]
            else None
        )
        named[call.number] = replace(
            call,
            name=name,
            call_class=call_class,
            repeats=repeated.number if repeated else None,
            cause=cause_of(repeated, call, agent_run) if repeated else "",
        )
        earlier_calls[identity].append(named[call.number])
    return replace(agent_run, calls=tuple(_with_names(agent_run, named)))


def _repeated_call(call: GatewayCall, earlier_calls: Sequence[GatewayCall], count: int) -> GatewayCall | None:
    """Return the earlier call that a call repeats: after a restart the call at the same position in the earlier process, else
    the last equal call.

    Args:
        call: A call that was made more often than in the clean runs, in all.
        earlier_calls: The equal calls before it.
        count: How often the clean runs make it.
    """
    former_process = [earlier for earlier in earlier_calls if earlier.life < call.life]
    place = sum(earlier.life == call.life for earlier in earlier_calls)
    if place < len(former_process):
        return former_process[place]
    unrepeated = sum(earlier.repeats is None for earlier in earlier_calls)
    return earlier_calls[-1] if earlier_calls and unrepeated >= count else None


def name_of(door: str, tool: str, number: int) -> str:
    """Return the name of a call."""
    return f"{door}.{tool}#{number}"


def class_of(call: GatewayCall, agent_run: AgentRun) -> CallClass:
    """Return the class of a call by the changes in the readings. If several calls were in flight, a call counts as a read if
    its tool says so."""
    if call.door_kind == "model":
        return "model"
    for reading in agent_run.readings:
        if reading.changed and call.number in reading.calls and (len(reading.calls) == 1 or call.reads is not True):
            return "effect"
    return "read" if call.reads else "unseen"


def cause_of(earlier: GatewayCall, later: GatewayCall, agent_run: AgentRun) -> RepeatCause:
    """Return why a call was repeated: the agent was restarted, the model replied in between, or a client repeated it."""
    twice = later.life > 1 and any(point_of(call.point or "").processes > 1 for call in agent_run.calls)
    if later.life > earlier.life or twice:
        return "restart"
    replies = (call.given for call in agent_run.calls if call.door_kind == "model" and not call.given_otherwise)
    return (
        "model"
        if any(reply_time is not None and earlier.arrived <= reply_time <= later.arrived for reply_time in replies)
        else "client"
    )


def _with_names(agent_run: AgentRun, named: Mapping[int, GatewayCall]) -> Iterator[GatewayCall]:
    """Yield all calls of a run, those that are part of another call with its name."""
    for call in agent_run.calls:
        outer = named.get(call.continues or call.number)
        known = named.get(call.number)
        yield known or (replace(call, name=outer.name, call_class=outer.call_class) if outer else call)
