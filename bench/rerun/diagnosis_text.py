"""A diagnosis in words: the finding in a sentence, counts by part, three trials, and advice. The same is available as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from bench.record.events import Called, Event, Faulted
from bench.record.record import TrialRecord
from bench.record.world_events import ToolCalled
from bench.rerun.began_anew import restart_lines
from bench.rerun.diagnose import Diagnosis, EntryDiagnosis, MendedSet, counts_by_verdict
from bench.rerun.mended_parts import PARTS, MendedPart
from bench.rerun.mends import ReplySource
from bench.rerun.rerun import TrialFailure

MAX_SHOWN_TRIALS = 3
"""The most trials that the summary of a run shows."""
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
"""The advice on a part if the task has no world."""
KEYS_ADVICE = "send an Idempotency-Key with each call of a tool that writes, and the same key when it is repeated after a crash"
"""The advice on the commit of an agent that is a command."""
KEYS_WITHOUT_VERSIONS = "the commit was not asked, since a key does not hold an effect to the versions that it was decided on"


def advice_line(part: MendedPart, diagnoses: Sequence[Diagnosis]) -> str:
    """Return a line on what to do about a part that some of the diagnoses blame."""
    blaming = [diagnosis for diagnosis in diagnoses if part in diagnosis.blamed]
    advice = ADVICE[part] if any(diagnosis.in_world for diagnosis in blaming) else ADVICE_OUTSIDE.get(part, ADVICE[part])
    is_command = all(diagnosis.is_outside for diagnosis in blaming)
    return f"What to do about the {part}: {KEYS_ADVICE if part == 'commit' and is_command else advice}."


def command_restart_lines(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Return the restart lines for agents that are commands. Without a restart the list is empty."""
    return restart_lines([diagnosis.record for diagnosis in diagnoses if diagnosis.in_world and diagnosis.is_outside])


def diagnosis_lines(run: str, failed: int, diagnoses: Sequence[Diagnosis]) -> list[str]:
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
    verdicts = {part: verdict for part, verdict in counts_by_verdict(diagnoses).items() if _blaming_count(verdict)}
    for part, verdict in sorted(verdicts.items(), key=lambda row: -_blaming_count(row[1])):
        lines.append(
            f"  {part}: has to be mended for {verdict.get('necessary', 0)} of {len(entries)} entries, "
            f"and is one of several ways for {verdict.get('contributing', 0)}"
        )
    explained = sum(bool(entry.minimal) for entry in entries)
    if cleared := [
        f"{part} (where it was asked)" if {"not asked", "not judged"} & {*verdict} else part
        for part, verdict in counts_by_verdict(diagnoses).items()
        if part not in verdicts and "cleared" in verdict
    ]:
        scope = "" if explained == len(entries) else f" for the {explained} entries that are explained"
        lines.append(f"  not to blame{scope}: {', '.join(cleared)}")
    lines += not_asked_lines(diagnoses)
    lines += [f"  {_trial_line(selected)}" for selected in _trials_to_show(diagnoses)]
    if anew := command_restart_lines(diagnoses):
        lines += anew
    elif worst := most_blamed(diagnoses):
        lines.append(advice_line(worst, diagnoses))
    lines.append(replies_line(diagnoses))
    if undiagnosable := [selected for selected in diagnoses if selected.undiagnosable]:
        lines.append(
            f"{len(undiagnosable)} cannot be diagnosed, such as {undiagnosable[0].record.id}: {undiagnosable[0].undiagnosable}."
        )
    return lines


def finding(which: str, run: str, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the main finding in a sentence: which part is to blame, and how often. `which` names the trials that were
    diagnosed."""
    diagnosable = [diagnosis for diagnosis in diagnoses if not diagnosis.undiagnosable]
    if not diagnosable:
        return f"None of {which} of {run} can be diagnosed."
    part = most_blamed(diagnosable)
    if part is None:
        return f"{which} of {run}: no set of parts explains any of them, so no part is cleared."
    times = sum(part in diagnosis.blamed for diagnosis in diagnosable)
    alone = sum(diagnosis.blamed == {part} and not diagnosis.not_asked for diagnosis in diagnosable)
    and_alone = f", and alone in {alone} of them" if any(not diagnosis.not_asked for diagnosis in diagnosable) else ""
    explained = sum(diagnosis.is_explained for diagnosis in diagnosable)
    return f"{which} of {run}: the {part} is to blame in {times}{and_alone}; {explained} of {len(diagnoses)} are explained."


def most_blamed(diagnoses: Sequence[Diagnosis]) -> MendedPart | None:
    """Return the part that most trials blame; None if no part is blamed."""
    blamed = Counter(chain.from_iterable(_sort(diagnosis.blamed) for diagnosis in diagnoses))
    return max(blamed, key=lambda part: (blamed[part], -PARTS.index(part)), default=None)


def not_asked_lines(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """Return lines on the parts that could not be mended, with the number of trials."""
    counts = Counter(tuple(diagnosis.not_asked) for diagnosis in diagnoses if diagnosis.not_asked)
    return [f"  not asked in {times} of {len(diagnoses)} trials: {', '.join(parts)}" for parts, times in counts.items()]


def replies_line(diagnoses: Sequence[Diagnosis]) -> str:
    """Return a line on the origin of the replies, and in worlds on how many diagnoses are proved."""
    in_worlds = [diagnosis for diagnosis in diagnoses if diagnosis.in_world]
    proved = sum(diagnosis.is_proved for diagnosis in in_worlds)
    explained = sum(diagnosis.is_explained for diagnosis in in_worlds)
    proofs = f"{proved} of {explained} explanations are proved; " if in_worlds else ""
    sources: Counter[ReplySource] = sum((diagnosis.sources for diagnosis in diagnoses), Counter())
    source_counts = ", ".join(
        f"{sources[source]} {source}" for source in ("recorded", "transplanted", "simulated") if sources[source]
    )
    mark = " (SIMULATED)" if sources["simulated"] else ""
    unjudged = sum(diagnosis.unjudged for diagnosis in diagnoses)
    uncleared = " and ".join(part for part, verdict in counts_by_verdict(diagnoses).items() if "not judged" in verdict)
    missing = f"; {unjudged} reruns could not be judged, for want of a recorded reply" if unjudged else ""
    missing += f", so that {uncleared} may be to blame as well" if uncleared else ""
    reruns = sum(diagnosis.reruns for diagnosis in diagnoses)
    return f"{proofs}{reruns} reruns used {source_counts or 'no'} replies{mark}{missing}."


def trial_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis of one trial, failure by failure."""
    record = diagnosis.record
    lines = [f"trial {record.id}: {_place(record)}", f"It ended {TrialFailure.of(record).words}."]
    if diagnosis.undiagnosable:
        return [*lines, f"It cannot be diagnosed: {diagnosis.undiagnosable}."]
    for group in _group_by_diagnosis(diagnosis.entries):
        entry = group[0]
        start = "the beginning on"
        if entry.start.events:
            place = "the first wrong proposal" if entry.in_control else "where the trial left its control"
            start = f"event {entry.start.events} on, {place}: {_event(record, entry.start.events)}"
        lines += [*(same_entry.entry.words for same_entry in group), f"  {verdict_of(entry)} from {start}"]
    lines += [f"The {part} could not be mended: {reason}." for part, reason in diagnosis.not_asked.items()]
    lines += [advice_line(part, [diagnosis]) for part in PARTS if part in diagnosis.blamed]
    return [*lines, *command_restart_lines([diagnosis]), replies_line([diagnosis])]


def _group_by_diagnosis(entries: Sequence[EntryDiagnosis]) -> list[list[EntryDiagnosis]]:
    """Group the failures that have the same diagnosis."""
    groups: dict[object, list[EntryDiagnosis]] = {}
    for entry in entries:
        groups.setdefault((entry.minimal, entry.start, entry.in_control), []).append(entry)
    return list(groups.values())


def verdict_of(entry: EntryDiagnosis) -> str:
    """Return a clause that says which sets of parts remove a failure, with remarks."""
    later = "; mended, the trial goes on to a fault that it had not met, and is harmed by it" if entry.later else ""
    keys = f"; {KEYS_WITHOUT_VERSIONS}" if entry.entry.kind == "stale" and "commit" not in entry.asked else ""
    return f"{_verdict_of(entry)}{later}{keys}"


def _verdict_of(entry: EntryDiagnosis) -> str:
    """Return the clause of `verdict_of` without remarks."""
    if not entry.minimal:
        return "not explained: no set of mended parts removes it without other harm"
    if len(entry.minimal) == 1:
        [only] = entry.minimal
        return f"it is gone when the {_join_parts(only)} {'is' if len(only) == 1 else 'are'} mended"
    necessary = f"; always needed: {_join_parts(entry.necessary)}" if entry.necessary else ""
    return f"it is gone when these are mended: the {', or the '.join(map(_join_parts, entry.minimal))}{necessary}"


def as_json(run: str, failed: int, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the whole diagnosis of a run as JSON."""
    document = {
        "run": run,
        "failed": failed,
        "counts": counts_by_verdict(diagnoses),
        "trials": [_as_json(diagnosis) for diagnosis in diagnoses],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _as_json(diagnosis: Diagnosis) -> dict[str, object]:
    """Return the diagnosis of one trial as JSON values."""
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
    """Return parts in the order of `PARTS`."""
    return [part for part in PARTS if part in parts]


def _join_parts(parts: MendedSet) -> str:
    """Return the names of parts, joined with "and"."""
    return " and ".join(_sort(parts))


def _blaming_count(verdict: Mapping[str, int]) -> int:
    """Return for how many failures a part is necessary or contributes."""
    return verdict.get("necessary", 0) + verdict.get("contributing", 0)


def _trials_to_show(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the trials to show: first one trial for each set of blamed parts, then further trials."""
    diagnosable = [diagnosis for diagnosis in diagnoses if not diagnosis.undiagnosable]
    distinct = list({diagnosis.blamed: diagnosis for diagnosis in reversed(diagnosable)}.values())[::-1]
    return [*distinct, *(diagnosis for diagnosis in diagnosable if diagnosis not in distinct)][:MAX_SHOWN_TRIALS]


def _trial_line(diagnosis: Diagnosis) -> str:
    """Return a line about one trial."""
    main_entry = max(diagnosis.entries, key=lambda entry: bool(entry.minimal))
    further = f", and {len(diagnosis.entries) - 1} more" if len(diagnosis.entries) > 1 else ""
    return f"{diagnosis.record.id[:8]} ({_place(diagnosis.record)}) {main_entry.entry.words}{further}: {verdict_of(main_entry)}"


def _place(record: TrialRecord) -> str:
    """Return the names of a trial: its architecture, scenario, plan and repetition."""
    scenario = f"{record.scenario}/{record.instance}" if record.instance else record.scenario
    return f"{record.architecture} on {scenario}, plan {record.plan}, repetition {record.repetition}"


def _event(record: TrialRecord, number: int) -> str:
    """Describe the event with this number."""
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
