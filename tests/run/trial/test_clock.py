"""Where a trial's seconds went: measured for this trial alone, and simulated seconds overlap as real ones would."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from time import perf_counter, perf_counter_ns
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.record.intervals import covered_time
from bench.run.trial import loop
from bench.run.trial.clock import TrialClock, in_seconds

INTERVALS = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 20)).map(lambda interval: (interval[0], sum(interval))))


def run(clock: TrialClock, work: Coroutine[Any, Any, None]) -> None:
    loop.run(clock.run(work))


def busy(seconds: float) -> None:
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


class Elapsed:
    """The seconds that really passed while inside, however busy the machine is."""

    seconds = 0.0

    def __enter__(self) -> Elapsed:
        self._began = perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += perf_counter() - self._began


@given(INTERVALS)
def test_time_that_several_intervals_cover_counts_once(intervals: list[tuple[int, int]]) -> None:
    assert covered_time(intervals) == len({moment for start, end in intervals for moment in range(start, end)})


def test_simulated_calls_one_after_another_take_the_sum() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        for seconds in (100.0, 50.0):
            with clock.span("call"):
                await clock.sleep(seconds)

    run(clock, work())
    assert (clock.api_seconds, clock.waiting_seconds, in_seconds(clock.now())) == (150.0, 0.0, 150.0)


def test_simulated_calls_side_by_side_overlap_and_each_ends_in_its_own_time() -> None:
    clock = TrialClock(virtual=True)
    ended: list[tuple[str, float]] = []

    async def call(name: str, *lengths: float) -> None:
        for seconds in lengths:
            with clock.span("call"):
                await clock.sleep(seconds)
            ended.append((name, in_seconds(clock.now())))

    async def work() -> None:
        await asyncio.gather(call("long", 5), call("short", 1, 2), call("third", 4))

    run(clock, work())
    assert ended == [("short", 1.0), ("short", 3.0), ("third", 4.0), ("long", 5.0)]
    assert clock.api_seconds == 5.0


def test_a_simulated_sleep_that_is_cancelled_takes_no_time() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        late = asyncio.create_task(clock.sleep(1000))
        await asyncio.sleep(0)
        late.cancel()
        await clock.sleep(1)
        with pytest.raises(asyncio.CancelledError):
            await late
        await clock.sleep(1)

    run(clock, work())
    assert in_seconds(clock.now()) == 2.0


def test_a_cancelled_sleep_that_would_have_ended_first_is_passed_over() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        early = asyncio.create_task(clock.sleep(5))
        await asyncio.sleep(0)
        early.cancel()
        await clock.sleep(10)
        await clock.sleep(0)

    run(clock, work())
    assert in_seconds(clock.now()) == 10.0


def test_time_does_not_pass_before_a_call_that_was_declared_has_come() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        with clock.elsewhere():
            clock.expect(1)
            sleep = asyncio.create_task(clock.sleep(1))
            await asyncio.sleep(0.02)
            assert clock.now() == 0
            async with clock.endpoint_call("a call"):
                await clock.sleep(3)
            await sleep

    run(clock, work())
    assert in_seconds(clock.now()) == 3.0


def test_a_thread_may_wait_for_virtual_time_while_the_trial_works_elsewhere() -> None:
    clock = TrialClock(virtual=True)

    async def work() -> None:
        over = threading.Event()
        thread = asyncio.create_task(asyncio.to_thread(over.wait, 60))
        with clock.elsewhere():
            await clock.sleep(3)
            over.set()
            assert await thread

    run(clock, work())
    assert in_seconds(clock.now()) == 3.0


def test_waiting_counts_only_where_no_call_is_in_flight() -> None:
    clock = TrialClock(virtual=True)

    async def stand(what: Any, seconds: float) -> None:
        with clock.span(what):
            await clock.sleep(seconds)

    async def work() -> None:
        await asyncio.gather(stand("call", 3), stand("wait", 5))

    run(clock, work())
    assert (clock.api_seconds, clock.waiting_seconds) == (3.0, 2.0)


def test_framework_time_is_the_trials_own_work_outside_of_calls() -> None:
    clock, in_call = TrialClock(virtual=True), Elapsed()

    async def work() -> None:
        busy(0.02)
        with clock.span("call"), in_call:
            busy(0.1)
            await clock.sleep(1)
        busy(0.02)

    with Elapsed() as whole:
        run(clock, work())
    assert 0.04 <= clock.framework_seconds <= whole.seconds - in_call.seconds


def test_another_trials_work_on_the_same_loop_is_not_counted() -> None:
    mine, other = TrialClock(virtual=False), TrialClock(virtual=False)
    of_other = Elapsed()

    async def idle() -> None:
        for _ in range(5):
            await asyncio.sleep(0.001)

    async def greedy() -> None:
        for _ in range(5):
            with of_other:
                busy(0.03)
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(mine.run(idle()), other.run(greedy()))

    with Elapsed() as whole:
        loop.run(both())
    assert other.framework_seconds >= of_other.seconds >= 0.15
    assert mine.framework_seconds <= whole.seconds - of_other.seconds


def test_work_in_a_task_that_the_trial_starts_is_its_own() -> None:
    clock = TrialClock(virtual=False)

    async def part() -> None:
        busy(0.03)

    async def work() -> None:
        await asyncio.gather(asyncio.create_task(part()), asyncio.create_task(part()))

    run(clock, work())
    assert clock.framework_seconds >= 0.06


def test_a_cancellation_reaches_the_work() -> None:
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(True)

    async def start() -> None:
        trial = asyncio.create_task(TrialClock(virtual=False).run(work()))
        await asyncio.sleep(0.01)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial

    loop.run(start())
    assert cleaned == [True]


def test_what_a_client_takes_beside_the_time_in_flight_is_framework_time_and_no_call() -> None:
    clock = TrialClock(virtual=False)
    taken = list[int]()

    async def work() -> None:
        with clock.span("call") as span:
            busy(0.02)
            began = perf_counter_ns()
            await asyncio.sleep(0.03)
            span.flight = (began, perf_counter_ns())
            busy(0.04)
        taken.extend((span.flight[1] - began, span.client))

    run(clock, work())
    flight, client = taken
    assert clock.api_seconds == pytest.approx(in_seconds(flight), abs=1e-6)
    assert in_seconds(client) >= 0.06
    assert clock.framework_seconds >= 0.06
    assert clock.api_seconds + clock.framework_seconds <= in_seconds(clock.now())
