"""The limit on calls in flight follows what the endpoint says, in one direction quickly and in the other by steps."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.common.errors import CallFailed, CutOff, NoCompletion, NoText, RateLimited, ServerFailed, TimedOut, Unreachable
from bench.run.models.base import Reply
from bench.run.trial.gate import FAILURES_BEFORE_PAUSE, Gate

BUSY = RateLimited("429")
FINE = Reply("fine")


def watching(most: int, **options: Any) -> Gate:
    return Gate(most, watches=True, **options)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def settled(task: asyncio.Task[int]) -> bool:
    """Whether it has ended, once everything that could run has run."""
    for _ in range(5):
        await asyncio.sleep(0)
    return task.done()


def after(gate: Gate, outcomes: Sequence[Reply | CallFailed]) -> Gate:
    for outcome in outcomes:
        gate.record_outcome(outcome, gate.trouble.fell)
    return gate


def test_a_429_halves_the_limit_and_answered_calls_raise_it_again_by_one_a_round_and_no_further() -> None:
    gate = after(watching(8), [BUSY])
    assert (gate.limit, gate.trouble.fell, gate.trouble.lowest) == (4, 1, 4)
    assert after(gate, [FINE] * 4).limit == 4 < after(gate, [FINE]).limit == 5
    assert after(gate, [FINE] * 100).limit == 8
    assert gate.trouble.lowest == 4


def test_calls_that_were_in_flight_together_lower_the_limit_once() -> None:
    gate = watching(8)
    for _ in range(8):
        gate.record_outcome(BUSY, fell_before=0)
    assert (gate.limit, gate.trouble.fell) == (4, 1)


@given(st.integers(1, 300), st.lists(st.sampled_from([FINE, BUSY]), max_size=60))
def test_the_limit_is_never_below_one_nor_above_what_the_config_allows(most: int, outcomes: list[Reply | CallFailed]) -> None:
    gate = watching(most)
    for outcome in outcomes:
        after(gate, [outcome])
        assert gate.trouble.lowest <= gate.limit <= most
        assert gate.trouble.lowest >= 1


def test_a_reply_that_was_given_before_says_nothing_of_the_endpoint() -> None:
    gate = after(watching(8), [BUSY])
    assert after(gate, [Reply("again", reused=True)] * 50).limit == 4


def test_a_gate_that_does_not_watch_has_no_weather() -> None:
    gate = after(Gate(8), [BUSY, *[ServerFailed("500")] * 20])
    assert gate.is_open and (gate.limit, gate.trouble.fell, gate.trouble.pauses) == (8, 0, 0)


@given(st.integers(1, 5), st.integers(1, 30))
def test_who_enters_never_exceeds_the_limit_and_all_come_in_order(most: int, callers: int) -> None:
    order, in_flight, highest = list[int](), 0, 0

    async def call(gate: Gate, number: int) -> None:
        nonlocal in_flight, highest
        await gate.enter()
        order.append(number)
        in_flight += 1
        highest = max(highest, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1
        gate.leave()

    async def work() -> None:
        gate = Gate(most)
        await asyncio.gather(*(call(gate, number) for number in range(callers)))
        assert gate.is_open

    run(work())
    assert order == list(range(callers)) and highest == min(most, callers)


@pytest.mark.parametrize("after_its_turn", [True, False])
def test_whoever_leaves_the_queue_takes_no_place(after_its_turn: bool) -> None:
    async def work() -> None:
        gate = Gate(1)
        await gate.enter()
        gone, next_one = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
        assert not await settled(gone)
        if after_its_turn:
            gate.leave()
            gone.cancel()
        else:
            gone.cancel()
            await asyncio.wait([gone])
            gate.leave()
        assert await settled(next_one) and gone.cancelled()
        gate.leave()
        assert gate.is_open

    run(work())


def test_where_a_429_says_when_to_come_back_nobody_asks_before_and_somebody_does_then() -> None:
    async def work() -> None:
        gate = watching(4, longest=0.02)
        loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        gate.record_outcome(RateLimited("429", retry_after=3600.0), 0)
        assert not gate.is_open
        await asyncio.wait_for(gate.enter(), 5)
        assert loop.time() - began >= 0.019 and gate.is_open

    run(work())


@pytest.mark.parametrize("trouble", [TimedOut, CutOff, ServerFailed, Unreachable, NoCompletion])
def test_some_calls_in_a_row_that_hang_fail_or_are_cut_pause_the_gate_until_it_resumes(trouble: type[CallFailed]) -> None:
    async def work() -> None:
        gate = after(watching(4), [trouble("no")] * (FAILURES_BEFORE_PAUSE - 1))
        assert gate.is_open
        after(gate, [trouble("not again")] * 3)
        assert (gate.is_open, gate.pausing.is_set(), gate.detail, gate.trouble.pauses) == (False, True, "not again", 1)
        waiting = asyncio.create_task(gate.enter())
        assert not await settled(waiting)
        gate.resume()
        assert await settled(waiting) and gate.is_open

    run(work())


def test_a_reply_in_between_a_429_or_what_the_model_said_are_no_trouble_of_the_endpoint() -> None:
    almost = [ServerFailed("500")] * (FAILURES_BEFORE_PAUSE - 1)
    gate = after(watching(4), [*almost, FINE, *almost])
    assert after(gate, [BUSY, NoText("null")]).trouble.pauses == 0


def test_nobody_enters_a_gate_that_is_shut() -> None:
    async def work() -> None:
        gate = Gate(2)
        await gate.enter()
        gate.shut()
        late = asyncio.create_task(gate.enter())
        gate.leave()
        assert not await settled(late)
        late.cancel()

    run(work())
