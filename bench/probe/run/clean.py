"""What the clean runs show: the calls and their classes, the effect of each call, and the values that vary."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from pydantic import JsonValue

from bench.common.errors import ConfigError, one_line
from bench.common.wording import plural
from bench.probe.run.box.refusals import NETWORK
from bench.probe.run.causes import CleanCalls, class_of, name_calls, name_of
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.functions import FUNCTION
from bench.probe.run.varying import ValueJudge, value_changes
from bench.probe.run.volatile import ChangedRows, Masks, Varying, masks_of, place_of, rows_apart, varying_of
from bench.record.events import of_kind
from bench.record.probe_events import GatewayCall, GatewayNoticed, PlannedCall
from bench.record.probe_rows import SEQUENCES, RowDifference
from bench.wire.tail import last_line

FEWEST = 3
"""Clean runs before the first cell: two find what varies, and the third lets calls through one by one."""
AT_END, MOST_SEARCHED = re.compile(r"\bEOF(?:Error)?\b"), 10_000
ANSWERS = r'answers = "y\n" in probe.toml'
ASKS = f"It came to the end of its standard input: {ANSWERS} says what it reads there, and by default that is nothing"
"""What an agent lacks that asks a person."""
OUTSIDE = (
    "In the box all but the agent's folder, the home and the stores is read-only: name what it writes elsewhere as a [[store]]"
)
ADVICE = ((AT_END, ASKS), (re.compile(r"Read-only file system|\bEROFS\b"), f"{OUTSIDE}, or probe it with --unboxed"))
"""What an agent printed -> what to do."""
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

    masks, rows_vary  what varies in calls, and in rows
    calls           the calls of the reference run, by which call each is and how often it was made so far
    effects         in their order
    rows            the rows that differ from the state at the reset, at the end; `digest` of all content
    one_by_one      whether effects are those of single calls
    reference       the run that all this is of
    values          the changes of values that vary
    again           the calls that were made again with the same effect, though none failed
    race            the rows that differ where calls are let through one by one: `before` as they are else
    checks          what the owner's checks answered
    """

    masks: Masks
    rows_vary: Varying
    calls: CleanCalls
    effects: tuple[CleanEffect, ...]
    rows: ChangedRows
    digest: str
    more: int
    one_by_one: bool
    reference: AgentCourse
    values: ValueJudge
    again: tuple[str, ...] = ()
    race: tuple[RowDifference, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        return Counter(identity for identity, _ in self.calls)

    @property
    def acting(self) -> frozenset[str]:
        """The identities of calls that have an effect, or may have one."""
        return frozenset(identity for (identity, _), call in self.calls.items() if call.call_class in ("effect", "unseen"))

    def is_added(self, row: RowDifference) -> bool:
        """Return whether a row was not there at the reset."""
        known = self.rows.get(place_of(row))
        return known is not None and known.before is None

    @property
    def varying(self) -> list[str]:
        """The values that vary, in words for a person."""
        return [*self.rows_vary.names, *self.masks.names]


def clean_of(courses: Sequence[AgentCourse]) -> Clean:
    """Return what the clean runs show. There are two of them, and a third that lets calls through one by one. All three count.

    Raises:
        ConfigError: The runs differ.
    """
    masks = masks_of([_arguments(course) for course in courses])
    first, second, third = (with_identities(course, masks) for course in courses[:FEWEST])
    varying, lonely = varying_of(first.rows, second.rows)
    more, alone = varying_of(first.rows, third.rows)
    overlap = any(len(reading.calls) > 1 for course in (first, second) for reading in course.readings)
    if differ := lonely or ([] if overlap else alone):
        raise ConfigError(
            f"two clean runs differ in {plural(len(differ), 'row')}, such as {_place(differ[0])}; the probe needs a task that "
            f"ends the same way each time: fix its model's temperature, seed or replies, and the seed of what its tools draw"
        )
    race = rows_apart(second.rows, third.rows, varying) if overlap else []
    one_by_one = not alone and (not overlap or more | varying == varying)
    if one_by_one:
        varying |= more
    reference = third if one_by_one else second
    calls = planned_calls(reference, masks)
    named = name_calls(reference, calls)
    changes = [value_changes(course, varying) for course in (first, second, third)]
    return Clean(
        masks=masks,
        rows_vary=varying,
        calls=calls,
        effects=tuple(_effects(named)),
        rows=reference.rows,
        digest=reference.readings[-1].digest,
        more=max(reading.more for reading in reference.readings),
        one_by_one=one_by_one,
        reference=named,
        values=ValueJudge(changes, changes[2 if one_by_one else 1], Counter(identity for identity, _ in calls)),
        again=tuple(_made_again(calls, named)),
        race=tuple(race),
        checks=named.checks,
    )


def _made_again(calls: CleanCalls, course: AgentCourse) -> Iterator[str]:
    """Yield the calls that were made again with the same arguments, each time with an effect, though none of them failed."""
    failed = {identity for call, identity, _ in course.own_calls() if call.failed or call.given is None}
    for (identity, nth), call in calls.items():
        first = calls.get((identity, 1))
        if nth > 1 and first and identity not in failed and first.call_class == call.call_class == "effect":
            yield call.name


def with_identities(course: AgentCourse, masks: Masks) -> AgentCourse:
    """Return the course of the agent with each call identified, without the values that these masks hide."""
    return replace(course, identities=tuple(masks.identity(call.door, call.tool, value) for call, value in _arguments(course)))


def objection(course: AgentCourse, number: int, checked: bool) -> str:
    """Return in one line why a clean run does not count; "" if it counts.

    Args:
        course: The run.
        number: Which clean run it is, from 1.
        checked: Whether the owner has a check for what is done. If not, a run without an effect does not count.
    """
    text = course.texts.get(course.printed or "", "")
    run, printed = f"clean run {number}", last_line(text) or "nothing"
    printed += "".join(f". {todo}" for pattern, todo in ADVICE if pattern.search(text, max(0, len(text) - MOST_SEARCHED)))
    notices = [event for event in of_kind(course.lives, GatewayNoticed) if event.door]
    servers = [
        f"{event.what}; " if event.door == NETWORK else f"the server {event.door}: {event.what}; "
        for event in notices
        if event.door != FUNCTION
    ]
    functions = [f"{event.what}; " for event in notices if event.door == FUNCTION]
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
            how = f"the agent made {plural(len(course.calls), 'request')} to its model"
            how += "" if functions else "; for tools in its own process write functions = []"
        elif not servers and not functions and course.code == 0:
            how = "the agent ignores the config or the addresses that it was given, or has nothing to do, or was told nothing: "
            how += f"its standard input is empty unless {ANSWERS} says what it reads"
        return f"{run}: no call came through the gateway: {''.join(servers + functions)}{how}. It printed last: {printed}"
    if not course.done:
        how = "the check `done` fails" if checked else how
        return f"{run} failed: {''.join(servers)}{how}. It printed last: {printed}"
    begun = dropwhile(lambda reading: not reading.calls, course.readings)  # a server can write when it starts
    around = [row for reading in begun if not reading.calls for row in reading.changed if row.table != SEQUENCES]
    if around:
        return (
            f"{run}: {plural(len(around), 'row')} changed without a call, such as {_place(around[0])}: something goes around "
            f"the gateway, or acts after its answer; give the probe that tool too, by `functions` if it is in the agent's own "
            f"process, leave the table out, or raise `settle`"
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
    return [(call, _value_of(course.texts.get(call.arguments, call.arguments))) for call in course.calls]


def _value_of(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def planned_calls(course: AgentCourse, masks: Masks) -> dict[tuple[str, int], PlannedCall]:
    """Return the calls of a clean run. Each has its identity, and a number that says how often the same call was made
    before."""
    tools = Counter[tuple[str, str]]()
    calls: dict[tuple[str, int], PlannedCall] = {}
    for call, identity, nth in course.own_calls():
        tool = masks.tool(call.door, call.tool)
        tools[call.door, tool] += 1
        rows = sum(len(reading.changed) for reading in course.readings if call.number in reading.calls)
        kind = class_of(call, course)
        name = name_of(call.door, tool, tools[call.door, tool])
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
