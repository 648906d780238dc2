"""Records of trials, made by hand, for the tests of what is read out of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bench
from bench.common.digests import digest_of
from bench.read.analysis.frames import Run
from bench.record.events import Answered, Called, Cause, Committed, Event, Faulted, Judged, Stage, ViolationKind
from bench.record.files import FORMAT, MANIFEST
from bench.record.manifest import Manifest, manifest_in
from bench.record.messages import StoredMessage
from bench.record.record import Outcome, SessionRecord, TrialRecord
from bench.record.store import RunWriter
from bench.run.trial.verification import KIND_OF
from bench.scenario import Grade

FAULTS = {"none": [], "paper": [{"point": "output", "effect": "missing_field", "subtask": "b", "attempts": [1]}]}


SUBTASKS = {
    "k8s_oomkill": {"a": "anomaly_classification", "b": "root_cause_analysis", "c": "remediation_planning"},
    "multi_file_debugging": {"a": "analysis", "b": "fix_generation", "c": "validation"},
}
"""What a, b and c stand for in the paper's packs, where the paper counts the calls for some subtasks."""


def with_names(event: Event, names: Mapping[str, str]) -> Event:
    """The event, about the subtasks of these names."""
    match event:
        case Called():
            return replace(event, subtasks=tuple(names.get(name, name) for name in event.subtasks))
        case Committed():
            made_from = tuple((names.get(name, name), version, digest) for name, version, digest in event.made_from)
            return replace(event, subtask=names.get(event.subtask, event.subtask), made_from=made_from)
        case Answered():
            return replace(event, versions=tuple((names.get(name, name), version) for name, version in event.versions))
        case Judged() | Faulted():
            return replace(event, subtask=names.get(event.subtask, event.subtask))
    return event


def called(
    number: int,
    *subtasks: str,
    cause: Cause = "first",
    tokens: tuple[int, int] = (100, 20),
    failure: str | None = None,
    attempt: int = 1,
    usage: tuple[int, int] | None = None,
    caused_by: int | None = None,
) -> Called:
    return Called(
        call=number,
        subtasks=subtasks or ("a",),
        attempt=attempt,
        try_=1,
        cause=cause,
        started=float(number - 1),
        seconds=1.0,
        seed=number,
        messages=(StoredMessage("user", "d1"),),
        reply=None if failure else "d2",
        delivered=None,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        usage_in=usage[0] if usage else None,
        usage_out=usage[1] if usage else None,
        finish=None if failure else "stop",
        failure=failure,
        caused_by=caused_by,
    )


def accepted(call: int, subtask: str) -> Judged:
    return Judged((call,), subtask, accepted=True)


def rejected(
    call: int, subtask: str, reason: str = "schema", detail: str = "", violation: ViolationKind | None = None
) -> Judged:
    """A rejection, of the kind that its reason has unless another is given."""
    return Judged((call,), subtask, False, reason, detail, violation=violation or KIND_OF[reason])


def undamaged(call: int, subtask: str, fault: int = 1, reason: str = "") -> Judged:
    """The verdict on what the fault struck; without a reason it would have been accepted."""
    violation = KIND_OF[reason] if reason else None
    return Judged((call,), subtask, not reason, reason, view="undamaged", fault=fault, violation=violation)


def committed(call: int | None, subtask: str, version: int = 1, made_from: Sequence[tuple[str, int]] = ()) -> Committed:
    calls = () if call is None else (call,)
    return Committed(subtask, version, calls, True, "d", tuple((name, number, "d") for name, number in made_from))


def fault(*stages: Stage, number: int = 1, call: int = 2, subtask: str = "b", point: str = "output") -> list[Event]:
    return [Faulted(number, point, "missing_field", subtask, 1, stage, call) for stage in stages]


def smooth() -> list[Event]:
    """Two subtasks, b made from a, nothing goes wrong."""
    return [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(called(2, "b"), accepted(2, "b"), committed(2, "b", made_from=[("a", 1)])),
        Answered((("a", 1), ("b", 1))),
    ]


def recovered(retry: int = 130) -> list[Event]:
    """As before, but b is struck, rejected and asked for again."""
    return [
        *(called(1, "a"), accepted(1, "a"), committed(1, "a")),
        *(*fault("planned", "delivered"), called(2, "b"), undamaged(2, "b"), rejected(2, "b"), *fault("detected")),
        *(called(3, "b", cause="retry", tokens=(retry, 20), attempt=2, caused_by=7), accepted(3, "b")),
        committed(3, "b", made_from=[("a", 1)]),
        Answered((("a", 1), ("b", 1))),
        *fault("recovered"),
    ]


def trial(
    architecture: str = "static",
    plan: str = "none",
    repetition: int = 1,
    outcome: Outcome = "solved",
    events: Sequence[Event] | None = None,
    **values: Any,
) -> TrialRecord:
    """A record whose tokens are those of its calls, where no others are given. In a pack of the paper, a, b and c are the names
    of three of its subtasks."""
    if events is None:
        events = smooth() if plan == "none" else recovered(100 + 10 * repetition)
    events = [with_names(event, SUBTASKS.get(values.get("scenario", "").partition(":")[0], {})) for event in events]
    spent = sum(event.tokens_in + event.tokens_out for event in events if isinstance(event, Called))
    given: dict[str, Any] = {
        "id": id_of("-".join([architecture, plan, str(repetition), values.get("scenario", "demo"), values.get("model", "m")])),
        "scenario": "demo",
        "model": "m",
        "reason": "",
        "grade": Grade(outcome == "solved", float(outcome == "solved"), {}) if outcome in ("solved", "wrong") else None,
        "tokens": spent,
        "api_seconds": 2.0 + 0.1 * repetition,
        "waiting_seconds": 0.5,
        "framework_seconds": 0.001,
        "timing": "simulated",
    }
    return TrialRecord(
        architecture=architecture,
        plan=plan,
        repetition=repetition,
        outcome=outcome,
        events=tuple(events),
        **{**given, **values},
    )


def experiment(
    architectures: Iterable[str] = ("monolithic", "static"), plans: Iterable[str] = ("none", "paper"), repetitions: int = 3
) -> list[TrialRecord]:
    return [
        trial(architecture, plan, repetition)
        for repetition in range(1, repetitions + 1)
        for plan in plans
        for architecture in architectures
    ]


def manifest_of(records: Sequence[TrialRecord]) -> Manifest:
    names = {
        key: list(dict.fromkeys(getattr(record, field) for record in records)) or ["nothing-yet"]
        for key, field in (
            *(("scenarios", "scenario"), ("architectures", "architecture")),
            *(("models", "model"), ("plans", "plan")),
        )
    }
    value = {
        "format": FORMAT,
        "name": "by-hand",
        "config": {
            **names,
            "name": "by-hand",
            "seed": 1,
            "max_attempts": 3,
            "repetitions": max((record.repetition for record in records), default=1),
            "plan": {plan: {"faults": FAULTS.get(plan, [])} for plan in names["plans"]},
        },
        "code": {"version": "0.1.0", "commit": "0123456789abcdef", "dirty": False, "digest": "c0de"},
        "packages": {"python": "3.11"},
        "machine": {"system": "Linux"},
        "models": {model: {"kind": "simulated"} for model in names["models"]},
        "scenarios": {scenario: _pack(scenario, records) for scenario in names["scenarios"]},
    }
    return manifest_from(value)


def _pack(scenario: str, records: Sequence[TrialRecord]) -> dict[str, Any]:
    called = (
        event for record in records if record.scenario == scenario for event in record.events if isinstance(event, Called)
    )
    return {
        "asked": "5cede5cede5c",
        "variant": "small",
        "instances": list(dict.fromkeys(record.instance for record in records if record.scenario == scenario)) or [""],
        "subtasks": sorted({name for event in called for name in event.subtasks}),
        "baseline": {"solved": 0, "of": 1, "score": 0.125},
    }


def id_of(name: str) -> str:
    """The id in a file of the trial that a test calls so."""
    return name if re.fullmatch("[0-9a-f]{20}", name) else digest_of(name)


def write_run(folder: Path, records: Sequence[TrialRecord]) -> Path:
    """A run's folder with these records, in this order. An id that is no digest, as a test reads it better, becomes its own."""
    writer = RunWriter(folder, manifest_of(records))
    writer.note(SessionRecord("2026-01-02T03:04:05+00:00", "began", "some trials"))
    for record in records:
        writer.add(replace(record, id=id_of(record.id)), {})
    writer.note(SessionRecord("2026-01-02T04:04:05+00:00", "ended", "complete"))
    writer.close()
    return folder


def run_of(folder: Path, records: Sequence[TrialRecord]) -> Run:
    return bench.load_run(write_run(folder, records))


def manifest_from(value: Mapping[str, Any]) -> Manifest:
    return manifest_in(json.dumps(value).encode())


def with_manifest(run: Run, **changes: Any) -> Run:
    """The run with these keys of its manifest changed, as its file would have them."""
    return replace(run, manifest=manifest_from({**json.loads(run.manifest.text), **changes}))


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def config_in(folder: Path) -> dict[str, Any]:
    """The config as the manifest's file has it."""
    config: dict[str, Any] = json.loads((folder / MANIFEST).read_text())["config"]
    return config


def write_with_texts(folder: Path, records: Sequence[TrialRecord], texts: Mapping[str, str]) -> Run:
    """`texts` stand for the short names that records by hand have in the digests' places."""
    digests = {name: digest_of(text) for name, text in texts.items()}
    writer = RunWriter(folder, manifest_of(records))
    for record in records:
        events = tuple(named(event, digests) for event in record.events)
        writer.add(replace(record, id=id_of(record.id), events=events), {digests[name]: text for name, text in texts.items()})
    writer.close()
    return bench.load_run(folder)


def named(event: Event, digests: Mapping[str, str]) -> Event:
    if not isinstance(event, Called):
        return event
    messages = tuple(replace(message, content=digests.get(message.content, message.content)) for message in event.messages)
    reply, delivered = (digests.get(name or "", name) for name in (event.reply, event.delivered))
    return replace(event, messages=messages, reply=reply, delivered=delivered)
