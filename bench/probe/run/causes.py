"""Names the calls of a cell as in the clean runs, and finds out why calls were repeated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun
from bench.record.probe_events import CallClass, GatewayCall, PlannedCall, RepeatCause

CleanCalls = Mapping[tuple[str, int], PlannedCall]
"""The calls of the clean runs. The key (identity, n) is the n-th call with this identity."""


def name_calls(agent_run: AgentRun, clean: CleanCalls) -> AgentRun:
    """Return a run of the agent in which each call has its name in the clean runs, and each repeated call has its cause.

    A call that the clean runs lack gets the next number of its tool, and a class by the readings of this run.
    """
    clean_counts = Counter(identity for identity, _ in clean)
    total_counts = Counter(identity for _, identity, _ in agent_run.outer_calls())
    tool_counts = Counter((call.door, call.tool) for call in clean.values())
    named_calls = dict[int, GatewayCall]()
    earlier_calls = defaultdict[str, list[GatewayCall]](list)
    for call, identity, nth in agent_run.outer_calls():
        clean_call = clean.get((identity, nth))
        if clean_call is None:
            tool_counts[call.door, call.tool] += 1
        name = clean_call.name if clean_call else name_of(call.door, call.tool, tool_counts[call.door, call.tool])
        call_class = clean_call.call_class if clean_call else class_of(call, agent_run)
        repeated = (
            _repeated_call(call, earlier_calls[identity], clean_counts[identity])
            if total_counts[identity] > clean_counts[identity]
            else None
        )
        named_calls[call.number] = replace(
            call,
            name=name,
            call_class=call_class,
            repeats=repeated.number if repeated else None,
            cause=cause_of(repeated, call, agent_run) if repeated else "",
        )
        earlier_calls[identity].append(named_calls[call.number])
    return replace(agent_run, calls=tuple(_all_calls_named(agent_run, named_calls)))


def _repeated_call(call: GatewayCall, earlier_calls: Sequence[GatewayCall], count: int) -> GatewayCall | None:
    """Return the earlier call that a call repeats: after a restart the call at the same position in the earlier process, else
    the last equal call; None if it repeats none.

    Args:
        call: One of several equal calls, of which the run has more than the clean runs.
        earlier_calls: The equal calls before it.
        count: The number of equal calls in the clean runs.
    """
    calls_before_restart = [earlier for earlier in earlier_calls if earlier.life < call.life]
    index = sum(earlier.life == call.life for earlier in earlier_calls)
    if index < len(calls_before_restart):
        return calls_before_restart[index]
    first_calls = sum(earlier.repeats is None for earlier in earlier_calls)
    return earlier_calls[-1] if earlier_calls and first_calls >= count else None


def name_of(door: str, tool: str, number: int) -> str:
    """Return the name of a call, such as `bank.pay#1` for the first call of the tool `pay` at the door `bank`."""
    return f"{door}.{tool}#{number}"


def class_of(call: GatewayCall, agent_run: AgentRun) -> CallClass:
    """Return the class of a call: `effect` if a reading during the call shows a change, else by what its tool claims. If
    several calls were in flight at the change, a call whose tool claims to read counts as a read."""
    if call.door_kind == "model":
        return "model"
    for reading in agent_run.readings:
        if reading.changed and call.number in reading.calls and (len(reading.calls) == 1 or call.reads is not True):
            return "effect"
    return "read" if call.reads else "unseen"


def cause_of(earlier: GatewayCall, later: GatewayCall, agent_run: AgentRun) -> RepeatCause:
    """Return why a call was repeated: the agent was restarted, the model replied in between, or a client repeated it."""
    is_resumed_twice = later.life > 1 and any(point_of(call.point).processes > 1 for call in agent_run.calls)
    if later.life > earlier.life or is_resumed_twice:
        return "restart"
    replies = (call.given for call in agent_run.calls if call.door_kind == "model" and not call.given_otherwise)
    return (
        "model"
        if any(reply_time is not None and earlier.arrived <= reply_time <= later.arrived for reply_time in replies)
        else "client"
    )


def _all_calls_named(agent_run: AgentRun, named_calls: Mapping[int, GatewayCall]) -> Iterator[GatewayCall]:
    """Yield all calls of a run with their names. A call that is part of another call has the name and class of that call."""
    for call in agent_run.calls:
        outer = named_calls.get(call.continues or call.number, call)
        yield outer if outer.number == call.number else replace(call, name=outer.name, call_class=outer.call_class)
