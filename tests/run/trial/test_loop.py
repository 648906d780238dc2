"""The event loop: virtual time passes when nothing can run, and everything real goes on as on any loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from bench.common.errors import UndeclaredCalls
from bench.run.trial.clock import TrialClock, in_seconds
from bench.run.trial.loop import observer, run

DAGS = 1_000
MOST_TURNS = 120
"""Turns of the loop that a subtask is late by, at most."""


def seconds_of(clock: TrialClock, work: Coroutine[Any, Any, Any]) -> float:
    """The virtual seconds that this work takes."""
    run(clock.run(work))
    return in_seconds(clock.now())


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


class Dag:
    """Subtasks that read others' outputs and take some seconds each; `late` is how many turns of the loop each begins late."""

    def __init__(self, random: Random):
        size = random.randint(1, 12)
        self.reads = [[other for other in range(node) if random.random() < 0.3] for node in range(size)]
        self.lengths = [random.randint(0, 5_000) / 1_000 for _ in range(size)]
        self.late = [random.choice((0, 1, random.randint(0, MOST_TURNS))) for _ in range(size)]
        self.order = random.sample(range(size), size)
        self.grouped = random.random() < 0.5

    def critical_path(self) -> float:
        ends: list[float] = []
        for reads, length in zip(self.reads, self.lengths, strict=True):
            ends.append(max((ends[node] for node in reads), default=0.0) + length)
        return max(ends)

    async def work(self, clock: TrialClock) -> None:
        loop = asyncio.get_running_loop()
        done = [loop.create_future() for _ in self.lengths]

        async def subtask(node: int) -> None:
            if self.reads[node]:
                await asyncio.wait([done[read] for read in self.reads[node]])
            await turns(self.late[node])
            with clock.span("call"):
                await clock.sleep(self.lengths[node])
            done[node].set_result(None)

        if not self.grouped:
            await asyncio.gather(*(subtask(node) for node in self.order))
            return
        async with asyncio.TaskGroup() as group:
            for node in self.order:
                group.create_task(subtask(node))


def test_the_seconds_of_any_dag_are_those_of_its_critical_path() -> None:
    for seed in range(DAGS):
        dag, clock = Dag(Random(seed)), TrialClock(virtual=True)
        assert seconds_of(clock, dag.work(clock)) == pytest.approx(dag.critical_path(), abs=1e-9), seed


@pytest.mark.parametrize("late", [0, 8, 20, 100])
def test_a_call_that_begins_some_turns_of_the_loop_late_overlaps_all_the_same(late: int) -> None:
    clock = TrialClock(virtual=True)

    async def begin(seconds: float, after: int) -> None:
        await turns(after)
        await clock.sleep(seconds)

    async def work() -> None:
        await asyncio.gather(begin(1, 0), begin(3, late))

    assert seconds_of(clock, work()) == 3.0


def test_work_in_a_thread_holds_the_time_of_its_trial() -> None:
    clock, other = TrialClock(virtual=True), TrialClock(virtual=True)
    go = threading.Event()

    async def computing() -> None:
        await asyncio.to_thread(go.wait)
        await clock.sleep(2)

    async def work() -> None:
        await asyncio.gather(clock.sleep(1), computing())

    async def beside() -> None:
        await other.sleep(1_000)
        go.set()

    async def both() -> None:
        await asyncio.gather(clock.run(work()), other.run(beside()))

    run(both())
    assert (in_seconds(clock.now()), in_seconds(other.now())) == (2.0, 1_000.0)


def test_a_job_that_nobody_waits_for_any_more_holds_no_time() -> None:
    clock, go = TrialClock(virtual=True), threading.Event()

    async def work() -> None:
        job = asyncio.create_task(asyncio.to_thread(go.wait))
        await asyncio.sleep(0)
        job.cancel()
        async with asyncio.timeout(60):
            try:
                await clock.sleep(1)
            finally:
                go.set()

    assert seconds_of(clock, work()) == 1.0


def test_a_thread_that_makes_a_call_in_process_is_refused_and_hangs_nobody() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(clock.sleep(1), loop).result(60))

    with pytest.raises(UndeclaredCalls, match=r"^a thread made a call .*workbench\.endpoint"):
        run(clock.run(work()))
    assert clock.now() == 0


def test_two_virtual_trials_on_one_loop_keep_their_own_time() -> None:
    seen: list[tuple[str, float]] = []

    async def trial(name: str, lengths: list[float]) -> None:
        clock = TrialClock(virtual=True)

        async def work() -> None:
            for seconds in lengths:
                await clock.sleep(seconds)
                seen.append((name, in_seconds(clock.now())))

        await clock.run(work())

    async def both() -> None:
        await asyncio.gather(trial("slow", [100, 100]), trial("fast", [1, 1, 1]))

    run(both())
    assert [at for name, at in seen if name == "slow"] == [100.0, 200.0]
    assert [at for name, at in seen if name == "fast"] == [1.0, 2.0, 3.0]


def test_a_real_sleep_takes_its_time_and_a_virtual_trial_does_not_wait_for_it() -> None:
    real, virtual = TrialClock(virtual=False), TrialClock(virtual=True)
    ended: list[str] = []

    async def live() -> None:
        began = time.perf_counter()
        await real.sleep(0.2)
        assert time.perf_counter() - began >= 0.2
        ended.append("live")

    async def simulated() -> None:
        for _ in range(50):
            await virtual.sleep(1_000)
        ended.append("simulated")

    async def both() -> None:
        await asyncio.gather(real.run(live()), virtual.run(simulated()))

    run(both())
    assert ended == ["simulated", "live"]
    assert in_seconds(virtual.now()) == 50_000.0


def test_an_endless_virtual_trial_starves_neither_timers_nor_connections_nor_another_one() -> None:
    clock = TrialClock(virtual=True)

    async def endless() -> None:
        while True:
            await clock.sleep(1)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async def work() -> None:
        trial = asyncio.create_task(clock.run(endless()))
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
            writer.close()
        await asyncio.sleep(0.01)
        assert await asyncio.to_thread(lambda: "done") == "done"
        other = TrialClock(virtual=True)
        await other.run(other.sleep(1))
        trial.cancel()

    run(work())
    assert clock.now() > 0


def test_what_a_task_does_after_a_trial_is_not_the_trials_work() -> None:
    async def work() -> None:
        clock = TrialClock(virtual=True)
        await clock.run(clock.sleep(1))
        assert observer.get() is None

    run(work())


def test_a_trials_own_time_limit_does_not_hold_its_virtual_time() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        async with asyncio.timeout(3_600):
            await clock.sleep(10_000)

    assert seconds_of(clock, work()) == 10_000.0


@pytest.mark.parametrize("virtual", [True, False])
def test_a_trial_on_another_loop_is_told_how_to_run(virtual: bool) -> None:
    async def work() -> None:
        pass

    with pytest.raises(RuntimeError, match=r"call bench\.run\.trial\.loop\.run\(\.\.\.\) instead of asyncio\.run"):
        asyncio.run(TrialClock(virtual).run(work()))


def test_a_virtual_sleep_on_another_loop_is_told_how_to_run() -> None:
    with pytest.raises(RuntimeError, match=r"bench\.run\.trial\.loop\.run"):
        asyncio.run(TrialClock(virtual=True).sleep(1))
