"""The verdict on a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.common.wording import plural
from bench.probe.points import POINTS
from bench.probe.run.clean import Clean
from bench.probe.run.comparison import CellComparison, is_by_tool, is_done, times_done
from bench.probe.run.course import AgentCourse, rows_after
from bench.probe.run.volatile import place_of
from bench.record.probe_events import KINDS, CellFinding, CellJudged, CellVerdict, GatewayCall

_KEY = re.compile(r'"[^"]*(?:idempot|request_?id|client_?token|dedup|(?:^|_)key)[^"]*":', re.IGNORECASE)
"""An argument that can be a key by which a tool knows a call again."""


def judge(clean: Clean, course: AgentCourse, call: str = "", point: str | None = None, form: str = "") -> CellJudged:
    """Return the verdict on a cell. Without a point it is the verdict on a control. The calls of the course have their
    names."""
    struck = next((made for made in course.calls if made.number == course.struck), None)
    comparison = CellComparison(clean, course, point)
    findings = tuple(comparison.findings())
    unseen = tuple(_unseen(clean, course, struck)) if not findings else ()
    absorbed = 0 if findings else _count_repeated(clean, course)
    kinds = {planned.name: planned.call_class for planned in clean.calls.values()}
    judged = CellJudged(
        call=call,
        point=point,
        form=form,
        call_class=kinds.get(call),
        struck=course.struck,
        verdict="same",
        said_done=course.said_done,
        printed=course.printed,
        on_stdout=course.on_stdout,
        findings=findings or unseen,
        by="journal" if unseen else "witness",
        absorbed=absorbed,
        half_way=course.half_way,
        checks=course.checks,
    )
    verdict, why = _verdict(clean, course, judged, struck, comparison.unsure)
    return replace(judged, verdict=verdict, why=why, findings=() if verdict == "no_verdict" and unseen else judged.findings)


def _verdict(
    clean: Clean, course: AgentCourse, judged: CellJudged, struck: GatewayCall | None, unsure: Sequence[str]
) -> tuple[CellVerdict, str]:
    seen = judged.findings if judged.by == "witness" else ()
    if why := judged.point and _not_applicable(struck, judged.point, judged.findings):
        return "not_applicable", why
    if why := _why_undecided(clean, course, seen):
        return "no_verdict", why
    late = "" if course.in_time else "it did not end within its limit"
    kinds = {finding.kind for finding in seen}
    damage = next((kind for kind in KINDS if kind in kinds and (kind != "lost" or course.said_done)), None)
    alone = not any(reading.other for reading in course.readings)  # what another writer did changes an answer too
    if (damage or unsure) and alone and clean.checks and course.checks == clean.checks:
        return "compensated", "the owner's checks answer as after clean runs"
    if damage:
        return damage, late
    if late:
        return "did_not_end", late
    if unsure:
        return "no_verdict", f"{unsure[0]}; name it under `ignore`, or give a [[check]]"
    if seen:
        return "gave_up", "a part of its effects stands, and a second start did not end the task" if course.half_way else ""
    if judged.by == "journal":
        return _by_journal(course, judged.findings[0])
    unsaid = judged.point is not None and not course.said_done
    return "absorbed" if judged.absorbed else "same", "all its effects stand, and it said that it failed" if unsaid else ""


def _by_journal(course: AgentCourse, finding: CellFinding) -> tuple[CellVerdict, str]:
    """Return the verdict on a call that no witness sees, and that was done another number of times than in clean runs."""
    if finding.kind == "lost":
        return "no_verdict", f"{finding.effect} was not done, and no witness sees what it does"
    made = [call for call in course.calls if call.number in finding.calls]
    claim = "its tool does not say whether it only reads"
    claim += ", or nobody asked its server" if made[0].door_kind.startswith("mcp") else ""
    return "repeated", f"nobody saw what it did; {f'{claim}; ' if made[0].reads is None else ''}{_same_key(course, made)}"


def _same_key(course: AgentCourse, made: Sequence[GatewayCall]) -> str:
    """Return what lets a tool know a call again that was made more than once."""
    if made[0].idempotent:
        return f"{made[0].tool.split()[0]} is idempotent, as its server or its method says"
    if len(keys := {call.key for call in made}) == 1 and keys != {""}:
        return "its key stayed the same"
    if len({call.arguments for call in made}) == 1:
        has_key = _KEY.search(course.texts.get(made[0].arguments, ""))
        return "its key stayed the same" if has_key else "its arguments stayed the same, and none of them is called a key"
    return "its arguments differed"


def _not_applicable(struck: GatewayCall | None, point: str, findings: Sequence[CellFinding]) -> str:
    if struck is None:
        return "the call, its answer or the request after it did not come, so nothing was struck"
    if struck.went == "waits_longer":
        return "it waits longer for its answer than the probe does"
    if POINTS[point].before == "hold" and struck.passed_on is None:
        return "the call that was held could not be delivered any more"
    if is_by_tool(point) and struck.call_class == "unseen" and not findings:
        return "no witness sees what this call does, so nobody can tell whether its tool did it twice"
    return (
        "this read had no earlier answer in this run" if POINTS[point].after == "stale" and not struck.given_otherwise else ""
    )


def _why_undecided(clean: Clean, course: AgentCourse, findings: Sequence[CellFinding]) -> str:
    if course.abandoned:
        return f"the probe made it do more: {course.abandoned}"
    more = max([clean.more, *(reading.more for reading in course.readings)])
    if more and course.readings[-1].digest != clean.digest:
        return f"the stores differ in {more:,} more rows than are compared"
    alone = {place_of(row) for reading in course.readings if not (reading.calls or reading.other) for row in reading.changed}
    around = [row for finding in findings for row in finding.rows if place_of(row) in alone]
    if not around:
        return ""
    of = around[0].table or around[0].key
    return (
        f"{plural(len(around), 'row')} changed without a call in flight, such as a row of {of}: a server that starts, or "
        f"somebody else, wrote; if this is no effect, name it under `ignore`"
    )


def _count_repeated(clean: Clean, course: AgentCourse) -> int:
    """Return how many more calls with an effect were done than in the clean runs."""
    effects = {identity for effect in clean.effects for identity in effect.identities}
    done, counts = times_done(course), clean.counts
    return sum(max(0, done[identity] - counts[identity]) for identity in effects)


def _unseen(clean: Clean, course: AgentCourse, struck: GatewayCall | None) -> Iterator[CellFinding]:
    """Yield how often calls were done that no witness sees, if this differs from the clean runs. Beside the struck call these
    are the calls that claim to write and were done more often."""
    done, counts = times_done(course), clean.counts
    for identity in dict.fromkeys(same for _, same, _ in course.own_calls()):
        made = [call for call, same, _ in course.own_calls() if same == identity]
        is_struck = struck in made
        if made[0].call_class != "unseen" or (is_struck and struck and is_by_tool(struck.point)):
            continue
        times, normal = done[identity], counts[identity]
        if (is_struck and times != normal) or (made[0].reads is False and times > normal > 0):
            name = struck.name if is_struck and struck else made[0].name
            calls = tuple(call.number for call in made if is_done(call))
            yield CellFinding("doubled" if times > normal else "lost", name, times, (), calls)


def is_half_way(clean: Clean, course: AgentCourse) -> bool:
    """Return whether the agent gave up while a part of what it does stands, so that its owner would start it once more."""
    by_the_agent = rows_after([reading for reading in course.readings if not reading.other])
    if not course.in_time or course.said_done or course.struck is None or not by_the_agent:
        return False
    return any(finding.kind == "lost" for finding in CellComparison(clean, course, None).findings())
