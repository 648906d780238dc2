"""A striker strikes the call that it was told, at its point, and its journal says who was in flight when rows changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise

import pytest

from bench.probe.run.gateway.fault_injector import CellFault, FaultInjector
from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.journal import Journal
from bench.probe.run.gateway.subject import OthersStatement
from bench.record.probe_rows import RowDifference, StoreReading


class Ledger:
    """Stores that hold a list of payments."""

    def __init__(self) -> None:
        self.paid = list[str]()

    settle = 0.01

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        now = await self.read()

        async def reading() -> StoreReading:
            await asyncio.sleep(0)
            return now

        return reading

    async def read(self) -> StoreReading:
        rows = tuple(RowDifference("shop", "paid", f"[{n}]", None, {"who": who}) for n, who in enumerate(self.paid))
        return StoreReading(" ".join(self.paid), rows)

    async def reading(self) -> StoreReading:
        await asyncio.sleep(0)
        return await self.read()

    async def change(self, name: str, sql: str) -> None:
        self.paid.append(f"{sql} of another writer in {name}")


class Counter:
    """A door, a server that pays, and an agent that can be killed."""

    def __init__(self, point: str | None, form: str = "", *, one_by_one: bool = False, patience: float = 5.0):
        self.ledger, self.deaths, self.number = Ledger(), 0, 0
        self.journal = Journal(lambda value: value, lambda door, tool, value: f"{door}.{tool}{value}", self.ledger)
        acting = frozenset(f"shop.pay{{'who': '{who}'}}" for who in ("ada", "bob"))
        step = OthersStatement("shop", "a payment")
        strike = CellFault("shop.pay{'who': 'ada'}", 1, point, form, acting, step) if point else None
        self.gate = FaultInjector(self.journal, strike, patience, self.kill, one_by_one=one_by_one)

    async def kill(self) -> None:
        self.deaths += 1

    async def deliver(self, who: str) -> bytes:
        self.ledger.paid.append(who)
        return b"once more"

    async def call(self, who: str, *, tool: str = "pay", waits: Sequence[asyncio.Event] = ()) -> tuple[str, str]:
        self.number += 1
        call = LiveCall(self.number, "shop", "http", tool, {"who": who})
        before = await self.gate.arrive(call)
        if before in ("pass", "twice", "again"):
            call.deliver = partial(self.deliver, who)
            for event in waits:
                await event.wait()
            self.ledger.paid += [who] * (2 if before == "twice" else 1) if tool == "pay" else []
            after = await self.gate.answer(call, f"answer {self.number}".encode())
        else:
            after = "give" if before != "drop" else "drop"
        if after not in ("drop", "break", "silence"):
            await self.gate.note_given(call)
        return before, after

    def in_flight(self) -> list[tuple[int, ...]]:
        return [tuple(reading.calls) for reading in self.journal.readings]


@pytest.mark.parametrize(
    ("point", "form", "agent_run", "deaths"),
    [
        ("error", "", ("error", "give"), 0),
        ("lost", "break", ("pass", "break"), 0),
        ("lost", "silence", ("pass", "silence"), 0),
        ("late", "", ("pass", "late"), 0),
        ("twice", "", ("twice", "give"), 0),
        ("killed_before", "", ("drop", "drop"), 1),
        ("unacknowledged", "", ("pass", "drop"), 1),
        ("acknowledged", "", ("pass", "give"), 1),
        ("empty", "", ("pass", "empty"), 0),
        ("garbled", "", ("pass", "garbled"), 0),
        ("too_large", "", ("pass", "too_large"), 0),
        ("model_lost", "break", ("pass", "break"), 0),
        ("model_error", "", ("error", "give"), 0),
        ("rate_limit", "", ("rate_limit", "give"), 0),
        ("malformed", "", ("malformed", "give"), 0),
        ("cut_off", "", ("pass", "cut_off"), 0),
        ("stream_before", "", ("pass", "break"), 0),
        ("stream_half", "", ("pass", "half"), 0),
    ],
)
def test_a_point_is_struck_once_at_its_call(point: str, form: str, agent_run: tuple[str, str], deaths: int) -> None:
    async def calls() -> list[tuple[str, str]]:
        made = [await counter.call("bob"), await counter.call("ada")]
        counter.gate.start_again()
        return [*made, await counter.call("ada")]

    counter = Counter(point, form)
    assert asyncio.run(calls()) == [("pass", "give"), agent_run, ("pass", "give")]
    assert counter.deaths == deaths
    assert counter.gate.is_delivered
    assert [entry.point for entry in counter.journal.calls] == [None, point, None]


def test_the_next_request_after_an_answer_is_held_back_where_the_agent_dies_at_it() -> None:
    async def calls() -> list[tuple[str, str]]:
        return [await counter.call("ada"), await counter.call("bob")]

    counter = Counter("acknowledged_next")
    assert asyncio.run(calls()) == [("pass", "give"), ("drop", "drop")]
    assert (counter.deaths, counter.ledger.paid) == (1, ["ada"])
    alone = Counter("acknowledged_next")
    asyncio.run(alone.call("ada"))
    assert not alone.gate.is_delivered


def test_a_stale_read_gets_the_answer_that_it_had_before() -> None:
    async def calls() -> LiveCall:
        await counter.call("ada", tool="look")
        await counter.call("bob")
        await counter.call("ada", tool="look")
        assert counter.gate.struck_call
        return counter.gate.struck_call.call

    counter = Counter(None)
    counter.gate = FaultInjector(counter.journal, CellFault("shop.look{'who': 'ada'}", 2, "stale", ""), 5.0, counter.kill)
    assert asyncio.run(calls()).replacement == b"answer 1"


def test_a_change_is_the_doing_of_the_calls_in_flight_together() -> None:
    async def calls() -> None:
        go = asyncio.Event()
        both = asyncio.gather(counter.call("ada", waits=[go]), counter.call("bob", waits=[go]))
        await asyncio.sleep(0.01)
        go.set()
        await both
        await counter.call("cy")

    counter = Counter(None)
    asyncio.run(calls())
    assert counter.in_flight() == [(1, 2), (3,)]


def test_one_by_one_each_change_is_the_doing_of_one_call() -> None:
    async def calls() -> None:
        await asyncio.gather(counter.call("ada"), counter.call("bob"), counter.call("cy"))

    counter = Counter(None, one_by_one=True)
    asyncio.run(calls())
    assert counter.in_flight() == [(1,), (2,), (3,)]


def test_calls_that_need_each_other_do_not_wait_for_ever_one_by_one() -> None:
    async def calls() -> None:
        bob_came = asyncio.Event()

        async def bob() -> None:
            await asyncio.sleep(0.01)
            await counter.call("bob")
            bob_came.set()

        await asyncio.wait_for(asyncio.gather(counter.call("ada", waits=[bob_came]), bob()), 5)

    counter = Counter(None, one_by_one=True, patience=0.05)
    asyncio.run(calls())
    assert counter.in_flight() == [(1, 2)]


def test_what_changed_while_nobody_called_is_the_doing_of_no_call() -> None:
    async def calls() -> None:
        await counter.call("ada")
        await counter.journal.stop_watching(until_settled=True)
        counter.ledger.paid.append("a stranger's")
        await counter.call("bob")

    counter = Counter(None)
    asyncio.run(calls())
    assert counter.in_flight() == [(1,), (), (2,)]


def test_what_a_call_writes_soon_after_its_answer_is_its_doing() -> None:
    async def calls() -> None:
        await counter.call("ada")
        counter.ledger.paid.append("ada, by a worker")
        await counter.call("bob")
        counter.ledger.paid.append("bob, by a worker")
        await counter.journal.read()

    counter = Counter(None)
    asyncio.run(calls())
    assert [(reading.calls, len(reading.changed)) for reading in counter.journal.readings] == [
        ((1,), 1), ((1,), 1), ((2,), 1), ((2,), 1),
    ]  # fmt: skip


def test_stores_are_watched_until_they_have_settled_though_the_agent_goes_on_without_a_call() -> None:
    async def calls() -> None:
        await counter.call("ada")
        await asyncio.sleep(0)
        counter.ledger.paid.append("ada, by a worker")
        await counter.journal.stop_watching(until_settled=True)
        counter.ledger.paid.append("a stranger's")
        await counter.journal.read()

    counter = Counter(None)
    asyncio.run(calls())
    assert counter.in_flight() == [(1,), (1,), ()]


def test_one_by_one_a_call_waits_until_what_the_call_before_it_writes_late_is_seen() -> None:
    async def calls() -> None:
        loop = asyncio.get_running_loop()
        await counter.call("ada")
        loop.call_later(0.01, counter.ledger.paid.append, "ada, by a worker")
        await counter.call("bob")

    counter = Counter(None, one_by_one=True)
    counter.ledger.settle = 0.3
    asyncio.run(calls())
    assert counter.in_flight() == [(1,), (1,), (2,)]


def test_one_by_one_what_comes_after_an_answer_is_nobodys_call() -> None:
    async def calls() -> None:
        await counter.call("ada")
        counter.ledger.paid.append("the agent's own")
        await counter.call("bob")

    counter = Counter(None, one_by_one=True)
    asyncio.run(calls())
    assert counter.in_flight() == [(1,), (), (2,)]


class SlowLedger(Ledger):
    """Stores whose snapshot is taken at once, and is read slowly."""

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        now = await super().snapshot()

        async def reading() -> StoreReading:
            await asyncio.sleep(0.4)
            return await now()

        return reading


def slow(counter: Counter) -> Counter:
    counter.ledger = counter.journal._stores = SlowLedger()
    return counter


def test_an_answer_does_not_wait_until_the_snapshot_is_read_and_the_next_call_does() -> None:
    async def calls() -> list[float]:
        loop = asyncio.get_running_loop()
        times = [loop.time()]
        for who in ("ada", "bob"):
            await counter.call(who)
            times.append(loop.time())
        await counter.journal.read()
        return [later - earlier for earlier, later in pairwise(times)]

    counter = slow(Counter(None))
    first, second = asyncio.run(calls())
    assert first < 0.3 < 0.39 < second
    assert [(reading.calls, len(reading.changed)) for reading in counter.journal.readings] == [((1,), 1), ((2,), 1)]
    assert counter.gate.abandoned == ""


def test_a_call_that_is_made_again_while_the_gateway_holds_it_is_the_probes_doing() -> None:
    async def calls() -> None:
        await counter.call("ada")
        held = asyncio.create_task(counter.call("bob"))
        await asyncio.sleep(0.3)  # the client's patience
        await asyncio.gather(held, counter.call("bob"))

    counter = slow(Counter(None))
    asyncio.run(calls())
    assert re.fullmatch(
        r"the client of shop.pay gave up call 2 after the gateway had held it for 0\.\d s to read the stores",
        counter.gate.abandoned,
    )


def test_a_call_that_was_held_is_done_before_the_agents_next_effect() -> None:
    async def calls() -> None:
        counter.number, landing = 1, asyncio.Event()
        held = LiveCall(1, "shop", "http", "pay", {"who": "ada"})
        assert await counter.gate.arrive(held) == "hold"

        async def deliver() -> bytes:
            await landing.wait()
            return await counter.deliver("ada")

        held.deliver = deliver
        counter.gate.note_wait_end(held, "disconnected")
        await counter.call("ada", tool="look")
        later = asyncio.create_task(counter.call("bob"))
        await asyncio.sleep(0.1)
        assert counter.ledger.paid == []
        landing.set()
        await later
        await counter.journal.read()

    counter = Counter("in_flight")
    asyncio.run(calls())
    changes = [(tuple(reading.calls), len(reading.changed)) for reading in counter.journal.readings if reading.changed]
    assert changes == [((1,), 1), ((3,), 1)]


def test_a_client_that_cancels_a_call_which_the_gateway_holds_is_noted() -> None:
    async def calls() -> None:
        await counter.call("ada")
        held = asyncio.create_task(counter.call("bob"))
        await asyncio.sleep(0.01)
        counter.gate.note_wait_end(counter.journal.calls[1].call, "cancelled")
        await held

    counter = slow(Counter(None))
    asyncio.run(calls())
    assert "gave up call 2" in counter.gate.abandoned


def test_equal_calls_that_are_made_at_the_same_time_are_the_agents_own() -> None:
    async def calls() -> None:
        await asyncio.gather(counter.call("ada"), counter.call("ada"), counter.call("ada"))

    counter = slow(Counter(None))
    asyncio.run(calls())
    assert counter.gate.abandoned == ""


def test_what_still_arrives_after_the_death_is_dropped() -> None:
    async def calls() -> list[tuple[str, str]]:
        return [await counter.call("ada"), await counter.call("bob")]

    counter = Counter("unacknowledged")
    assert asyncio.run(calls()) == [("pass", "drop"), ("drop", "drop")]
    assert counter.deaths == 1
