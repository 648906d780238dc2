"""A run that is killed loses at most the trials in flight, and of them nothing that was answered: resumed, it is as if nothing
had happened."""

from __future__ import annotations

import itertools
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import bench, start, workplace
from experiment_runs import timeless
from killer import LIVE, Killer, as_it_would_have_been, kept
from scripted_server import ScriptedServer, Step, hang

from bench.record.files import TRIALS
from bench.record.reading import read_responses, read_texts
from bench.record.verify import verify


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
    assert bench(tmp_path, "run", "configs/small.toml", "--name", "whole")[0] == 0
    assert timeless(results / "killed") == timeless(results / "whole")
    assert read_texts(results / "killed") == read_texts(results / "whole")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# -- on a server that remembers what it answered -----------------------------------------------------------------------


@pytest.mark.parametrize("repetitions", [1, pytest.param(2, marks=pytest.mark.endurance)])
@pytest.mark.parametrize("cache", ["true", "false"])
def test_nothing_that_was_answered_is_asked_again_after_a_kill(tmp_path: Path, cache: str, repetitions: int) -> None:
    killer = Killer(workplace(tmp_path, model="local", repetitions=repetitions).parent.parent)
    config, run = tmp_path / "configs" / "small.toml", ("run", "configs/small.toml", "--name")
    with ScriptedServer(killer) as endpoint:
        config.write_text(config.read_text() + LIVE.format(url=endpoint.base_url, cache=cache, concurrency=1))
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


@pytest.mark.parametrize("repetitions", [2, pytest.param(12, marks=pytest.mark.endurance)])
def test_with_four_calls_in_flight_no_answer_that_was_kept_is_asked_for_again_after_a_kill(
    tmp_path: Path, repetitions: int
) -> None:
    """What was in flight at the kill may be paid twice: at most so many calls as there were."""
    killer = Killer(workplace(tmp_path, model="local", repetitions=repetitions).parent.parent, delays=(0.03, 0.0, 0.01, 0.0))
    config, results, run = tmp_path / "configs" / "small.toml", tmp_path / "results", ("run", "configs/small.toml", "--name")
    with ScriptedServer(killer) as endpoint:
        config.write_text(config.read_text() + LIVE.format(url=endpoint.base_url, cache="false", concurrency=4))
        assert bench(tmp_path, *run, "whole")[0] == 0
        assert endpoint.most_in_flight == 4
        whole, killer.answered = killer.answered, Counter()
        kills, draw = 0, random.Random(7)
        while True:
            killer.left = draw.randint(5, 9)
            with start(tmp_path, *run, "killed") as killer.victim:
                code, _, err = killer.victim.ended()
            if code == 0:
                break
            assert code == -signal.SIGKILL, err
            kills += 1
            assert kills <= whole.total(), "each session answers something new"
    assert kills >= 3
    assert kept(results / "killed") == whole, "each answer is kept once, and none that was kept was asked for again"
    assert 0 <= killer.answered.total() - whole.total() <= 3 * kills
    assert as_it_would_have_been(results / "killed") == as_it_would_have_been(results / "whole")
    assert verify(results / "killed").defects == ()


@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_waits_for_the_calls_in_flight_and_a_second_one_does_not(tmp_path: Path, twice: bool) -> None:
    killer = Killer(workplace(tmp_path, model="local", repetitions=1).parent.parent)
    config, results, run = tmp_path / "configs" / "small.toml", tmp_path / "results", ("run", "configs/small.toml", "--name")
    late, asked = itertools.count(), threading.Event()

    def answer(body: Any) -> Step:
        """From the sixth request on, four are in flight until the command was asked to stop."""
        step = killer(body)
        if next(late) not in range(6, 10):
            return step
        asked.set()
        return hang(60 if twice else 0.3, step)

    with ScriptedServer(killer) as endpoint:
        config.write_text(config.read_text() + LIVE.format(url=endpoint.base_url, cache="false", concurrency=4))
        assert bench(tmp_path, *run, "whole")[0] == 0
        whole, killer.answered, endpoint.answer = killer.answered, Counter(), answer
        with start(tmp_path, *run, "stopped") as command:
            asked.wait(30)
            command.send_signal(signal.SIGINT)
            message = command.wait_until_said("calls in flight; Ctrl-C again ends at once", "err")
            if twice:
                command.send_signal(signal.SIGINT)
            code, _, err = command.ended(timeout=20)
        assert re.match(r"stopping: waiting for [1-4] calls in flight", message)
        assert code == (-signal.SIGINT if twice else 130) and "Traceback" not in err
        answered = killer.answered.total()
        assert verify(results / "stopped").defects == ()
        assert twice or kept(results / "stopped").total() == answered, "all that was asked for came, and is kept"
        endpoint.answer = killer
        assert bench(tmp_path, *run, "stopped")[0] == 0
    assert kept(results / "stopped") == whole and (twice or killer.answered == whole)
    assert as_it_would_have_been(results / "stopped") == as_it_would_have_been(results / "whole")
