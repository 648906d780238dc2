"""One call to a model and everything between the prompt and the reply: the slot, the faults, the retries, the account.

A call that fails for a passing reason (429, 5xx, no connection, time-out, connection cut) is made again after a back-off,
within the same attempt. Every request is an event, so that no retry can hide.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from bench.errors import CallFailed, CutOff, GaveUp, RateLimited, ServerFailed, TimedOut
from bench.models.base import Message, Model, Purpose, Reply, Request
from bench.runtime.clock import TrialClock
from bench.runtime.events import Called, Cause, Event, Waited
from bench.runtime.faults import Due, Receipt, Weather
from bench.tokens import count_tokens

SHORTEST_WAIT = 0.001
"""Seconds. Opening a free slot takes microseconds and is not worth an event."""

Slot = Callable[[], AbstractAsyncContextManager[object]]
"""Opens a context in which one call may be in flight at the model's endpoint."""


@dataclass(frozen=True)
class Ask:
    """What a call is for: which attempt at which subtasks, and why it is made."""

    purpose: Purpose
    cause: Cause
    seed: int


@dataclass(frozen=True)
class Received:
    """A reply as the architecture gets it, and the faults that it carries."""

    call: int
    text: str
    finish: str
    receipts: tuple[Receipt, ...] = ()


@dataclass(frozen=True)
class BackOff:
    """How failed calls are made again: `tries` requests at most, after `base` seconds, doubled each time up to `most`.

    A server's Retry-After takes the doubling's place, but never waits longer than `most`.
    """

    tries: int = 6
    base: float = 1.0
    most: float = 60.0

    def seconds(self, failed: int, retry_after: float | None) -> float:
        """How long to wait after `failed` failures in a row."""
        doubled: float = self.base * 2.0 ** (failed - 1)
        return min(doubled if retry_after is None else max(retry_after, 0.0), self.most)


@dataclass(frozen=True)
class Spoiled:
    """A reply's text after the output faults that were due, and their receipts."""

    text: str
    receipts: tuple[Receipt, ...] = ()


Spoil = Callable[[Reply, int], Spoiled]


class Caller:
    """Makes the calls of one trial, and keeps its own count of their tokens, apart from the events."""

    def __init__(
        self,
        model: Model,
        clock: TrialClock,
        weather: Weather,
        slot: Slot,
        back_off: BackOff,
        emit: Callable[[Event], None],
        keep: Callable[[str], str],
    ):
        self._model, self._clock, self._weather, self._slot = model, clock, weather, slot
        self._back_off, self._emit, self._keep = back_off, emit, keep
        self.calls = 0
        self.tokens = count_tokens("")  # none; but loading the ruler's table now keeps it out of framework time

    async def call(self, messages: Sequence[Message], ask: Ask, spoil: Spoil) -> Received:
        """Ask until a reply comes; `spoil` strikes it. Raises GaveUp where injected failures used up the tries, else
        the CallFailed that no further try could mend."""
        request = Request(tuple(messages), ask.seed, ask.purpose)
        faults = self._weather.due("call", ask.purpose.subtasks, ask.purpose.attempt)
        faults.sort(key=lambda due: due.fault.effect == "refusal")  # a refusal is a reply: it comes after all failures
        cause = ask.cause
        for try_ in itertools.count(1):
            received = await self._try(request, faults, try_, cause, spoil)
            if isinstance(received, Received):
                return received
            self._give_up(ask, received, try_)
            cause = "retry" if received.paid else cause  # what was refused unpaid costs no tokens twice
            await self._back_off_for(self._back_off.seconds(try_, received.retry_after))
        raise AssertionError("unreachable")

    def _give_up(self, ask: Ask, failure: CallFailed, tries: int) -> None:
        if failure.passing and tries < self._back_off.tries:
            return
        if failure.injected:
            raise GaveUp(ask.purpose.subtasks, f"no reply after {tries} tries: {failure.detail}") from failure
        raise failure

    async def _try(self, request: Request, faults: list[Due], try_: int, cause: Cause, spoil: Spoil) -> Received | CallFailed:
        self.calls += 1
        call, carried = self.calls, list[Receipt]()
        async with self._slot_held():
            started = self._clock.now()
            with self._clock.standing("call"):
                outcome = await self._in_flight(request, faults, call, carried)
            seconds = self._clock.now() - started
        if isinstance(outcome, CallFailed):
            self._account(request, call, try_, cause, started, seconds, outcome, None)
            return outcome
        spoiled = spoil(outcome, call)
        self._account(request, call, try_, cause, started, seconds, outcome, spoiled.text)
        return Received(call, spoiled.text, outcome.finish, (*carried, *spoiled.receipts))

    @asynccontextmanager
    async def _slot_held(self) -> AsyncIterator[None]:
        began = self._clock.now()
        slot = self._slot()
        with self._clock.standing("wait"):
            await slot.__aenter__()
        try:
            if self._clock.now() - began > SHORTEST_WAIT:
                self._emit(Waited("slot", began, self._clock.now() - began))
            yield
        finally:
            await slot.__aexit__(None, None, None)

    async def _in_flight(self, request: Request, faults: list[Due], call: int, carried: list[Receipt]) -> Reply | CallFailed:
        """The model's reply, or what the call faults due make of it. The faults that this request uses up leave the list."""
        cut = False
        while faults and not cut:
            receipt = self._weather.plan(faults.pop(0), call)
            receipt.enter("delivered")
            match receipt.due.fault.effect:
                case "slow":
                    await self._clock.sleep(receipt.due.fault.seconds)
                case "refusal":
                    carried.append(receipt)
                case "cut_off":
                    receipt.enter("seen")
                    cut = True
                case effect:
                    receipt.enter("seen")
                    return await self._injected(effect, receipt.due.fault.seconds)
        if any(receipt.due.fault.effect == "refusal" for receipt in carried):
            return Reply("", finish="content_filter")
        try:
            reply = await self._model.reply(request, self._clock.sleep)
        except CallFailed as failure:
            return failure
        if cut:
            return CutOff(
                "the connection broke in mid-reply (injected)", partial=reply.text[: len(reply.text) // 2], injected=True
            )
        return reply

    async def _injected(self, effect: str, seconds: float) -> CallFailed:
        if effect == "rate_limit":
            return RateLimited("429 (injected)", retry_after=seconds, injected=True)
        if effect == "server_error":
            return ServerFailed("500 (injected)", injected=True)
        await self._clock.sleep(seconds)
        return TimedOut(f"no reply within {seconds:g} s (injected)", injected=True)

    async def _back_off_for(self, seconds: float) -> None:
        started = self._clock.now()
        with self._clock.standing("wait"):
            await self._clock.sleep(seconds)
        self._emit(Waited("backoff", started, self._clock.now() - started))

    def _account(
        self,
        request: Request,
        call: int,
        try_: int,
        cause: Cause,
        started: float,
        seconds: float,
        outcome: Reply | CallFailed,
        delivered: str | None,
    ) -> None:
        """Leave the event of a call. What the provider was never paid for counts no tokens."""
        failure = outcome if isinstance(outcome, CallFailed) else None
        text = outcome.partial if isinstance(outcome, CallFailed) else outcome.text
        usage = None if isinstance(outcome, CallFailed) else outcome.usage
        paid = failure is None or failure.paid
        tokens_in = sum(count_tokens(message.content) for message in request.messages) if paid else 0
        tokens_out = count_tokens(text) if paid else 0
        self.tokens += tokens_in + tokens_out
        self._emit(
            Called(
                call=call,
                subtasks=request.purpose.subtasks,
                attempt=request.purpose.attempt,
                try_=try_,
                cause=cause,
                started=started,
                seconds=seconds,
                seed=request.seed,
                messages=tuple((message.role, self._keep(message.content)) for message in request.messages),
                reply=self._keep(text) if failure is None or text else None,
                delivered=self._keep(delivered) if delivered is not None and delivered != text else None,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                usage_in=usage.tokens_in if usage else None,
                usage_out=usage.tokens_out if usage else None,
                finish=None if isinstance(outcome, CallFailed) else outcome.finish,
                failure=failure.kind if failure else None,
                detail=failure.detail if failure else "",
            )
        )
