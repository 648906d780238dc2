"""Whether the agents of a run logged about themselves what was booked of them: requests, tokens, tool calls, effects, deaths.

`python tools/reports/own_logs.py results/RUN` prints a line for each system and plan, and each difference. Ends with 1 where
there is one. A command that keeps a log, `log.jsonl` in its folder, appends a line of JSON before and after each request to its
model and each tool call: `{"what": "model" | "tool", "when": "sent" | "got"}`, for a tool its `name`, the HTTP `status` of the
answer (or `ok`), and for a model its `prompt_tokens` and `completion_tokens`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.common.numbers import MAX_COUNT
from bench.record.events import Called, Event, Faulted, Refused
from bench.record.process_events import ProcessEnded, ProcessStarted
from bench.record.reading import read_texts, read_trials
from bench.record.record import TrialRecord, latest
from bench.record.world_events import ProcessDied, ToolCalled

WELL = (200, "ok")
COMMON = frozenset({"wait", "next_event", "list_events", "ask_person"})
"""Tools that every world offers beside the pack's tools. Calls of these are not booked as tool calls."""


@dataclass(frozen=True)
class LoggedTrial:
    """One trial, compared with its agent's log.

    planned          kills that became due
    delivered        kills that happened
    not_applicable   kills that no call could carry
    deaths           processes that were killed
    differences      sentences; empty if log and books agree
    """

    trial: str
    architecture: str
    plan: str
    instance: str
    requests: int
    planned: int
    delivered: int
    not_applicable: int
    deaths: int
    differences: tuple[str, ...]


@dataclass(frozen=True)
class _Life:
    """The events booked for one process, and its log. `point` says where the process was killed, or is ""."""

    ended: ProcessEnded
    calls: tuple[Called, ...]
    refused: int
    tools: tuple[ToolCalled, ...]
    point: str
    log: tuple[Mapping[str, object], ...]

    def noted(self, what: str, when: str) -> list[Mapping[str, object]]:
        return [line for line in self.log if line.get("what") == what and line.get("when") == when]


def logs_of(folder: Path) -> list[LoggedTrial]:
    """Compare each trial whose agent kept a log with that log. Raise ResultsError if the folder is damaged."""
    trials = [trial for trial in latest(read_trials(folder)) if any(event.own_log for event in _ends(trial))]
    texts = read_texts(folder) if trials else {}
    return [kept for trial in trials if (kept := kept_by(trial, texts))]


def _ends(trial: TrialRecord) -> Iterable[ProcessEnded]:
    return (event for event in trial.events if isinstance(event, ProcessEnded))


def kept_by(trial: TrialRecord, texts: Mapping[str, str]) -> LoggedTrial | None:
    """Compare a trial with its agent's log. Return None if the agent is no command or kept no log. Raise KeyError if `texts`
    lacks the log."""
    lives = list(_lives(trial.events, texts))
    if not any(life.log for life in lives):
        return None
    stages = Counter(event.stage for event in trial.events if isinstance(event, Faulted) and event.point == "process")
    deaths = sum(life.ended.why == "crash" for life in lives)
    booked = sum(isinstance(event, ProcessDied) for event in trial.events)
    differences = [f"life {life.ended.life}: {difference}" for life in lives for difference in _differences(life)]
    if stages["planned"] != stages["delivered"] + stages["not_applicable"]:
        differences.append(f"{stages['planned']} kills were due, {stages['delivered']} came")
    if not deaths == booked == stages["delivered"]:
        differences.append(f"{stages['delivered']} kills came, {booked} deaths are booked, {deaths} processes ended by one")
    return LoggedTrial(
        trial=trial.id,
        architecture=trial.architecture,
        plan=trial.plan,
        instance=trial.instance,
        requests=sum(len(life.calls) + life.ended.requests for life in lives),
        planned=stages["planned"],
        delivered=stages["delivered"],
        not_applicable=stages["not_applicable"],
        deaths=deaths,
        differences=tuple(differences),
    )


def _lives(events: Iterable[Event], texts: Mapping[str, str]) -> Iterator[_Life]:
    inside: list[Event] = []
    for event in events:
        if isinstance(event, ProcessStarted):
            inside = []
        elif isinstance(event, ProcessEnded):
            log = texts[event.own_log] if event.own_log else ""
            yield _Life(
                ended=event,
                calls=tuple(event for event in inside if isinstance(event, Called)),
                refused=sum(isinstance(event, Refused) for event in inside),
                tools=tuple(event for event in inside if isinstance(event, ToolCalled)),
                point=next((event.point for event in inside if isinstance(event, ProcessDied)), ""),
                log=tuple(_read(log)),
            )
        else:
            inside.append(event)


def _read(log: str) -> Iterator[Mapping[str, object]]:
    """Yield the log's entries. Skip a line that a kill cut short."""
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _differences(life: _Life) -> Iterator[str]:
    sent = len(life.noted("model", "sent")), sum(str(line.get("name")) not in COMMON for line in life.noted("tool", "sent"))
    booked = len(life.calls) + life.refused, life.ended.requests
    if sent not in _allowed(booked, life):
        yield f"noted {sent[0]} requests to its model and {sent[1]} calls of tools; {booked[0]} and {booked[1]} are booked"
    answered = [call for call in life.calls if call.failure is None]
    noted = [line for line in life.noted("model", "got") if line.get("status") in WELL]
    theirs = tuple(_sum(line.get(name) for line in noted) for name in ("prompt_tokens", "completion_tokens"))
    ours = tuple(_sum(getattr(call, name) for call in answered) for name in ("usage_in", "usage_out"))  # which it was told
    if len(noted) != len(answered):
        yield f"noted {len(noted)} replies of its model; {len(answered)} are booked"
    elif theirs != ours:
        yield f"noted {theirs} tokens in and out; {ours} are booked"
    yield from _of_tools(life)


def _allowed(booked: tuple[int, int], life: _Life) -> Iterable[tuple[int, int]]:
    """Return the (model, tool) counts that the log can hold. If the agent was killed while it sent a request, or a bound ended
    it, the log can hold one request that was not booked."""
    model, tool = booked
    dies_asking = life.point == "recorded" or life.ended.why not in ("", "crash")
    return {booked, (model + 1, tool), (model, tool + 1)} if dies_asking else {booked}


def _of_tools(life: _Life) -> Iterator[str]:
    """Yield each of the world's tools whose successful calls were logged and booked in different numbers."""
    names = {call.tool for call in life.tools}
    noted = Counter(
        name for line in life.noted("tool", "got") if line.get("status") in WELL and (name := str(line.get("name"))) in names
    )
    done = [call for call in life.tools if call.outcome in ("done", "replayed")]
    if life.point == "unrecorded" and done:
        done.pop()
    booked = Counter(call.tool for call in done)
    for tool in sorted(names):
        if noted[tool] != booked[tool]:
            yield f"noted {noted[tool]} calls of {tool} that were answered well; {booked[tool]} are booked"


def _sum(counts: Iterable[object]) -> int:
    return sum(count for count in counts if isinstance(count, int) and abs(count) <= MAX_COUNT)


def main(run: Path) -> int:
    kept = logs_of(run)
    arms: defaultdict[tuple[str, str], list[LoggedTrial]] = defaultdict(list)
    for trial in kept:
        arms[trial.architecture, trial.plan].append(trial)
    for (architecture, plan), trials in sorted(arms.items()):
        planned, delivered, none = (
            sum(getattr(trial, count) for trial in trials) for count in ("planned", "delivered", "not_applicable")
        )
        agree = sum(not trial.differences for trial in trials)
        requests = sum(trial.requests for trial in trials)
        line = f"{agree} of {len(trials)} trials agree on {requests:,} requests"
        print(f"{architecture}/{plan}: {line}; kills planned {planned}, delivered {delivered}, not applicable {none}")
    differences = [
        f"{trial.architecture}/{trial.plan} {trial.instance}: {difference}"
        for trial in kept
        for difference in trial.differences
    ]
    print(*differences, sep="\n", end="\n" if differences else "")
    print(f"{len(kept)} trials with a log of their own, {len(differences)} differences")
    return 1 if differences or not kept else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
