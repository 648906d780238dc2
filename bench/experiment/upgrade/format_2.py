"""From format 2 to format 3: other words, links between events, responses in a file of their own.

What format 2 did not keep is inferred where its events tell it (which rejection caused a retry) and left open where they do not
(what would have been said of a reply that a fault struck): `bench.experiment.upgrade.replay` fills that in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.experiment.record import ResponseRecord, TrialRecord, arm_of
from bench.experiment.recording import settings_digest
from bench.runtime.events import StoredMessage

STAGES = {"moot": "not_applicable", "seen": "detected", "unnoticed": "undetected"}
PARAMETERS = {"ask_once": "cache", "asked_in": "cache_from"}

Json = Any


def manifest(old: Mapping[str, Json]) -> dict[str, Json]:
    """The manifest of format 3. It keeps the old digests, which no pack and no code has now."""
    config = {("study" if key == "experiment" else key): value for key, value in old["config"].items()}
    carried = {key: value for key, value in old.items() if key not in ("format", "ruler", "config", "models", "scenarios")}
    return {
        "format": 3,
        **carried,
        "upgraded_from": 2,
        "config": config,
        "models": {name: _parameters(parameters) for name, parameters in old["models"].items()},
        "architectures": {},
        "scenarios": {name: _pack(pack) for name, pack in old["scenarios"].items()},
        "tokenizer": old["ruler"],
    }


def trial(old: Mapping[str, Json]) -> dict[str, Json]:
    """A trial's record of format 3, as JSON."""
    events = [_event(event) for event in old["events"]]
    return {**old, "instance": "", "traceback": None, "events": [_linked(number, events) for number in range(len(events))]}


def responses(trial: TrialRecord, models: Mapping[str, Mapping[str, Json]]) -> Iterator[ResponseRecord]:
    """What the trial's model did, read off its calls; `models` are the manifest's. A request that a fault held back is none."""
    asked: Counter[tuple[tuple[StoredMessage, ...], int]] = Counter()
    answered: Counter[tuple[tuple[StoredMessage, ...], int]] = Counter()
    for call in trial.events:
        if isinstance(call, dict) or call.kind != "call" or not call.asked:
            continue
        sent = (call.messages, call.seed)
        asked[sent] += 1
        parameters = models.get(trial.model, {})
        failed = call.finish is None and call.failure is not None
        yield ResponseRecord(
            model=trial.model,
            settings=settings_digest(parameters.get("models", {}).get(call.by, parameters)),
            messages=call.messages,
            seed=call.seed,
            occurrence=asked[sent],
            answers=answered[sent],
            scenario=trial.scenario,
            instance=trial.instance,
            repetition=trial.repetition,
            arm=arm_of(trial.architecture, trial.plan),
            seconds=round(call.seconds - call.delay, 9),
            reply=None if failed else call.reply,
            finish=call.finish or "stop",
            usage_in=call.usage_in,
            usage_out=call.usage_out,
            by=call.by,
            reused=call.reused,
            failure=call.failure or "" if failed else "",
            detail=call.detail if failed else "",
            retry_after=call.retry_after,
            partial=call.reply if failed else None,
        )
        answered[sent] += not failed


def _parameters(old: Mapping[str, Json]) -> dict[str, Json]:
    new = {PARAMETERS.get(key, key): value for key, value in old.items()}
    if "models" in new:
        new["models"] = {name: _parameters(parameters) for name, parameters in new["models"].items()}
    return new


def _pack(old: Mapping[str, Json]) -> dict[str, Json]:
    baseline = old.get("baseline")
    return {
        "variant": old["size"],
        "instances": [""],
        "asked": old["digest"],
        "graded_by": old["digest"],
        **{key: value for key, value in old.items() if key not in ("size", "digest", "baseline")},
        "baseline": baseline and {"solved": int(baseline["correct"]), "of": 1, "score": baseline["score"]},
    }


def _event(old: Mapping[str, Json]) -> dict[str, Json]:
    event = dict(old)
    match event["kind"]:
        case "call":
            event["messages"] = [{"role": role, "content": content} for role, content in event["messages"]]
        case "fault":
            event["stage"] = STAGES.get(event["stage"], event["stage"])
        case "verdict" | "commit":
            call = event.pop("call")
            event["calls"] = [] if call is None else [call]
    return event


def _linked(number: int, events: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """An event with its link: a call that was made again names the failure before it."""
    event = events[number]
    if event["kind"] != "call" or event["cause"] == "first":
        return event
    before = list(enumerate(events[:number]))
    return {**event, "caused_by": _lost_before(event, before) or _rejected_before(event, before)}


def _lost_before(call: Mapping[str, Json], before: Sequence[tuple[int, dict[str, Json]]]) -> int | None:
    """The failed try of the same attempt, where this is the next one."""
    for number, event in reversed(before):
        if event["kind"] == "call" and event["subtasks"] == call["subtasks"] and event["attempt"] == call["attempt"]:
            return number if call["try_"] > 1 and call["cause"] == "retry" else None
    return None


def _rejected_before(call: Mapping[str, Json], before: Sequence[tuple[int, dict[str, Json]]]) -> int | None:
    """The last rejection: of these subtasks for a retry or a judge call, of any for a rerun."""
    for number, event in reversed(before):
        own = event.get("subtask") in call["subtasks"] or call["cause"] == "rerun"
        if event["kind"] == "verdict" and not event["accepted"] and own:
            return number
    return None
