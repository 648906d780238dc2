"""The history of a run in words: its sessions, and for a replay also the sessions of its recording."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.read.analysis.frames import Run
from bench.record.history import History
from bench.record.record import EndpointTrouble, SessionRecord


def history_facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield ("Recording", description) for each recording from which the run's models were replayed."""
    yield from (("Recording", line) for line in dict.fromkeys(line for part in run.recorded for line in _recordings(part)))


def _recordings(run: Run) -> Iterator[str]:
    """Yield a description of each recording. A recording whose history the manifest lacks is only named."""
    histories = run.manifest.recordings
    by_recording: dict[tuple[str, str], list[History]] = {}
    for history in histories.values():
        by_recording.setdefault((history.name, history.digest), []).append(history)
    yield from map(_recording, by_recording.values())
    for model in run.names("model"):
        recording = run.parameters_of(model).recording
        if recording and model not in histories:
            yield f"{recording.name}: what it went through was not kept; replay it again"


def _recording(models: Sequence[History]) -> str:
    """Describe one recording: its sessions and machine, which are the same for all its models, and the errors and reused calls
    of all models."""
    first = models[0]
    facts = [
        f"{first.name}, digest {first.digest}: {sessions_text(first.sessions)}",
        f"{sum(model.superseded for model in models)} records of errors were superseded on resume",
        f"{sum(model.reused for model in models)} of {sum(model.calls for model in models)} calls reused another trial's reply",
        f"machine: {name_values_text(first.machine.shown)}",
        *([f"itself a replay of {first.before.name}"] if first.before else []),
    ]
    return "; ".join(facts)


def sessions_text(sessions: Iterable[SessionRecord]) -> str:
    """Return in words when each session began and ended, how it ended, and what trouble its endpoints had."""
    spans: list[tuple[str, str]] = []  # (beginning, end) of each session; the end is "" until it is found
    for session in sessions:
        if session.what == "began":
            spans.append((session.at, ""))
        elif spans and not spans[-1][1]:
            begun, _ = spans.pop()
            text = "; ".join((session.detail, *map(_trouble_text, session.trouble)))
            spans.append((begun, f"{session.at} ({text})"))
    if not spans:
        return "its sessions are not recorded"
    text = ", ".join(f"{begun} to {ended}" if ended else f"{begun}, no end recorded" for begun, ended in spans)
    return f"{len(spans)} session{'s' if len(spans) > 1 else ''}: {text}"


def _trouble_text(trouble: EndpointTrouble) -> str:
    """Return in words how often an endpoint lowered its limit of calls in flight, and how often and long it paused."""
    lowered = (
        f"the limit of {trouble.limit} calls in flight fell {trouble.fell} times, to {trouble.lowest} at least"
        if trouble.fell
        else ""
    )
    pauses = f"paused {trouble.pauses} times, {trouble.paused:.1f} s in all" if trouble.pauses else ""
    return f"{trouble.endpoint}: {' and '.join(filter(None, (lowered, pauses)))}"


def name_values_text(values: Mapping[str, Any]) -> str:
    """Return names and their values as "name value, name value". A value of None is left out."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items() if value is not None
    }
    return ", ".join(f"{name} {value}" for name, value in texts.items()) or "–"


def sandbox_text(run: Run) -> str:
    """Return in words which guards of the sandbox were missing, and for which packs stored grades were used, so that no code of
    an answer was run. Older runs did not record the guards."""
    sandbox = run.manifest.sandbox
    exceptions = [f"{name} {state}" for name, state in sandbox.items() if state != "in force"]
    if run.manifest.unguarded:
        exceptions.append("models' code was run all the same, as the user said (--unguarded)")
    for stored, graders in run.manifest.stored_grades.items():
        by = ", ".join(f"{scenario} by the grader {digest[:12]}" for scenario, digest in graders.items())
        exceptions.append(f"no answer's code was run: the grades are those stored in {stored} ({by})")
    enclosure = ", in bubblewrap" if "bubblewrap" in sandbox else ""
    return ("; ".join(exceptions) or ("all guards in force" if sandbox else "not recorded")) + enclosure
