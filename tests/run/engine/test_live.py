"""A trial of a live model that is conducted from elsewhere: what is kept when, and what comes to the one who asked.

The relay is called as Ray would call it, in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest
from trials import TINY

from bench.common.errors import RateLimited, ResultsError
from bench.record.messages import Message
from bench.run.engine.live import Conducted
from bench.run.engine.relay import Line, Relay, RemoteModel, RemoteSlots
from bench.run.models.base import Reply, Request, RequestContext, Response
from bench.run.trial import loop
from bench.run.trial.gate import Gate
from bench.run.trial.slots import Slots

REQUEST = Request((Message("user", "one two three"),), 1, RequestContext(TINY.name, ("total",), 1, 1))


class Called:
    """What Ray gives for a call of an actor."""

    def __init__(self, method: Callable[..., Coroutine[Any, Any, object]]):
        self._method = method
        self._future: Future[object] = Future()

    def remote(self, *given: object) -> Called:
        self._future = asyncio.run_coroutine_threadsafe(self._method(*given), asyncio.get_running_loop())
        return self

    def future(self) -> Future[object]:
        return self._future


class Handle:
    """A handle of an actor, as Ray gives it."""

    def __init__(self, actor: object):
        self._actor = actor

    def __getattr__(self, name: str) -> Called:
        return Called(getattr(self._actor, name))


class Scripted:
    """A live model that does what it is given, in order."""

    name, endpoint, concurrency, timing = "scripted", "here", 1, "live"

    def __init__(self, *script: Reply | Exception):
        self._script = list(script)

    async def reply(self, *_: object) -> Reply:
        await asyncio.sleep(0)
        done = self._script.pop(0)
        if isinstance(done, Exception):
            raise done
        return done


class Conducting:
    """A line whose other end is conducted; `course` tells what happened in which order."""

    def __init__(self, *script: Reply | Exception):
        self.course: list[str] = []
        self.gate = Gate(1, watches=True)
        self.slots = Slots(lambda _: self.gate)
        self.model: Any = Scripted(*script)

    def run(self, work: Callable[[RemoteModel, RemoteSlots], Coroutine[Any, Any, None]]) -> None:
        loop.run(self._run(work))

    async def _run(self, work: Callable[[RemoteModel, RemoteSlots], Coroutine[Any, Any, None]]) -> None:
        relay = Handle(Relay())
        line = Line(relay, "trial")
        ended = asyncio.ensure_future(work(RemoteModel(self.model, line), RemoteSlots(line)))
        await Conducted(relay, "trial", self.model, self.slots, self._keeps, lambda _: None).until(ended)
        await ended

    def _keeps(self, response: Response) -> None:
        self.course.append(f"kept {response.outcome.text if isinstance(response.outcome, Reply) else response.outcome.kind}")


async def no_sleep(_: float) -> None:
    pass


async def ask(model: RemoteModel, slots: RemoteSlots) -> Reply:
    slot = slots.slot(REQUEST)
    await slot.take()
    try:
        return await model.reply(REQUEST, no_sleep)
    finally:
        slot.leave()


def test_a_response_is_kept_before_the_trial_has_the_reply() -> None:
    conducting = Conducting(Reply("first"), RateLimited("later", retry_after=0.0), Reply("second"))

    async def work(model: RemoteModel, slots: RemoteSlots) -> None:
        conducting.course.append(f"has {(await ask(model, slots)).text}")
        with pytest.raises(RateLimited, match="later"):
            await ask(model, slots)
        conducting.course.append(f"has {(await ask(model, slots)).text}")

    conducting.run(work)
    assert conducting.course == ["kept first", "has first", "kept rate_limited", "kept second", "has second"]
    assert conducting.gate.trouble.fell == 1 and conducting.gate.is_open


def test_a_bug_of_a_model_is_raised_where_it_was_asked() -> None:
    async def work(model: RemoteModel, slots: RemoteSlots) -> None:
        with pytest.raises(KeyError, match="a bug"):
            await ask(model, slots)

    conducting = Conducting(KeyError("a bug"))
    conducting.run(work)
    assert conducting.course == [] and conducting.gate.is_open


def test_a_slot_that_nobody_waits_for_any_more_is_free_again() -> None:
    async def work(model: RemoteModel, slots: RemoteSlots) -> None:
        first, second = slots.slot(REQUEST), slots.slot(REQUEST)
        await first.take()
        waiting = asyncio.ensure_future(second.take())
        await asyncio.sleep(0.05)
        waiting.cancel()
        first.leave()
        assert (await ask(model, slots)).text == "mine"

    conducting = Conducting(Reply("mine"))
    conducting.run(work)
    assert conducting.gate.is_open


def test_a_trial_whose_worker_is_gone_leaves_its_calls_kept_and_its_slot_free() -> None:
    conducting = Conducting(Reply("paid"))

    async def work(model: RemoteModel, slots: RemoteSlots) -> None:
        await slots.slot(REQUEST).take()
        asking = asyncio.ensure_future(model.reply(REQUEST, no_sleep))
        await asyncio.sleep(0.05)
        asking.cancel()
        raise ConnectionError("the worker died")

    with pytest.raises(ConnectionError):
        conducting.run(work)
    assert conducting.course == ["kept paid"] and conducting.gate.is_open


class Losing(Relay):
    """A relay whose process dies while messages are awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.death = asyncio.Event()

    async def heard(self, trial: str) -> Any:
        hearing = asyncio.ensure_future(super().heard(trial))
        await asyncio.wait((hearing, asyncio.ensure_future(self.death.wait())), return_when=asyncio.FIRST_COMPLETED)
        if self.death.is_set():
            raise ConnectionError("the actor died")
        return hearing.result()


class Slow(Scripted):
    """A model that answers after the relay has died."""

    relay: Losing

    async def reply(self, *given: object) -> Reply:
        self.relay.death.set()
        await asyncio.sleep(0.05)
        return await super().reply(*given)


def test_a_lost_relay_leaves_calls_in_flight_kept_and_begins_no_call_that_waits() -> None:
    conducting = Conducting()
    conducting.model = Slow(Reply("paid"), Reply("never asked"))

    async def run() -> None:
        relay = conducting.model.relay = Losing()
        line = Line(handle := Handle(relay), "trial")
        slots, model = RemoteSlots(line), RemoteModel(conducting.model, line)
        calls = [asyncio.ensure_future(ask(model, slots)) for _ in range(2)]
        conducted = Conducted(handle, "trial", conducting.model, conducting.slots, conducting._keeps, lambda _: None)
        with pytest.raises(ResultsError, match="the relay to the workers is lost"):
            await asyncio.wait_for(conducted.until(asyncio.get_running_loop().create_future()), 5)
        for call in calls:
            call.cancel()

    loop.run(run())
    assert conducting.course == ["kept paid"] and conducting.gate.is_open


def test_who_waits_for_a_slot_or_a_back_off_is_counted_where_the_run_is_conducted() -> None:
    conducting, seen = Conducting(), list[bool]()

    async def work(_: RemoteModel, slots: RemoteSlots) -> None:
        with slots.waiting():
            await asyncio.sleep(0.05)
            seen.append(conducting.slots.is_waiting)
        await asyncio.sleep(0.05)
        seen.append(conducting.slots.is_waiting)

    conducting.run(work)
    assert seen == [True, False]
