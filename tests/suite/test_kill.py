"""A run that is killed loses at most the trials in flight, and of them nothing that was answered: resumed, it is as if nothing
had happened."""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Started, bench, bench_anew, start, workplace
from experiment_runs import timeless
from scripted_server import ScriptedServer, Step, completion, hang_up

from bench.experiment.files import TRIALS
from bench.experiment.reading import read_responses, read_texts
from bench.experiment.record import TrialRecord
from bench.packs import load_pack
from bench.runtime.events import Called, Event

LIVE = """
[model.local]
kind = "openai"
base_url = "{url}"
cache = {cache}
"""


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.endurance)])
def test_killed_at_random_moments_a_run_ends_up_as_an_uninterrupted_one(
    tmp_path: Path, kills: int, record_property: Callable[[str, object], None]
) -> None:
    record_property("tries", kills)
    workplace(tmp_path, repetitions=35 * kills)
    results = tmp_path / "results"
    moments = random.Random(20)
    kills_in_mid_run = 0
    for _ in range(kills):
        size = _size(results / "killed" / TRIALS)
        with start(tmp_path, "run", "configs/small.toml", "--name", "killed") as process:
            while process.exit_code is None and _size(results / "killed" / TRIALS) <= size + 200:
                time.sleep(0.005)
            time.sleep(moments.uniform(0.0, 0.15))
            kills_in_mid_run += process.exit_code is None
            process.kill()
    assert kills_in_mid_run == kills
    assert bench(tmp_path, "run", "configs/small.toml", "--name", "killed")[0] == 0
    assert bench_anew(tmp_path, "run", "configs/small.toml", "--name", "whole")[0] == 0
    assert timeless(results / "killed") == timeless(results / "whole")
    assert read_texts(results / "killed") == read_texts(results / "whole")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# -- on a server that remembers what it answered -----------------------------------------------------------------------


class Killer:
    """Answers each request by what it says, and kills who asks once so many are answered.

    answered   how often each request was answered
    left       how many requests are answered before the kill; None: all
    """

    def __init__(self, folder: Path):
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
        return completion("{}" if body["seed"] % 3 == 0 else json.dumps(self._reference[name]))


def as_it_would_have_been(folder: Path) -> dict[str, TrialRecord]:
    """The records by id, without seconds, when anything began, and whether a reply had been given before."""
    trials = timeless(folder).items()
    return {key: dataclasses.replace(one, api_seconds=0.0, waiting_seconds=0.0, events=_events(one)) for key, one in trials}


def _events(trial: TrialRecord) -> tuple[Event, ...]:
    return tuple(
        dataclasses.replace(event, started=0.0, seconds=0.0, client=0.0, reused=False) if isinstance(event, Called) else event
        for event in trial.events
    )


@pytest.mark.parametrize("repetitions", [1, pytest.param(2, marks=pytest.mark.endurance)])
@pytest.mark.parametrize("cache", ["true", "false"])
def test_nothing_that_was_answered_is_asked_again_after_a_kill(tmp_path: Path, cache: str, repetitions: int) -> None:
    killer = Killer(workplace(tmp_path, model="local", repetitions=repetitions).parent.parent)
    config, run = tmp_path / "configs" / "small.toml", ("run", "configs/small.toml", "--name")
    with ScriptedServer(killer) as endpoint:
        config.write_text(config.read_text() + LIVE.format(url=endpoint.base_url, cache=cache))
        assert bench(tmp_path, *run, "whole")[0] == 0
        whole, killer.answered = killer.answered, Counter()
        kills, draw = 0, random.Random(7)
        while True:
            killer.left = draw.randint(1, 1 + 2 * repetitions)
            with start(tmp_path, *run, "killed") as killer.victim:
                code, _, err = killer.victim.ended()
            if code == 0:
                break
            assert code == -signal.SIGKILL, err
            kills += 1
            assert kills <= whole.total(), "each session answers something new"
    assert kills > 3
    assert killer.answered == whole
    assert cache == "false" or set(whole.values()) == {1}
    results = tmp_path / "results"
    assert as_it_would_have_been(results / "killed") == as_it_would_have_been(results / "whole")
    assert [response.reused for response in read_responses(results / "killed")].count(False) == whole.total()
