"""One call to a model and everything between the prompt and the reply: the slot, the faults, the retries, the account.

A call that fails for a passing reason (429, 5xx, no connection, time-out, connection cut) is made again after a back-off,
within the same attempt. Every request is an event, so that no retry can hide.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bench.errors import CallFailed, CutOff, GaveUp, RateLimited, ServerFailed, TimedOut, Unreachable
from bench.models.base import Message, Model, Reply, Request, RequestContext, Usage
from bench.runtime.clock import Pause, Span, TrialClock, in_seconds
from bench.runtime.events import Called, Cause, Event, Waited
from bench.runtime.faults import Due, FaultSchedule, Receipt
from bench.tokens import count_tokens

Slot = Callable[[Request], asyncio.Semaphore]
"""The bound on the calls in flight at the endpoint that answers this one."""


def unbounded(_: Request) -> asyncio.Semaphore:
    """A slot that nobody else takes."""
    return asyncio.Semaphore()


@dataclass(frozen=True)
class Ask:
    """What a call is for: which attempt at which subtasks, why it is made, and the JSON schema of what it asks for."""

    context: RequestContext
    cause: Cause
    seed: int
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Received:
    """A reply as the architecture gets it, and the faults that it carries."""

    call: int
    text: str
    finish: str
    receipts: tuple[Receipt, ...] = ()
    usage: Usage | None = None


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
class Corrupted:
    """A reply's text after the output faults that were due, and their receipts."""

    text: str
    receipts: tuple[Receipt, ...] = ()


Corrupt = Callable[[Reply, int], Corrupted]


@dataclass
class CallAttempt:
    """One request and what came of it. Only what its faults delay and what the model takes is time in flight.

    begun     whether it had its slot at the endpoint
    asked     whether it reached the model; a fault may keep it from being sent, or answer in the model's place
    reply     what came, or what the model said before the connection was cut
    failure   what hindered it; None where a reply came
    """

    call: int
    try_: int
    cause: Cause
    request: Request
    begun: bool = False
    asked: bool = False
    reply: Reply | None = None
    failure: CallFailed | None = None
    receipts: list[Receipt] = field(default_factory=list)
    started: int = 0
    delays: list[Span] = field(default_factory=list)
    at_model: Span | None = None

    @property
    def delay(self) -> int:
        return sum(span.length for span in self.delays)

    @property
    def length(self) -> int:
        return self.delay + (self.at_model.length if self.at_model else 0)

    def abandon(self) -> None:
        """Whoever asked went away: what had begun is paid all the same."""
        gone = "the client went away before a reply came"
        self.failure = TimedOut(gone) if self.begun else Unreachable(f"{gone}, while the call waited for a slot")


class Caller:
    """Makes the calls of one trial, and keeps its own count of their tokens, apart from the events."""

    def __init__(
        self,
        model: Model,
        clock: TrialClock,
        schedule: FaultSchedule,
        slot: Slot,
        back_off: BackOff,
        emit: Callable[[Event], None],
        keep: Callable[[str], str],
    ):
        self._model, self._clock, self._schedule, self._slot = model, clock, schedule, slot
        self._back_off, self._emit, self._keep = back_off, emit, keep
        self._sent: Counter[tuple[tuple[Message, ...], int]] = Counter()
        self._answered: Counter[tuple[tuple[Message, ...], int]] = Counter()
        self.calls = 0
        self.tokens = count_tokens("")  # none; but loading the ruler's table now keeps it out of framework time

    async def call(self, messages: Sequence[Message], ask: Ask, corrupt: Corrupt) -> Received:
        """Ask until a reply comes; `corrupt` strikes it. Raises GaveUp where injected failures used up the tries, else
        the CallFailed that no further try could mend."""
        request = Request(tuple(messages), ask.seed, ask.context, schema=ask.schema)
        faults = self.due(ask)
        cause = ask.cause
        for try_ in itertools.count(1):
            received = await self._try(request, faults, try_, cause, corrupt)
            if isinstance(received, Received):
                return received
            self._give_up(ask, received, try_)
            cause = "retry" if received.paid else cause  # what was refused unpaid costs no tokens twice
            await self._back_off_for(self._back_off.seconds(try_, received.retry_after))
        raise AssertionError("unreachable")

    async def send(
        self, messages: Sequence[Message], ask: Ask, faults: list[Due], try_: int, corrupt: Corrupt
    ) -> Received | CallFailed:
        """One request on a framework's behalf, which makes its retries itself; `faults` loses those that it uses up."""
        return await self._try(Request(tuple(messages), ask.seed, ask.context), faults, try_, ask.cause, corrupt)

    def due(self, ask: Ask) -> list[Due]:
        """The call faults due for this attempt. A refusal is a reply: it comes after all failures."""
        faults = self._schedule.due("call", ask.context.subtasks, ask.context.attempt)
        return sorted(faults, key=lambda due: due.fault.effect == "refusal")

    def elsewhere(self) -> AbstractContextManager[None]:
        return self._clock.elsewhere()

    def expect(self, calls: int) -> None:
        self._clock.expect(calls)

    def arrival(self, what: object, together: int | None, again: bool) -> AbstractAsyncContextManager[None]:
        """A framework's call is in flight, over the endpoint."""
        return self._clock.arrival(what, together, again=again)

    def pause(self) -> Pause:
        """A framework's own back-off begins."""
        return self._clock.pause()

    def waited(self, pause: Pause) -> None:
        """Leave the event of a framework's own back-off, which ends now."""
        self._emit(Waited("backoff", in_seconds(pause.since), in_seconds(self._clock.resume(pause))))

    def _give_up(self, ask: Ask, failure: CallFailed, tries: int) -> None:
        if failure.passing and tries < self._back_off.tries:
            return
        if failure.injected:
            raise GaveUp(ask.context.subtasks, f"no reply after {tries} tries: {failure.detail}") from failure
        raise failure

    async def _try(
        self, request: Request, faults: list[Due], try_: int, cause: Cause, corrupt: Corrupt
    ) -> Received | CallFailed:
        self.calls += 1
        flight = CallAttempt(self.calls, try_, cause, request, started=self._clock.now())
        try:
            async with self._slot_held(request):
                flight.begun, flight.started = True, self._clock.now()
                await self._fly(flight, faults)
        except asyncio.CancelledError:
            flight.abandon()
            self._account(flight, None)
            raise
        if flight.failure:
            self._account(flight, None)
            return flight.failure
        assert flight.reply  # a flight ends with a failure or with a reply
        corrupted = corrupt(flight.reply, flight.call)
        self._account(flight, corrupted.text)
        receipts = (*flight.receipts, *corrupted.receipts)
        return Received(flight.call, corrupted.text, flight.reply.finish, receipts, flight.reply.usage)

    @asynccontextmanager
    async def _slot_held(self, request: Request) -> AsyncIterator[None]:
        slot = self._slot(request)
        if slot.locked():  # asked rather than timed: a loaded machine takes its time over a free slot, too
            await self._wait_for(slot)
        else:
            await slot.acquire()
        try:
            yield
        finally:
            slot.release()

    async def _wait_for(self, slot: asyncio.Semaphore) -> None:
        """Wait for a slot and take it; the wait is an event, whether or not it is seen to its end."""
        began = self._clock.now()
        try:
            with self._clock.standing("wait"):
                await slot.acquire()
        finally:
            self._emit(self._waited("slot", began))

    async def _fly(self, flight: CallAttempt, faults: list[Due]) -> None:
        """Send a request, or let the call faults due have it. The faults that it uses up leave the list."""
        cut = False
        while faults and not cut:
            receipt = self._schedule.plan(faults.pop(0), flight.call)
            receipt.enter("delivered")
            fault = receipt.due.fault
            match fault.effect:
                case "slow":
                    await self._delay(flight, fault.seconds)
                case "refusal":
                    flight.receipts.append(receipt)
                case "cut_off":
                    receipt.enter("seen")
                    cut = True
                case effect:
                    receipt.enter("seen")
                    flight.failure = await self._injected(flight, effect, fault.seconds)
                    return
        if flight.receipts:
            flight.reply = Reply("", finish="content_filter")
            return
        await self._ask(flight)
        if cut and flight.reply:
            half = flight.reply.text[: len(flight.reply.text) // 2]
            flight.failure = CutOff("the connection broke in mid-reply (injected)", partial=half, injected=True)

    async def _ask(self, flight: CallAttempt) -> None:
        asked = (flight.request.messages, flight.request.seed)
        self._sent[asked] += 1
        flight.asked = True
        request = replace(flight.request, occurrence=self._sent[asked], answers=self._answered[asked])
        try:
            with self._clock.standing("call") as flight.at_model:
                flight.reply = await self._model.reply(request, self._clock.sleep)
                self._answered[asked] += 1
                if flight.reply.took is not None:
                    self._clock.advance(flight.reply.took)
        except CallFailed as failure:
            flight.failure = failure

    async def _injected(self, flight: CallAttempt, effect: str, seconds: float) -> CallFailed:
        if effect == "rate_limit":
            return RateLimited("429 (injected)", retry_after=seconds, injected=True)
        if effect == "server_error":
            return ServerFailed("500 (injected)", injected=True)
        await self._delay(flight, seconds)
        return TimedOut(f"no reply within {seconds:g} s (injected)", injected=True)

    async def _delay(self, flight: CallAttempt, seconds: float) -> None:
        with self._clock.standing("call") as span:
            flight.delays.append(span)
            await self._clock.sleep(seconds)

    async def _back_off_for(self, seconds: float) -> None:
        started = self._clock.now()
        with self._clock.standing("wait"):
            await self._clock.sleep(seconds)
        self._emit(self._waited("backoff", started))

    def _waited(self, why: Literal["slot", "backoff"], since: int) -> Waited:
        return Waited(why, in_seconds(since), in_seconds(self._clock.now() - since))

    def _account(self, flight: CallAttempt, delivered: str | None) -> None:
        """Leave the event of a call. What the provider was never paid for counts no tokens."""
        request, reply, failure = flight.request, flight.reply, flight.failure
        received = failure.partial if failure else reply.text if reply else ""
        said = reply.text if reply else received
        given = received if failure else delivered
        paid = failure is None or failure.paid
        tokens_in = sum(count_tokens(message.content) for message in request.messages) if paid else 0
        tokens_out = count_tokens(received) if paid else 0
        self.tokens += tokens_in + tokens_out
        usage = reply.usage if reply else None
        self._emit(
            Called(
                call=flight.call,
                subtasks=request.context.subtasks,
                attempt=request.context.attempt,
                try_=flight.try_,
                cause=flight.cause,
                started=in_seconds(flight.started),
                seconds=in_seconds(flight.length),
                seed=request.seed,
                messages=tuple((message.role, self._keep(message.content)) for message in request.messages),
                reply=self._keep(said) if reply or said else None,
                delivered=self._keep(given) if given is not None and given != said else None,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                usage_in=usage.tokens_in if usage else None,
                usage_out=usage.tokens_out if usage else None,
                finish=reply.finish if reply else None,
                failure=failure.kind if failure else None,
                detail=failure.detail if failure else "",
                delay=in_seconds(flight.delay),
                asked=flight.asked,
                retry_after=failure.retry_after if failure else None,
                reused=reply.reused if reply else False,
                by=failure.by if failure else reply.by if reply else "",
            )
        )
