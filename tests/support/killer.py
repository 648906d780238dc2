"""An endpoint that counts what it answered and kills who asks, and what is compared of runs that were killed."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands import Started
from experiment_runs import timeless
from scripted_server import Step, completion, hang, hang_up

from bench.record.events import Called, Event
from bench.record.reading import read_responses, read_texts
from bench.record.record import TrialRecord
from bench.run.packs import load_pack

LIVE = """
[model.local]
kind = "openai"
base_url = "{url}"
cache = {cache}
concurrency = {concurrency}
"""


class Killer:
    """Answers each request by what it says, and kills who asks once so many are answered.

    answered   how often each request was answered
    left       how many requests are answered before the kill; None: all
    delays     what the answers take, in turns
    """

    def __init__(self, folder: Path, delays: Sequence[float] = (0.0,)):
        self._delays = itertools.cycle(delays)
        self._reference = load_pack("demo", [folder / "scenarios"]).reference
        self.answered: Counter[str] = Counter()
        self.left: int | None = None
        self.victim: Started

    def __call__(self, body: Any) -> Step:
        if len(body["messages"]) == 1:
            return completion("OK")  # the probe before a run
        if self.left == 0:
            self.victim.kill()
            return hang_up()
        self.left = self.left and self.left - 1
        self.answered[json.dumps([body["messages"], body["seed"]])] += 1
        name = body["messages"][1]["content"].split("\n")[0].removeprefix("# Task: ")
        answer = completion("{}" if body["seed"] % 3 == 0 else json.dumps(self._reference[name]))
        return hang(next(self._delays), answer)


def as_it_would_have_been(folder: Path) -> dict[str, TrialRecord]:
    """The records by id, without seconds, when anything began, and whether a reply had been given before."""
    trials = timeless(folder).items()
    return {
        key: dataclasses.replace(trial, api_seconds=0.0, waiting_seconds=0.0, events=_events(trial)) for key, trial in trials
    }


def _events(trial: TrialRecord) -> tuple[Event, ...]:
    return tuple(
        dataclasses.replace(event, started=0.0, seconds=0.0, client=0.0, reused=False) if isinstance(event, Called) else event
        for event in trial.events
    )


def kept(folder: Path) -> Counter[str]:
    """How often a reply that was sent for is kept, by request."""
    texts = read_texts(folder)
    return Counter(
        json.dumps(
            [[{"role": message.role, "content": texts[message.content]} for message in response.messages], response.seed]
        )
        for response in read_responses(folder)
        if response.reply and not response.reused
    )
