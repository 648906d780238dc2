"""What the clean runs show: the calls and their classes, the effect of each call, and the values that vary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from pydantic import JsonValue

from bench.common.errors import ConfigError, one_line
from bench.common.wording import plural
from bench.probe.run.causes import CleanCalls, class_of, name_calls, name_of
from bench.probe.run.course import AgentCourse
from bench.probe.run.volatile import ChangedRows, Masks, StoreColumn, masks_of, volatile_columns
from bench.record.events import of_kind
from bench.record.probe.events import GatewayCall, GatewayNoticed, PlannedCall
from bench.record.probe.rows import SEQUENCES, RowDifference
from bench.run.processes.tail import last_line

FEWEST = 3
"""Clean runs before the first cell: two find what varies, and the third lets calls through one by one."""
SHOWN = 3
LONGEST = 200
"""Characters of an error that are shown."""


@dataclass(frozen=True)
class CleanEffect:
    """The change that a call made in the clean run. `name` is the name of the call, or the names of all calls of a group in
    flight."""

    name: str
    identities: frozenset[str]
    rows: tuple[RowDifference, ...]


@dataclass(frozen=True)
class Clean:
    """The clean state of the stores, and the calls that led to it.

    masks, columns  what varies
    calls           the calls of the reference run, by which call each is and how often it was made so far
    effects         in their order
    rows            the rows that differ from the state at the reset, at the end; `digest` of all content
    one_by_one      whether effects are those of single calls
    reference       the run that all this is of
    """

    masks: Masks
    columns: frozenset[StoreColumn]
    calls: CleanCalls
    effects: tuple[CleanEffect, ...]
    rows: ChangedRows
    digest: str
    more: int
    one_by_one: bool
    reference: AgentCourse

    @property
    def counts(self) -> Counter[str]:
        return Counter(identity for identity, _ in self.calls)

    @property
    def varying(self) -> list[str]:
        """The values that vary, in words for a person."""
        columns = (".".join(part for part in column if part) for column in self.columns)
        return [*sorted(columns), *self.masks.names]


def clean_of(courses: Sequence[AgentCourse]) -> Clean:
    """Return what the clean runs show. There are two of them, and a third that lets calls through one by one. All three count.

    Raises:
        ConfigError: The runs differ.
    """
    masks = masks_of([_arguments(course) for course in courses])
    first, second, third = (identified(course, masks) for course in courses[:FEWEST])
    columns, lonely = volatile_columns(first.rows, second.rows)
    if lonely:
        raise ConfigError(
            f"two clean runs differ in {plural(len(lonely), 'row')}, such as {_place(lonely[0])}; the probe needs a task that "
            f"ends the same way each time: fix the model's temperature, seed or replies"
        )
    more, alone = volatile_columns(first.rows, third.rows)
    one_by_one = not alone and more <= columns
    reference = third if one_by_one else second
    calls = planned_calls(reference)
    named = name_calls(reference, calls)
    digest, more_rows = reference.readings[-1].digest, max(reading.more for reading in reference.readings)
    return Clean(masks, columns, calls, tuple(_effects(named)), reference.rows, digest, more_rows, one_by_one, named)


def identified(course: AgentCourse, masks: Masks) -> AgentCourse:
    """Return the course of the agent with each call identified, without the values that these masks hide."""
    return replace(course, identities=tuple(masks.identity(call.door, call.tool, value) for call, value in _arguments(course)))


def objection(course: AgentCourse, number: int, checked: bool) -> str:
    """Return in one line why a clean run does not count; "" if it counts.

    Args:
        course: The run.
        number: Which clean run it is, from 1.
        checked: Whether the owner has a check for what is done. If not, a run without an effect does not count.
    """
    run, printed = f"clean run {number}", last_line(course.texts.get(course.printed or "", "")) or "nothing"
    servers = [f"the server {event.door}: {event.what}; " for event in of_kind(course.lives, GatewayNoticed) if event.door]
    if course.abandoned:
        return (
            f"{run} shows what the probe did: {course.abandoned}. Give the client more time, name only the part of the store "
            f"that the agent changes, or lower `settle`"
        )
    if not course.in_time:
        return f"{run}: {''.join(servers)}the agent did not end within its limit; raise `limit`. It printed last: {printed}"
    how = f"the agent ended with exit code {course.code}"
    if all(call.door_kind == "model" for call in course.calls):
        if course.calls and not servers and course.code == 0:
            asked = plural(len(course.calls), "request")
            how = f"the agent made {asked} to its model; tools in its own process are not seen: give it these over MCP or HTTP"
        elif not servers and course.code == 0:
            how = "the agent ignores the config or the addresses that it was given, or has nothing to do"
        return f"{run}: no call came through the gateway: {''.join(servers)}{how}. It printed last: {printed}"
    if not course.done:
        how = "the check `done` fails" if checked else how
        return f"{run} failed: {''.join(servers)}{how}. It printed last: {printed}"
    begun = dropwhile(lambda reading: not reading.calls, course.readings)  # a server can write when it starts
    around = [row for reading in begun if not reading.calls for row in reading.changed if row.table != SEQUENCES]
    if around:
        return (
            f"{run}: {plural(len(around), 'row')} changed without a call, such as {_place(around[0])}: something goes around "
            f"the gateway, or acts after its answer; give the probe that tool too, leave the table out, or raise `settle`"
        )
    if not checked and not course.rows:
        failed = next((f" The last error: {_error(call, course)}" for call in reversed(course.calls) if call.failed), "")
        what = (
            f"{run} changed nothing that a witness sees; name the store that the agent changes, or give `done`. If the store "
            f"is named, its tool may write after its answer, and end with the agent: let the agent wait for it."
        )
        return f"{what}{failed} It printed last: {printed}"
    return ""


def _error(call: GatewayCall, course: AgentCourse) -> str:
    """Return what a tool or the model answered in place of a result."""
    return f"{call.door}.{call.tool} answered {one_line(course.texts.get(call.answer or '', 'nothing'), LONGEST)}."


def _place(row: RowDifference) -> str:
    return " ".join(part for part in (row.store, row.table, row.key[:100]) if part)


def _arguments(course: AgentCourse) -> list[tuple[GatewayCall, JsonValue]]:
    return [(call, _parsed(course.texts.get(call.arguments, call.arguments))) for call in course.calls]


def _parsed(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def planned_calls(course: AgentCourse) -> dict[tuple[str, int], PlannedCall]:
    """Return the calls of a clean run. Each has its identity, and a number that says how often the same call was made
    before."""
    tools = Counter[tuple[str, str]]()
    calls: dict[tuple[str, int], PlannedCall] = {}
    for call, identity, nth in course.own_calls():
        tools[call.door, call.tool] += 1
        rows = sum(len(reading.changed) for reading in course.readings if call.number in reading.calls)
        kind = class_of(call, course)
        name = name_of(call, tools[call.door, call.tool])
        calls[identity, nth] = PlannedCall(name, call.door, call.tool, kind, call.reads, rows if kind == "effect" else 0)
    return calls


def _effects(course: AgentCourse) -> list[CleanEffect]:
    calls: Mapping[int, tuple[GatewayCall, str]] = {
        call.number: (call, identity) for call, identity in zip(course.calls, course.identities, strict=True)
    }
    effects = list[CleanEffect]()
    for reading in course.readings:
        rows = tuple(row for row in reading.changed if row.table != SEQUENCES)
        makers = [calls[number] for number in reading.calls if calls[number][0].call_class == "effect"]
        if rows and makers:
            names = dict.fromkeys(call.name for call, _ in makers)
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            identities = frozenset(identity for _, identity in makers)
            effects.append(CleanEffect(" + ".join(list(names)[:SHOWN]) + more, identities, rows))
    return effects
