"""Live models on Ray's workers: every call is made by the process that began the run, so that no answer is paid for twice.

Each endpoint is a server on loopback that counts what it answered.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Ended, bench_anew, environment, start_anew, start_in_group, workplace
from experiment_runs import sessions_of
from killer import LIVE, Killer, as_it_would_have_been, kept
from scripted_server import ScriptedServer, Step, hang, status

from bench.common.signals import STOPPING, exit_code
from bench.record.events import Called, Event, Waited
from bench.record.reading import read_responses
from bench.record.record import TrialRecord
from bench.record.verify import verify

pytestmark = pytest.mark.slow

SHOWING = """
import os
from pathlib import Path
from bench.run.architectures.static import static

async def showing(task, workbench):
    Path("worker").write_text(str(os.getpid()))
    await static(task, workbench)
"""
"""An architecture that tells in which process it works."""
PRICED = "price_in = 1000.0\nprice_out = 10000.0\n"
"""With the server's usage of 12 and 3 tokens a call costs 0.042 $."""


@pytest.fixture(autouse=True)
def ray() -> None:
    pytest.importorskip("ray")


class Killing(Killer):
    """Kills the worker in mid-call, once so many requests are answered; then its reply is sent to the run's own process."""

    folder: Path

    def __call__(self, body: Any) -> Step:
        step = super().__call__(body)
        if self.left == 0:
            self.left = None
            os.kill(int((self.folder / "worker").read_text()), signal.SIGKILL)
        return step


class Cutting(Killer):
    """Kills the relay in mid-call, once so many requests are answered."""

    def __call__(self, body: Any) -> Step:
        step = super().__call__(body)
        if self.left == 0:
            self.left = None
            os.kill(process_called("ray::Relay"), signal.SIGKILL)
        return step


def process_called(title: str) -> int:
    """The number of the process that began last of those whose title begins so."""
    numbers = [
        int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal() and _title(folder).startswith(title)
    ]
    return max(numbers)


def _title(process: Path) -> str:
    try:
        return process.joinpath("cmdline").read_text(encoding="utf-8").strip("\0 ")
    except OSError:  # it has ended
        return ""


class Place:
    """A workplace at an endpoint, in which the run `whole` is what one process makes of it."""

    def __init__(
        self, folder: Path, killer: type[Killer] = Killer, *, repetitions: int, settings: str = "", concurrency: int = 1
    ):
        self.folder, self.results = folder, folder / "results"
        self.config = workplace(folder, model="local", repetitions=repetitions)
        text = self.config.read_text(encoding="utf-8")
        text = text.replace('["static", "runtime_structured"]', '["showing:showing"]')
        (folder / "showing.py").write_text(SHOWING, encoding="utf-8")
        self.killer, self.endpoint = killer(folder), ScriptedServer()
        self.endpoint.answer = self.killer
        self.endpoint.__enter__()
        live = LIVE.format(url=self.endpoint.base_url, cache="false", concurrency=concurrency)
        self.config.write_text(text + live + settings, encoding="utf-8")
        self.here("whole")
        self.whole, self.killer.answered = self.killer.answered, Counter()

    def here(self, name: str) -> None:
        code, _, err = bench_anew(self.folder, "run", "configs/small.toml", "--name", name)
        assert code == 0, err

    def on_ray(self, name: str, *words: str) -> Ended:
        return bench_anew(self.folder, *command(name, *words), PYTHONWARNINGS="default")

    def assert_nothing_was_lost(self, name: str) -> None:
        assert by_id(self.results / name) == by_id(self.results / "whole")
        assert verify(self.results / name).defects == ()

    def assert_each_answer_was_paid_once(self, name: str) -> None:
        self.assert_nothing_was_lost(name)
        assert self.killer.answered == self.whole == kept(self.results / name)


@pytest.fixture
def places() -> Iterator[list[Place]]:
    made: list[Place] = []
    yield made
    for place in made:
        place.endpoint.__exit__(None, None, None)


def command(name: str, *words: str) -> tuple[str, ...]:
    return "run", "configs/small.toml", "--name", name, "--engine", "ray", "--workers", "2", *words


def by_id(folder: Path) -> dict[str, TrialRecord]:
    """The records without waits, and without the numbers of events, which they move."""
    trials = as_it_would_have_been(folder).items()
    return {key: replace(trial, events=tuple(map(_unnumbered, _without_waits(trial)))) for key, trial in trials}


def _without_waits(trial: TrialRecord) -> list[Event]:
    return [event for event in trial.events if not isinstance(event, Waited)]


def _unnumbered(event: Event) -> Event:
    return replace(event, caused_by=None) if isinstance(event, Called) else event


def test_two_workers_ask_what_one_process_asks_and_record_the_same(tmp_path: Path, places: list[Place]) -> None:
    places.append(place := Place(tmp_path, repetitions=6, concurrency=4))
    code, out, err = place.on_ray("on-ray")
    assert code == 0 and "done: " in out, err
    place.assert_each_answer_was_paid_once("on-ray")
    assert place.endpoint.most_in_flight >= 2


def test_a_worker_killed_before_it_has_its_reply_at_each_of_twenty_points_costs_no_answer(
    tmp_path: Path, places: list[Place]
) -> None:
    places.append(place := Place(tmp_path, Killing, repetitions=12))
    assert isinstance(place.killer, Killing)
    place.killer.folder = tmp_path
    for point in range(20):
        place.killer.left = 1 + point % 3
        code, _, err = place.on_ray("killed")
        assert code == 2 and re.search(r"bench: a worker ended with a trial: .*; what came back is kept, and the same", err), (
            err
        )
    place.killer.left = None
    place.here("killed")
    place.assert_each_answer_was_paid_once("killed")


def test_a_relay_that_is_killed_ends_the_run_in_a_line_and_costs_no_answer(tmp_path: Path, places: list[Place]) -> None:
    places.append(place := Place(tmp_path, Cutting, repetitions=6))
    place.killer.left = 3
    code, _, err = place.on_ray("cut")
    assert code == 2 and "bench: the relay to the workers is lost (" in err and "Traceback" not in err, err
    assert err.count("the same command goes on") == 1
    place.here("cut")
    place.assert_each_answer_was_paid_once("cut")


def test_when_the_run_s_own_process_is_killed_nothing_that_it_was_answered_is_asked_again(
    tmp_path: Path, places: list[Place]
) -> None:
    places.append(place := Place(tmp_path, repetitions=6))
    for left in (2, 5):
        place.killer.left = left
        with start_anew(tmp_path, *command("killed"), PYTHONWARNINGS="default") as place.killer.victim:  # type: ignore[assignment]
            assert place.killer.victim.wait(180) == -signal.SIGKILL  # type: ignore[attr-defined]
        assert no_worker_is_left(tmp_path)
    place.killer.left = None
    place.here("killed")
    place.assert_each_answer_was_paid_once("killed")


def no_worker_is_left(folder: Path) -> bool:
    """Ray's processes end with the one that began them."""
    worker = Path("/proc", (folder / "worker").read_text())
    deadline = time.monotonic() + 20
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return not worker.exists()


CUT = "import sabotage; sabotage.killed_at('write', {number}, 0.5)(); from bench.cli.main import main; main()"


def test_a_writer_that_is_killed_in_mid_line_leaves_a_run_that_goes_on(tmp_path: Path, places: list[Place]) -> None:
    places.append(place := Place(tmp_path, repetitions=4))
    for number in (9, 15):
        words = [sys.executable, "-c", CUT.format(number=number), *command("cut")]
        support = str(Path(__file__).parents[2] / "support")
        variables = environment(PYTHONWARNINGS="default", PYTHONPATH=support)
        assert (
            subprocess.run(words, cwd=tmp_path, env=variables, check=False, capture_output=True).returncode == -signal.SIGKILL
        )
    place.here("cut")
    place.assert_nothing_was_lost("cut")
    assert kept(place.results / "cut") == place.whole
    assert place.killer.answered.total() - place.whole.total() <= 2, "at most the answer that was being written"


Send = Callable[[subprocess.Popen[str], signal.Signals], None]


def signal_run(running: subprocess.Popen[str], asked: signal.Signals) -> None:
    running.send_signal(asked)


def signal_all(running: subprocess.Popen[str], asked: signal.Signals) -> None:
    """Signal each process of the run, Ray's first, as systemd and Slurm may."""
    parents = {
        int(stat.parent.name): int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
        for stat in Path("/proc").glob("[0-9]*/stat")
    }
    below = [running.pid]
    for parent in below:
        below += [number for number, its_parent in parents.items() if its_parent == parent]
    for number in reversed(below):
        os.kill(number, asked)


def signal_group(running: subprocess.Popen[str], asked: signal.Signals) -> None:
    os.killpg(running.pid, asked)


SIGNALS: list[tuple[Send, signal.Signals]] = [
    *((signal_run, asked) for asked in STOPPING),
    (signal_all, signal.SIGTERM),
    (signal_group, signal.SIGTERM),
]


@pytest.mark.parametrize(("send", "asked"), SIGNALS)
def test_a_signal_to_stop_keeps_what_is_in_flight_and_one_process_goes_on(
    tmp_path: Path, places: list[Place], send: Send, asked: signal.Signals
) -> None:
    places.append(place := Place(tmp_path, repetitions=6, concurrency=4))
    in_flight, numbers = threading.Event(), itertools.count()

    def slow(body: Any) -> Step:
        step = place.killer(body)
        if next(numbers) < 6:
            return step
        in_flight.set()
        return hang(1.0, step)

    place.endpoint.answer = slow
    with start_in_group(tmp_path, *command("stopped"), PYTHONWARNINGS="default") as running:
        assert in_flight.wait(180)
        send(running, asked)
        _, err = running.communicate(timeout=180)
    assert running.returncode == exit_code(asked)
    assert re.fullmatch(r"stopping: waiting for [12] calls in flight; .*\nstopped; what is recorded is kept in .*\n", err)
    assert sessions_of(place.results / "stopped")[-1].detail.startswith("stopped: a signal asked for it")
    assert kept(place.results / "stopped") == place.killer.answered
    place.endpoint.answer = place.killer
    place.here("stopped")
    place.assert_each_answer_was_paid_once("stopped")


def test_a_budget_is_overshot_by_the_calls_in_flight_at_most(tmp_path: Path, places: list[Place]) -> None:
    places.append(place := Place(tmp_path, repetitions=6, concurrency=4, settings=PRICED))
    code, _, err = place.on_ray("bounded", "--max-cost", "0.25")
    assert code == 1 and "--max-cost 0.25 is reached" in err
    spent = 0.042 * place.killer.answered.total()
    assert 0.25 <= spent <= 0.25 + 2 * 0.042
    place.here("bounded")
    place.assert_each_answer_was_paid_once("bounded")


def test_a_429_of_one_worker_s_call_holds_back_the_calls_of_all(tmp_path: Path, places: list[Place]) -> None:
    places.append(place := Place(tmp_path, repetitions=6, concurrency=4))
    moments: list[float] = []

    def limited(body: Any) -> Step:
        moments.append(time.monotonic())
        return status(429, headers={"Retry-After": "2"}) if len(moments) == 8 else hang(0.05, place.killer(body))

    place.endpoint.answer = limited
    code, _, err = place.on_ray("limited")
    assert code == 0, err
    refused = moments[7]
    assert not [moment for moment in moments[8:] if 0.2 < moment - refused < 1.9], "nobody asks before the time that it names"
    failures = [response.failure for response in read_responses(place.results / "limited") if response.failure]
    assert failures == ["rate_limited"] and kept(place.results / "limited") == place.whole


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_a_pack_that_a_worker_has_in_another_version_or_lacks_is_one_line(
    tmp_path: Path, places: list[Place], change: str
) -> None:
    places.append(place := Place(tmp_path, repetitions=2))
    document = tmp_path / "scenarios" / "demo" / "documents" / "volumes.txt"

    def changing(body: Any) -> Step:
        """The probe before the run: this process has the pack by now, and no worker does."""
        document.write_text("others\n", encoding="utf-8") if change == "edited" else document.unlink(missing_ok=True)
        return place.killer(body)

    place.endpoint.answer = changing
    code, _, err = place.on_ray("other")
    wrong = "has another version of the pack 'demo'" if change == "edited" else "cannot make the experiment: "
    assert code == 2 and re.search(rf"^bench: a worker {wrong}.*; install there what is installed here.*\n\Z", err, re.M), err
    assert not place.killer.answered
