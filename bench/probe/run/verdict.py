"""The verdict on a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from bench.common.wording import plural
from bench.probe.run.clean import Clean
from bench.probe.run.comparison import CellComparison, is_done, times_done
from bench.probe.run.course import AgentCourse
from bench.probe.run.volatile import place_of
from bench.record.probe.events import DAMAGE, CellFinding, CellJudged, CellVerdict, FindingKind, GatewayCall
from bench.record.probe.points import StrikePoint


def judge(clean: Clean, course: AgentCourse, call: str = "", point: StrikePoint | None = None, form: str = "") -> CellJudged:
    """Return the verdict on a cell. Without a point it is the verdict on a control. The calls of the course have their
    names."""
    struck = next((made for made in course.calls if made.number == course.struck), None)
    findings = tuple(CellComparison(clean, course, point).findings())
    by: Literal["witness", "journal"] = "witness"
    if struck and struck.call_class == "unseen" and not findings:
        findings, by = tuple(_by_journal(clean, course, struck)), "journal"
    absorbed = 0 if findings else _repeated(clean, course)
    verdict, why = _verdict(clean, course, findings, absorbed, struck, point)
    if by == "journal" and struck and struck.reads is None and verdict in DAMAGE:
        verdict, why, findings = "no_verdict", _unclaimed(findings[0]), ()
    kinds = {planned.name: planned.call_class for planned in clean.calls.values()}
    kind, done, printed = kinds.get(call), course.said_done, course.printed
    return CellJudged(call, point, form, kind, course.struck, verdict, done, printed, findings, why, by, absorbed)


def _unclaimed(finding: CellFinding) -> str:
    """Return why the journal's count of a call gives no verdict. A repeated read does no harm."""
    count = "was not done" if not finding.times else f"was done {finding.times} times"
    return f"{finding.effect} {count}, no witness saw what it does, and its tool does not say whether it only reads"


def _verdict(
    clean: Clean,
    course: AgentCourse,
    findings: Sequence[CellFinding],
    absorbed: int,
    struck: GatewayCall | None,
    point: StrikePoint | None,
) -> tuple[CellVerdict, str]:
    if why := point and _not_applicable(struck, point, findings):
        return "not_applicable", why
    if why := _undecided(clean, course, findings):
        return "no_verdict", why
    late = "" if course.in_time else "it did not end within its limit"
    kinds = {finding.kind for finding in findings}
    for kind in _GRAVEST:
        if kind in kinds and (kind != "lost" or course.said_done):
            return kind, late
    if late:
        return "did_not_end", late
    return "gave_up" if findings else "absorbed" if absorbed else "same", ""


_GRAVEST: tuple[FindingKind, ...] = ("doubled", "extra", "changed", "lost")


def _not_applicable(struck: GatewayCall | None, point: StrikePoint, findings: Sequence[CellFinding]) -> str:
    if struck is None:
        return "the call, its answer or the request after it did not come, so nothing was struck"
    if struck.went == "waits_longer":
        return "it waits longer for its answer than the probe does"
    if point == "twice" and struck.call_class == "unseen" and not findings:
        return "no witness sees what this call does, so nobody can tell whether its tool did it twice"
    return "this read had no earlier answer in this run" if point == "stale" and not struck.given_otherwise else ""


def _undecided(clean: Clean, course: AgentCourse, findings: Sequence[CellFinding]) -> str:
    if course.abandoned:
        return f"the probe made it do more: {course.abandoned}"
    more = max([clean.more, *(reading.more for reading in course.readings)])
    if more and course.readings[-1].digest != clean.digest:
        return f"the stores differ in {more:,} more rows than are compared"
    alone = {place_of(row) for reading in course.readings if not reading.calls for row in reading.changed}
    around = [row for finding in findings for row in finding.rows if place_of(row) in alone]
    return f"{plural(len(around), 'row')} changed without a call in flight: somebody else wrote" if around else ""


def _repeated(clean: Clean, course: AgentCourse) -> int:
    """Return how many more calls with an effect were done than in the clean runs."""
    effects = {identity for effect in clean.effects for identity in effect.identities}
    done, counts = times_done(course), clean.counts
    return sum(max(0, done[identity] - counts[identity]) for identity in effects)


def _by_journal(clean: Clean, course: AgentCourse, struck: GatewayCall) -> Iterator[CellFinding]:
    """Yield how often a call was done that no witness sees, if this differs from the clean runs."""
    if struck.point == "twice":
        return
    identity = course.identities[course.calls.index(struck)]
    times, normal = times_done(course)[identity], clean.counts[identity]
    calls = tuple(call.number for call, same, _ in course.own_calls() if same == identity and is_done(call))
    if times != normal:
        yield CellFinding("doubled" if times > normal else "lost", struck.name, times, (), calls)
