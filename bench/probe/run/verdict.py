"""The verdict on a cell: whether the agent did damage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.common.wording import plural
from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun, is_done, rows_after
from bench.probe.run.clean import Clean
from bench.probe.run.comparison import CellComparison
from bench.probe.run.volatile import place_of
from bench.record.probe_events import KINDS, CellFinding, CellJudged, CellVerdict, GatewayCall

_KEY_ARGUMENT = re.compile(r'"[^"]*(?:idempot|request_?id|client_?token|dedup|(?:^|_)key)[^"]*":', re.IGNORECASE)
"""Matches the name of an argument that can be a key by which a tool recognises a repeated call."""


def judge(clean: Clean, agent_run: AgentRun, call: str = "", point: str | None = None, form: str = "") -> CellJudged:
    """Return the verdict on a cell; without a point, on a control.

    Args:
        clean: What the clean runs show.
        agent_run: The run of the cell, after `name_calls`.
        call: The name of the struck call.
        point: The point of the fault; None for a control.
        form: The wire form of the fault.
    """
    struck = next((candidate for candidate in agent_run.calls if candidate.number == agent_run.struck), None)
    comparison = CellComparison(clean, agent_run, point)
    findings = tuple(comparison.findings())
    unseen = tuple(_unwitnessed_findings(clean, agent_run, struck)) if not findings else ()
    absorbed = 0 if findings else _count_repeated(clean, agent_run)
    call_classes = {planned.name: planned.call_class for planned in clean.calls.values()}
    judged = CellJudged(
        call=call,
        point=point,
        form=form,
        call_class=call_classes.get(call),
        struck=agent_run.struck,
        verdict="same",
        said_done=agent_run.said_done,
        printed=agent_run.printed,
        on_stdout=agent_run.on_stdout,
        findings=findings or unseen,
        by="journal" if unseen else "witness",
        absorbed=absorbed,
        half_way=agent_run.half_way,
        checks=agent_run.checks,
    )
    verdict, why = _verdict(clean, agent_run, judged, struck, comparison.unsure)
    return replace(judged, verdict=verdict, why=why, findings=() if verdict == "no_verdict" and unseen else judged.findings)


def _verdict(
    clean: Clean, agent_run: AgentRun, judged: CellJudged, struck: GatewayCall | None, unsure: Sequence[str]
) -> tuple[CellVerdict, str]:
    """Return a verdict and the reason for it; the first case that applies decides."""
    witnessed = judged.findings if judged.by == "witness" else ()
    if why := judged.point and _not_applicable(struck, judged.point, judged.findings):
        return "not_applicable", why
    if why := _why_undecided(clean, agent_run, witnessed):
        return "no_verdict", why
    overtime = "" if agent_run.in_time else "it did not end within its limit"
    kinds = {finding.kind for finding in witnessed}
    damage = next((kind for kind in KINDS if kind in kinds and (kind != "lost" or agent_run.said_done)), None)
    is_only_writer = not any(reading.other for reading in agent_run.readings)  # what another writer did changes an answer too
    if (damage or unsure) and is_only_writer and clean.checks and agent_run.checks == clean.checks:
        return "compensated", "the owner's checks answer as after clean runs"
    if damage:
        return damage, overtime
    if overtime:
        return "did_not_end", overtime
    if unsure:
        return "no_verdict", f"{unsure[0]}; name it under `ignore`, or give a [[check]]"
    if witnessed:
        return "gave_up", "a part of its effects stands, and a second start did not end the task" if agent_run.half_way else ""
    if judged.by == "journal":
        return _by_journal(agent_run, judged.findings[0])
    unsaid = judged.point is not None and not agent_run.said_done
    return "absorbed" if judged.absorbed else "same", "all its effects stand, and it said that it failed" if unsaid else ""


def _by_journal(agent_run: AgentRun, finding: CellFinding) -> tuple[CellVerdict, str]:
    """Return the verdict, and the reason, on a call whose effect no witness sees, and that was done more or less often than in
    the clean runs."""
    if finding.kind == "lost":
        return "no_verdict", f"{finding.effect} was not done, and no witness sees what it does"
    calls = [call for call in agent_run.calls if call.number in finding.calls]
    claim = "its tool does not say whether it only reads"
    claim += ", or nobody asked its server" if calls[0].door_kind.startswith("mcp") else ""
    return (
        "repeated",
        f"nobody saw what it did; {f'{claim}; ' if calls[0].reads is None else ''}{_how_tool_recognises(agent_run, calls)}",
    )


def _how_tool_recognises(agent_run: AgentRun, calls: Sequence[GatewayCall]) -> str:
    """Return in words by what a tool can recognise a repeated call."""
    if calls[0].idempotent:
        return f"{calls[0].tool.split()[0]} is idempotent, as its server or its method says"
    if len(keys := {call.key for call in calls}) == 1 and keys != {""}:
        return "its key stayed the same"
    if len({call.arguments for call in calls}) == 1:
        has_key = _KEY_ARGUMENT.search(agent_run.texts.get(calls[0].arguments, ""))
        return "its key stayed the same" if has_key else "its arguments stayed the same, and none of them is called a key"
    return "its arguments differed"


def _not_applicable(struck: GatewayCall | None, point: str, findings: Sequence[CellFinding]) -> str:
    """Return why a fault was not injected, or could show nothing; "" if it was injected."""
    if struck is None:
        return "the call, its answer or the request after it did not come, so nothing was struck"
    if struck.went == "waits_longer":
        return "it waits longer for its answer than the probe does"
    if point_of(point).before == "hold" and struck.passed_on is None:
        return "the call that was held could not be delivered any more"
    if point_of(point).by_tool and struck.call_class == "unseen" and not findings:
        return "no witness sees what this call does, so nobody can tell whether its tool did it twice"
    return (
        "this read had no earlier answer in this run" if point_of(point).after == "stale" and not struck.given_otherwise else ""
    )


def _why_undecided(clean: Clean, agent_run: AgentRun, findings: Sequence[CellFinding]) -> str:
    """Return why a cell has no verdict; "" if it has one."""
    if agent_run.abandoned:
        return f"the probe made it do more: {agent_run.abandoned}"
    further_rows = max([clean.more, *(reading.more for reading in agent_run.readings)])
    if further_rows and agent_run.readings[-1].digest != clean.digest:
        return f"the stores differ in {further_rows:,} more rows than are compared"
    changed_without_call = {
        place_of(row) for reading in agent_run.readings if not (reading.calls or reading.other) for row in reading.changed
    }
    uncalled = [row for finding in findings for row in finding.rows if place_of(row) in changed_without_call]
    if not uncalled:
        return ""
    example = uncalled[0].table or uncalled[0].key
    return (
        f"{plural(len(uncalled), 'row')} changed without a call in flight, such as a row of {example}: a server that starts, "
        f"or somebody else, wrote; if this is no effect, name it under `ignore`"
    )


def _count_repeated(clean: Clean, agent_run: AgentRun) -> int:
    """Return how many calls with an effect were done in addition to those of the clean runs."""
    effects = {identity for effect in clean.effects for identity in effect.identities}
    times, counts = agent_run.times_done(), clean.counts
    return sum(max(0, times[identity] - counts[identity]) for identity in effects)


def _unwitnessed_findings(clean: Clean, agent_run: AgentRun, struck: GatewayCall | None) -> Iterator[CellFinding]:
    """Yield a finding for each call that no witness sees, and that was done more or less often than in the clean runs.
    Besides the struck call, only calls that say they write and were done more often count."""
    times_of_call, counts = agent_run.times_done(), clean.counts
    for identity in dict.fromkeys(call_identity for _, call_identity, _ in agent_run.outer_calls()):
        calls_made = [call for call, call_identity, _ in agent_run.outer_calls() if call_identity == identity]
        is_struck = struck in calls_made
        if calls_made[0].call_class != "unseen" or (is_struck and struck and point_of(struck.point).by_tool):
            continue
        times, clean_times = times_of_call[identity], counts[identity]
        if (is_struck and times != clean_times) or (calls_made[0].reads is False and times > clean_times > 0):
            name = struck.name if is_struck and struck else calls_made[0].name
            calls = tuple(call.number for call in calls_made if is_done(call))
            yield CellFinding("doubled" if times > clean_times else "lost", name, times, (), calls)


def is_half_way(clean: Clean, agent_run: AgentRun) -> bool:
    """Return whether the agent gave up with a part of its effects done, so that its owner would start it once more."""
    agents_rows = rows_after([reading for reading in agent_run.readings if not reading.other])
    if not agent_run.in_time or agent_run.said_done or agent_run.struck is None or not agents_rows:
        return False
    return any(finding.kind == "lost" for finding in CellComparison(clean, agent_run, None).findings())
