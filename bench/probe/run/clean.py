"""What the clean runs show: the calls and their classes, the effect of each call, and the values that vary."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from pydantic import JsonValue

from bench.common.errors import ConfigError, one_line
from bench.common.wording import plural
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.box.refusals import NETWORK_DOOR
from bench.probe.run.causes import CleanCalls, class_of, name_calls, name_of
from bench.probe.run.gateway.functions import FUNCTION_DOOR
from bench.probe.run.varying import ValueJudge, value_changes
from bench.probe.run.volatile import ChangedRows, Masks, Varying, differing_rows, masks_of, place_of, varying_of
from bench.record.events import of_kind
from bench.record.probe_events import GatewayCall, GatewayNoticed, PlannedCall
from bench.record.probe_rows import SEQUENCES, RowDifference
from bench.wire.tail import last_line

FIRST_CLEAN_RUNS = 3
"""The number of clean runs before the first cell: two find what varies, and the third forwards calls one by one."""
END_OF_INPUT, MAX_SEARCHED_CHARS = re.compile(r"\bEOF(?:Error)?\b"), 10_000
ANSWERS_SETTING = r'answers = "y\n" in probe.toml'
INPUT_ADVICE = (
    f"It came to the end of its standard input: {ANSWERS_SETTING} says what it reads there, and by default that is nothing"
)
"""The advice for an agent that asks a person."""
READ_ONLY_ADVICE = (
    "In the box all but the agent's folder, the home and the stores is read-only: name what it writes elsewhere as a [[store]]"
)
OUTPUT_ADVICE = (
    (END_OF_INPUT, INPUT_ADVICE),
    (re.compile(r"Read-only file system|\bEROFS\b"), f"{READ_ONLY_ADVICE}, or probe it with --unboxed"),
)
"""Patterns in what an agent printed, each with the advice for the owner."""
MAX_NAMED_CALLS, MAX_ERROR_CHARS = 3, 200
"""The most effects that are named in one name, and the most characters of an error that are shown."""


@dataclass(frozen=True)
class CleanEffect:
    """The change of the stores by a call in the clean run, or by several calls that were in flight at the same time.

    name        the name of the call, or of the calls
    identities  the identities of the calls
    rows        the rows that changed
    """

    name: str
    identities: frozenset[str]
    rows: tuple[RowDifference, ...]


@dataclass(frozen=True)
class Clean:
    """The result of the clean runs: their calls and effects, and the state of the stores at their end.

    masks, rows_vary  which parts of calls, and which values of rows, vary
    calls           the calls of the reference run by (identity, n): the n-th call with this identity
    effects         the effects in their order
    rows            the rows that differ at the end from the state at the reset
    digest          the digest of all content of the stores at the end
    more            the number of further rows that differ and are not listed
    one_by_one      whether each effect belongs to a single call
    reference       the run with which cells are compared
    values          judges the changes of values that vary
    again           the calls that were repeated with the same effect, though none had failed
    race            the rows that differ if calls are forwarded one by one: `before` as in the other runs
    checks          the answers to the owner's checks
    """

    masks: Masks
    rows_vary: Varying
    calls: CleanCalls
    effects: tuple[CleanEffect, ...]
    rows: ChangedRows
    digest: str
    more: int
    one_by_one: bool
    reference: AgentRun
    values: ValueJudge
    again: tuple[str, ...] = ()
    race: tuple[RowDifference, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """How often each call was made, by its identity."""
        return Counter(identity for identity, _ in self.calls)

    @property
    def acting(self) -> frozenset[str]:
        """The identities of calls that have or may have an effect."""
        return frozenset(identity for (identity, _), call in self.calls.items() if call.call_class in ("effect", "unseen"))

    def is_added(self, row: RowDifference) -> bool:
        """Return whether a row was added after the reset."""
        difference = self.rows.get(place_of(row))
        return difference is not None and difference.before is None

    @property
    def varying(self) -> list[str]:
        """The values that vary, in words."""
        return [*self.rows_vary.names, *self.masks.names]


def clean_of(agent_runs: Sequence[AgentRun]) -> Clean:
    """Return what the three clean runs show: two with calls in parallel, and a third in which calls are forwarded one by one.

    Raises:
        ConfigError: The runs differ.
    """
    masks = masks_of([_arguments(agent_run) for agent_run in agent_runs])
    first, second, third = (with_identities(agent_run, masks) for agent_run in agent_runs[:FIRST_CLEAN_RUNS])
    varying, unmatched = varying_of(first.rows, second.rows)
    further_varying, unmatched_one_by_one = varying_of(first.rows, third.rows)
    overlap = any(len(reading.calls) > 1 for agent_run in (first, second) for reading in agent_run.readings)
    if differing := unmatched or ([] if overlap else unmatched_one_by_one):
        raise ConfigError(
            f"two clean runs differ in {plural(len(differing), 'row')}, such as {_place_in_words(differing[0])}; the probe "
            f"needs a task that ends the same way each time: fix its model's temperature, seed or replies, and the seed of "
            f"what its tools draw"
        )
    race = differing_rows(second.rows, third.rows, varying) if overlap else []
    # whether calls one by one leave the same rows, and vary in nothing further if calls of the other runs overlap
    one_by_one = not unmatched_one_by_one and (not overlap or further_varying | varying == varying)
    if one_by_one:
        varying |= further_varying
    reference = third if one_by_one else second
    calls = planned_calls(reference, masks)
    named_reference = name_calls(reference, calls)
    changes = [value_changes(agent_run, varying) for agent_run in (first, second, third)]
    return Clean(
        masks=masks,
        rows_vary=varying,
        calls=calls,
        effects=tuple(_effects(named_reference)),
        rows=reference.rows,
        digest=reference.readings[-1].digest,
        more=max(reading.more for reading in reference.readings),
        one_by_one=one_by_one,
        reference=named_reference,
        values=ValueJudge(changes, changes[2 if one_by_one else 1], Counter(identity for identity, _ in calls)),
        again=tuple(_repeated_without_failure(calls, named_reference)),
        race=tuple(race),
        checks=named_reference.checks,
    )


def _repeated_without_failure(calls: CleanCalls, agent_run: AgentRun) -> Iterator[str]:
    """Yield the calls that were repeated with equal arguments, each time with an effect, though none of them had failed."""
    failed = {identity for call, identity, _ in agent_run.outer_calls() if call.failed or call.given is None}
    for (identity, nth), call in calls.items():
        first = calls.get((identity, 1))
        if nth > 1 and first and identity not in failed and first.call_class == call.call_class == "effect":
            yield call.name


def with_identities(agent_run: AgentRun, masks: Masks) -> AgentRun:
    """Return a run of the agent with the identity of each call, which ignores the parts that these masks hide."""
    return replace(
        agent_run, identities=tuple(masks.identity(call.door, call.tool, value) for call, value in _arguments(agent_run))
    )


def objection(agent_run: AgentRun, number: int, has_check: bool) -> str:
    """Return why a clean run does not count, in one line; "" if it counts.

    Args:
        agent_run: A clean run, which has ended.
        number: Its number, from 1.
        has_check: Whether the owner has a check of the task. If not, a run without an effect does not count.
    """
    text = agent_run.texts.get(agent_run.printed or "", "")
    run, printed = f"clean run {number}", last_line(text) or "nothing"
    printed += "".join(
        f". {todo}" for pattern, todo in OUTPUT_ADVICE if pattern.search(text, max(0, len(text) - MAX_SEARCHED_CHARS))
    )
    notices = [event for event in of_kind(agent_run.lives, GatewayNoticed) if event.door]
    servers = [
        f"{event.what}; " if event.door == NETWORK_DOOR else f"the server {event.door}: {event.what}; "
        for event in notices
        if event.door != FUNCTION_DOOR
    ]
    functions = [f"{event.what}; " for event in notices if event.door == FUNCTION_DOOR]
    if agent_run.abandoned:
        return (
            f"{run} shows what the probe did: {agent_run.abandoned}. Give the client more time, name only the part of the "
            f"store that the agent changes, or lower `settle`"
        )
    if not agent_run.in_time:
        return f"{run}: {''.join(servers)}the agent did not end within its limit; raise `limit`. It printed last: {printed}"
    ending = f"the agent ended with exit code {agent_run.code}"
    if all(call.door_kind == "model" for call in agent_run.calls):
        if agent_run.calls and not servers and agent_run.code == 0:
            ending = f"the agent made {plural(len(agent_run.calls), 'request')} to its model"
            ending += "" if functions else "; for tools in its own process write functions = []"
        elif not servers and not functions and agent_run.code == 0:
            ending = (
                "the agent ignores the config or the addresses that it was given, or has nothing to do, or was told nothing: "
            )
            ending += f"its standard input is empty unless {ANSWERS_SETTING} says what it reads"
        return f"{run}: no call came through the gateway: {''.join(servers + functions)}{ending}. It printed last: {printed}"
    if not agent_run.done:
        ending = "the check `done` fails" if has_check else ending
        return f"{run} failed: {''.join(servers)}{ending}. It printed last: {printed}"
    after_start = dropwhile(lambda reading: not reading.calls, agent_run.readings)  # a server can write when it starts
    uncalled = [row for reading in after_start if not reading.calls for row in reading.changed if row.table != SEQUENCES]
    if uncalled:
        return (
            f"{run}: {plural(len(uncalled), 'row')} changed without a call, such as {_place_in_words(uncalled[0])}: something "
            f"goes around the gateway, or acts after its answer; give the probe that tool too, by `functions` if it is in the "
            f"agent's own process, leave the table out, or raise `settle`"
        )
    if not has_check and not agent_run.rows:
        failed = next((f" The last error: {_error(call, agent_run)}" for call in reversed(agent_run.calls) if call.failed), "")
        problem = (
            f"{run} changed nothing that a witness sees; name the store that the agent changes, or give `done`. If the store "
            f"is named, its tool may write after its answer, and end with the agent: let the agent wait for it."
        )
        return f"{problem}{failed} It printed last: {printed}"
    return ""


def _error(call: GatewayCall, agent_run: AgentRun) -> str:
    """Return in words which tool failed, and its response."""
    return f"{call.door}.{call.tool} answered {one_line(agent_run.texts.get(call.answer or '', 'nothing'), MAX_ERROR_CHARS)}."


def _place_in_words(row: RowDifference) -> str:
    """Return the store, the table and the key of a row in words."""
    return " ".join(part for part in (row.store, row.table, row.key[:100]) if part)


def _arguments(agent_run: AgentRun) -> list[tuple[GatewayCall, JsonValue]]:
    """Return each call of a run with its parsed arguments."""
    return [(call, _value_of(agent_run.texts.get(call.arguments, call.arguments))) for call in agent_run.calls]


def _value_of(text: str) -> JsonValue:
    """Return the value of a JSON text; the text itself if it is no JSON."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def planned_calls(agent_run: AgentRun, masks: Masks) -> dict[tuple[str, int], PlannedCall]:
    """Return the calls of a clean run, with their names and classes, by (identity, n): the n-th call with this identity."""
    tool_counts = Counter[tuple[str, str]]()
    calls: dict[tuple[str, int], PlannedCall] = {}
    for call, identity, nth in agent_run.outer_calls():
        tool = masks.tool(call.door, call.tool)
        tool_counts[call.door, tool] += 1
        rows = sum(len(reading.changed) for reading in agent_run.readings if call.number in reading.calls)
        call_class = class_of(call, agent_run)
        name = name_of(call.door, tool, tool_counts[call.door, tool])
        rows = rows if call_class == "effect" else 0
        calls[identity, nth] = PlannedCall(name, call.door, call.tool, call_class, call.reads, rows)
    return calls


def _effects(agent_run: AgentRun) -> list[CleanEffect]:
    """Return the effects of a run, in their order: for each reading with changed rows the calls that were in flight."""
    calls = {call.number: call for call in agent_run.calls}
    identities = dict(zip(calls, agent_run.identities, strict=True))
    effects = list[CleanEffect]()
    for reading in agent_run.readings:
        rows = tuple(row for row in reading.changed if row.table != SEQUENCES)
        makers = [number for number in reading.calls if calls[number].call_class == "effect"]
        if rows and makers:
            names = list(dict.fromkeys(calls[number].name for number in makers))
            rest = f" and {len(names) - MAX_NAMED_CALLS} more" if len(names) > MAX_NAMED_CALLS else ""
            name = " + ".join(names[:MAX_NAMED_CALLS]) + rest
            effects.append(CleanEffect(name, frozenset(identities[number] for number in makers), rows))
    return effects
