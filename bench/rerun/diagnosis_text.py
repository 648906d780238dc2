"""A diagnosis in words: the finding in a sentence, counts by part, three trials, and advice. The same is available as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from bench.record.events import Called, Event, Faulted
from bench.record.record import TrialRecord
from bench.record.world_events import ToolCalled
from bench.rerun.began_anew import began_anew_lines
from bench.rerun.diagnose import Diagnosis, EntryDiagnosis, MendedSet, counts
from bench.rerun.mended_parts import PARTS, MendedPart
from bench.rerun.mends import ReplySource
from bench.rerun.rerun import TrialFailure

SHOWN = 3
"""Trials that a first screen shows."""
ADVICE: Mapping[MendedPart, str] = {
    "proposer": "ask another model, or tell this model more; bench explain diverge says what another model would change",
    "verifier": 'check each proposal against the policy and the rules before it takes effect (strength = "business_rule")',
    "commit": 'give each effect a key and the versions that were read (commit = "compare_and_swap")',
    "signal": 'call a rejection a rejection, and give its reason (signal = "typed")',
    "pattern": "give the pattern its remedies (remedies = true); docs/patterns.md says what they are",
}
ADVICE_OUTSIDE: Mapping[MendedPart, str] = {
    "verifier": "hold its outputs against more than their form, by a check of the pack or a second reply; the mended verifier "
    "knew which outputs a fault had struck",
    "signal": 'tell the model why its answer was rejected (repair = "reason")',
}
"""What to do outside of a world."""
WITH_KEYS = "send an Idempotency-Key with each call of a tool that writes, and the same key when it is repeated after a crash"
"""What to do about the commit of an agent that is a command."""
KEYS_ALONE = "the commit was not asked, since a key does not hold an effect to the versions that it was decided on"


def advice_line(part: MendedPart, diagnoses: Sequence[Diagnosis]) -> str:
    """Return a line on what to do about a part that some of the diagnoses blame."""
    blaming = [each for each in diagnoses if part in each.blamed]
    advice = ADVICE[part] if any(each.in_world for each in blaming) else ADVICE_OUTSIDE.get(part, ADVICE[part])
    is_command = all(each.is_outside for each in blaming)
    return f"What to do about the {part}: {WITH_KEYS if part == 'commit' and is_command else advice}."


def anew_lines(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Return lines on how often agents that are commands began anew, and on what to change. Empty if none did."""
    return began_anew_lines([each.record for each in diagnoses if each.in_world and each.is_outside])


def lines_of(run: str, failed: int, diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Return the diagnosis of a run in at most 12 lines.

    Args:
        run: Its name.
        failed: How many of its trials failed.
        diagnoses: The failed trials that were diagnosed.
    """
    if not diagnoses:
        return [f"No trial of {run} failed."]
    which = f"{failed} failed trials" if failed == len(diagnoses) else f"{len(diagnoses)} of the {failed} failed trials"
    entries = [entry for diagnosis in diagnoses for entry in diagnosis.entries]
    lines = [finding(which, run, diagnoses)]
    verdicts = {part: verdict for part, verdict in counts(diagnoses).items() if _share(verdict)}
    for part, verdict in sorted(verdicts.items(), key=lambda row: -_share(row[1])):
        lines.append(
            f"  {part}: has to be mended for {verdict.get('necessary', 0)} of {len(entries)} entries, "
            f"and is one of several ways for {verdict.get('contributing', 0)}"
        )
    explained = sum(bool(entry.minimal) for entry in entries)
    if cleared := [
        f"{part} (where it was asked)" if {"not asked", "not judged"} & {*verdict} else part
        for part, verdict in counts(diagnoses).items()
        if part not in verdicts and "cleared" in verdict
    ]:
        where = "" if explained == len(entries) else f" for the {explained} entries that are explained"
        lines.append(f"  not to blame{where}: {', '.join(cleared)}")
    lines += not_asked_lines(diagnoses)
    lines += [f"  {_trial_line(each)}" for each in _select(diagnoses)]
    if anew := anew_lines(diagnoses):
        lines += anew
    elif worst := most_blamed(diagnoses):
        lines.append(advice_line(worst, diagnoses))
    lines.append(replies_line(diagnoses))
    if left := [each for each in diagnoses if each.undiagnosable]:
        lines.append(f"{len(left)} cannot be diagnosed, such as {left[0].record.id}: {left[0].undiagnosable}.")
    return lines


def finding(which: str, run: str, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the finding in a sentence."""
    looked_into = [each for each in diagnoses if not each.undiagnosable]
    if not looked_into:
        return f"None of {which} of {run} can be diagnosed."
    part = most_blamed(looked_into)
    if part is None:
        return f"{which} of {run}: no set of parts explains any of them, so no part is cleared."
    times = sum(part in each.blamed for each in looked_into)
    alone = sum(each.blamed == {part} and not each.not_asked for each in looked_into)
    and_alone = f", and alone in {alone} of them" if any(not each.not_asked for each in looked_into) else ""
    explained = sum(each.is_explained for each in looked_into)
    return f"{which} of {run}: the {part} is to blame in {times}{and_alone}; {explained} of {len(diagnoses)} are explained."


def most_blamed(diagnoses: Sequence[Diagnosis]) -> MendedPart | None:
    """Return the part that most trials blame; None if no part is blamed."""
    blamed = Counter(chain.from_iterable(_sort(each.blamed) for each in diagnoses))
    return max(blamed, key=lambda part: (blamed[part], -PARTS.index(part)), default=None)


def not_asked_lines(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Return lines on the parts that could not be mended, with the number of trials."""
    asked_nothing: dict[tuple[str, ...], int] = Counter(tuple(each.not_asked) for each in diagnoses if each.not_asked)
    return [f"  not asked in {times} of {len(diagnoses)} trials: {', '.join(parts)}" for parts, times in asked_nothing.items()]


def replies_line(diagnoses: Sequence[Diagnosis]) -> str:
    """Return a line on the origin of the replies, and in worlds on how many diagnoses are proved."""
    in_worlds = [each for each in diagnoses if each.in_world]
    proved, explained = sum(each.is_proved for each in in_worlds), sum(each.is_explained for each in in_worlds)
    proofs = f"{proved} of {explained} explanations are proved; " if in_worlds else ""
    sources: Counter[ReplySource] = sum((each.sources for each in diagnoses), Counter())
    whose = ", ".join(f"{sources[source]} {source}" for source in ("recorded", "transplanted", "simulated") if sources[source])
    mark = " (SIMULATED)" if sources["simulated"] else ""
    unjudged = sum(each.unjudged for each in diagnoses)
    uncleared = " and ".join(part for part, verdict in counts(diagnoses).items() if "not judged" in verdict)
    missing = f"; {unjudged} reruns could not be judged, for want of a recorded reply" if unjudged else ""
    missing += f", so that {uncleared} may be to blame as well" if uncleared else ""
    reruns = sum(each.reruns for each in diagnoses)
    return f"{proofs}{reruns} reruns used {whose or 'no'} replies{mark}{missing}."


def trial_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis of one trial, failure by failure."""
    record = diagnosis.record
    lines = [f"trial {record.id}: {_place(record)}", f"It ended {TrialFailure.of(record).words}."]
    if diagnosis.undiagnosable:
        return [*lines, f"It cannot be diagnosed: {diagnosis.undiagnosable}."]
    for alike in _alike(diagnosis.entries):
        entry = alike[0]
        since = f"event {entry.start.events} on, {_why(entry)}: {_event(record, entry.start.events)}"
        since = since if entry.start.events else "the beginning on"
        lines += [*(each.entry.words for each in alike), f"  {verdict_of(entry)} from {since}"]
    lines += [f"The {part} could not be mended: {why}." for part, why in diagnosis.not_asked.items()]
    lines += [advice_line(part, [diagnosis]) for part in PARTS if part in diagnosis.blamed]
    return [*lines, *anew_lines([diagnosis]), replies_line([diagnosis])]


def _alike(entries: Sequence[EntryDiagnosis]) -> list[list[EntryDiagnosis]]:
    """Group the failures that have the same diagnosis."""
    groups: dict[object, list[EntryDiagnosis]] = {}
    for entry in entries:
        groups.setdefault((entry.minimal, entry.start, entry.in_control), []).append(entry)
    return list(groups.values())


def _why(entry: EntryDiagnosis) -> str:
    """Return the reason why mending starts at that event."""
    return "the first wrong proposal" if entry.in_control else "where the trial left its control"


def verdict_of(entry: EntryDiagnosis) -> str:
    """Return in words which sets of parts explain a failure."""
    later = "; mended, the trial goes on to a fault that it had not met, and is harmed by it" if entry.later else ""
    keys = f"; {KEYS_ALONE}" if entry.entry.kind == "stale" and "commit" not in entry.asked else ""
    return f"{_verdict_of(entry)}{later}{keys}"


def _verdict_of(entry: EntryDiagnosis) -> str:
    if not entry.minimal:
        return "not explained: no set of mended parts removes it without other harm"
    if len(entry.minimal) == 1:
        [only] = entry.minimal
        return f"it is gone when the {_and(only)} {'is' if len(only) == 1 else 'are'} mended"
    necessary = f"; always needed: {_and(entry.necessary)}" if entry.necessary else ""
    return f"it is gone when these are mended: the {', or the '.join(map(_and, entry.minimal))}{necessary}"


def as_json(run: str, failed: int, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the whole diagnosis of a run as JSON."""
    document = {"run": run, "failed": failed, "counts": counts(diagnoses), "trials": [_as_json(each) for each in diagnoses]}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _as_json(diagnosis: Diagnosis) -> dict[str, object]:
    record = diagnosis.record
    return {
        **{name: getattr(record, name) for name in ("scenario", "instance", "architecture", "model", "plan", "repetition")},
        "trial": record.id,
        "undiagnosable": diagnosis.undiagnosable,
        "is_explained": diagnosis.is_explained,
        "is_proved": diagnosis.is_proved,
        "blamed": _sort(diagnosis.blamed),
        "not_asked": diagnosis.not_asked,
        "replies": dict(diagnosis.sources),
        "reruns": diagnosis.reruns,
        "unjudged": diagnosis.unjudged,
        "entries": [
            {
                "kind": entry.entry.kind,
                "what": entry.entry.what,
                "from_event": entry.start.events,
                "in_control": entry.in_control,
                "minimal": [_sort(mended) for mended in entry.minimal],
                "asked": list(entry.asked),
                "necessary": _sort(entry.necessary),
                "contributing": _sort(entry.contributing),
                "unjudged": _sort(entry.unjudged),
                "later_harm": entry.later,
            }
            for entry in diagnosis.entries
        ],
    }


def _sort(parts: MendedSet) -> list[MendedPart]:
    return [part for part in PARTS if part in parts]


def _and(parts: MendedSet) -> str:
    return " and ".join(_sort(parts))


def _share(verdict: Mapping[str, int]) -> int:
    return verdict.get("necessary", 0) + verdict.get("contributing", 0)


def _select(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the trials to show: first one trial for each set of blamed parts, then further trials."""
    diagnosable = [each for each in diagnoses if not each.undiagnosable]
    unlike = list({each.blamed: each for each in reversed(diagnosable)}.values())[::-1]
    return [*unlike, *(each for each in diagnosable if each not in unlike)][:SHOWN]


def _trial_line(diagnosis: Diagnosis) -> str:
    first = max(diagnosis.entries, key=lambda entry: bool(entry.minimal))
    more = f", and {len(diagnosis.entries) - 1} more" if len(diagnosis.entries) > 1 else ""
    return f"{diagnosis.record.id[:8]} ({_place(diagnosis.record)}) {first.entry.words}{more}: {verdict_of(first)}"


def _place(record: TrialRecord) -> str:
    where = f"{record.scenario}/{record.instance}" if record.instance else record.scenario
    return f"{record.architecture} on {where}, plan {record.plan}, repetition {record.repetition}"


def _event(record: TrialRecord, number: int) -> str:
    event: Event | None = record.events[number] if number < len(record.events) else None
    match event:
        case Faulted():
            return f"{event.effect} strikes {event.subtask}"
        case ToolCalled():
            return f"{event.tool} for {event.effect or 'nothing'} is {event.outcome}"
        case Called():
            return f"a call for {' + '.join(event.subtasks)}"
        case None:
            return "its end"
        case _:
            return type(event).__name__
