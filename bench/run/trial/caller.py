"""One call to a model and everything between the prompt and the reply: the slot, the faults, the retries, the account.

A call that fails for a passing reason (429, 5xx, no connection, time-out, connection cut) is made again after a back-off,
within the same attempt. Every request is an event, so that no retry can hide.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

from bench.common.errors import BrokenConnection, CallFailed, GaveUp, whole_text
from bench.common.tokens import count_tokens, texts_to_count
from bench.record.events import Called, Refused, SetAside, Waited
from bench.record.messages import Message, stored
from bench.record.tool_calls import text_of
from bench.run.answers.places import Schema
from bench.run.models.base import ExchangedModel, Model, Reply, Request, RequestContent, Response
from bench.run.models.counting import count_and_digest, is_long, texts_written, tokens_read, tokens_written
from bench.run.trial.call import BackOff, CallAttempt, Lost, Received, await_flight, purpose_after_loss
from bench.run.trial.causes import CallPurpose
from bench.run.trial.clock import Pause, TrialClock, in_seconds
from bench.run.trial.drafts import LONG_REPLY_CHARS
from bench.run.trial.effects import AskerDies, CallEffect, Disturbance, Send, effect_at
from bench.run.trial.faults import DueFault, FaultSchedule
from bench.run.trial.injection import Corrupted
from bench.run.trial.log import TrialLog
from bench.run.trial.slots import Slot, Slots

LONGEST_DETAIL = 120
"""Characters of a bug's message that its call's event keeps; the trial keeps its traceback."""

Corrupt = Callable[[Reply, int], Corrupted]
"""Returns the reply to the call of this number after the due content faults."""


@dataclass
class Tally:
    """How often the same request was sent in this trial, and how many replies came to it."""

    sent: int = 0
    answered: int = 0


class Caller:
    """Makes the calls of one trial and adds up their tokens. `read_ahead` gets each long reply, in a thread. `abandoned` is the
    last call whose client went away. `broken_off` gets each reply and its call's number, and returns a failure if the agent's
    process dies before the reply has arrived whole."""

    def __init__(
        self,
        model: Model,
        clock: TrialClock,
        schedule: FaultSchedule,
        slots: Slots,
        back_off: BackOff,
        log: TrialLog,
        read_ahead: Callable[[str], object] = lambda _: None,
        broken_off: Callable[[Reply, int], CallFailed | None] = lambda _, __: None,
    ):
        self._model, self._clock, self._schedule, self._slots = model, clock, schedule, slots
        self._back_off, self._log = back_off, log
        self._tallies: dict[RequestContent, Tally] = {}
        self.calls = 0
        self.abandoned: Lost | None = None
        self._read_ahead, self._broken_off = read_ahead, broken_off
        self.tokens = count_tokens("")  # 0; but this loads the tokenizer's table outside of framework time

    @property
    def parameters(self) -> Mapping[str, object]:
        """The model's parameters, the same for every request."""
        return self._model.parameters

    def model_in(self, life: int) -> Model:
        """Return the model that answers a process of the agent: a routed model can be exchanged at a crash. `life` is the
        number of the process."""
        return self._model.in_life(life) if isinstance(self._model, ExchangedModel) else self._model

    async def call(self, messages: Sequence[Message], purpose: CallPurpose, schema: Schema, corrupt: Corrupt) -> Received:
        """Send a request, and retry after passing failures, until a reply comes.

        Args:
            messages: The messages of the request.
            purpose: Why the call is made: its cause, seed and context.
            schema: The form of the answer.
            corrupt: A function that returns the reply with the changes of the faults that are due for replies.

        Returns:
            The reply.

        Raises:
            GaveUp: Injected failures used up the tries.
            CallFailed: The call failed, and no further try could repair that.
            Crashed: The agent dies in mid-reply.
        """
        faults = self.due_faults(purpose)
        for try_ in itertools.count(1):
            outcome = await self.send(messages, purpose, faults, try_, corrupt, schema)
            if isinstance(outcome, Received):
                return outcome
            if isinstance(outcome.failure, AskerDies):
                outcome.failure.die()
            self._check_retry(purpose, outcome.failure, try_)
            purpose = purpose_after_loss(outcome, purpose)
            with self._waiting("backoff"):
                await self._clock.sleep(self._back_off.seconds(try_, outcome.failure.retry_after))
        raise AssertionError("unreachable")

    async def send(
        self,
        messages: Sequence[Message],
        purpose: CallPurpose,
        faults: list[DueFault],
        try_: int,
        corrupt: Corrupt,
        schema: Schema | None = None,
        options: str = "",
    ) -> Received | Lost:
        """Send one request once, through the faults that are due, and log the call. A framework with its own retries calls
        this.

        Args:
            messages: The messages of the request.
            purpose: Why the call is made: its cause, seed and context.
            faults: The faults that are due; those that are used up are removed from the list.
            try_: The number of the try, from 1.
            corrupt: A function that returns the reply with the changes of the faults that are due for replies.
            schema: The form of the answer, if one is asked for.
            options: Further options of the request.

        Returns:
            The reply, or the failure of the call.
        """
        self.calls += 1
        request = Request(tuple(messages), purpose.seed, purpose.context, schema=schema, options=options)
        attempt = CallAttempt(self.calls, try_, purpose, request, started=self._clock.now())
        try:
            if is_long(request):
                await self._finish_in_thread(functools.partial(count_and_digest, request))
            slot = attempt.slot = await self._take_slot(request)
            try:
                attempt.begun, attempt.started = True, self._clock.now()
                await self._send_with_faults(attempt, faults)
            finally:
                slot.leave()
            if long_texts := texts_to_count(_received_texts(attempt)):
                await self._finish_in_thread(lambda: [count_tokens(text) for text in long_texts])
            if attempt.reply and len(attempt.reply.text) > LONG_REPLY_CHARS:
                await self._finish_in_thread(functools.partial(self._read_ahead, attempt.reply.text))
        except asyncio.CancelledError:
            failure = attempt.abandon()
            self.abandoned = Lost(failure, self._log_call(attempt, None))
            raise
        except Exception as bug:
            attempt.failure = BrokenConnection(
                f"{type(bug).__name__}: {' '.join(whole_text(str(bug)).split())[:LONGEST_DETAIL]}"
            )
            self._log_call(attempt, None)
            raise
        finally:
            for response in attempt.responses:
                self._log.on_counted(response)
        if attempt.reply and not attempt.failure:
            attempt.failure = self._broken_off(attempt.reply, attempt.call)
        if attempt.failure:
            return Lost(attempt.failure, self._log_call(attempt, None))
        assert attempt.reply  # a call ends with a failure or with a reply
        try:
            corrupted = corrupt(attempt.reply, attempt.call)
        except Exception:
            self._log_call(attempt, attempt.reply.text)
            raise
        self._log_call(attempt, corrupted.text)
        reply, receipts = attempt.reply, (*attempt.receipts, *corrupted.receipts)
        undamaged, beside_text = reply.text if corrupted.text != reply.text else None, (reply.tool_calls, reply.extra)
        return Received(attempt.call, corrupted.text, reply.finish, receipts, reply.usage, undamaged, *beside_text)

    async def _finish_in_thread(self, work: Callable[[], object]) -> None:
        """Run `work` in a thread and wait until it has ended, even if the call is cancelled."""
        task = asyncio.ensure_future(self._clock.run_in_thread(work))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await task
            raise

    def due_faults(self, purpose: CallPurpose) -> list[DueFault]:
        """Return the faults at point `call` that are due for an attempt. Faults that replace the reply come after all faults
        that make the call fail."""
        context = purpose.context
        faults = self._schedule.due("call", context.subtasks, context.attempt, context.sample)
        return sorted(faults, key=lambda due: _effect(due).changes_reply)

    def elsewhere(self) -> AbstractContextManager[None]:
        """Count the block as work outside of this event loop (`TrialClock.elsewhere`)."""
        return self._clock.elsewhere()

    def expect(self, calls: int) -> None:
        """Declare that the next `calls` calls to the endpoint are made together."""
        self._clock.expect(calls)

    def endpoint_call(self, request: object, together: int | None, again: bool) -> AbstractAsyncContextManager[None]:
        """Return a context in which a framework's call to the endpoint counts as in flight (`TrialClock.endpoint_call`)."""
        return self._clock.endpoint_call(request, together, again=again)

    def log_refusal(self, status: int, detail: str) -> None:
        """Log a request to the endpoint that was refused."""
        self._log.emit(Refused(status, detail, in_seconds(self._clock.now())))

    def log_settings(self, settings: Mapping[str, str]) -> None:
        """Log settings of requests to the endpoint that are not passed on to the model."""
        self._log.emit(SetAside(settings))

    def restart_clock(self) -> None:
        """Start the trial's clock now: no agent has worked on the trial before."""
        self._clock.restart()

    def pause(self) -> Pause:
        """Begin a pause: a framework waits before it sends a failed request again."""
        return self._clock.pause()

    def log_pause(self, pause: Pause) -> None:
        """End a framework's pause and log its length."""
        self._log.emit(Waited("backoff", in_seconds(pause.since), in_seconds(self._clock.resume(pause))))

    def _check_retry(self, purpose: CallPurpose, failure: CallFailed, tries: int) -> None:
        """Return if the call may be sent again. Else raise GaveUp if a fault caused the failure, and the failure itself if
        not."""
        if failure.passing and tries < self._back_off.tries:
            return
        if failure.injected:
            raise GaveUp(purpose.context.subtasks, f"no reply after {tries} tries: {failure.detail}") from failure
        raise failure

    async def _take_slot(self, request: Request) -> Slot:
        """Wait for a slot at the endpoint, take it and return it."""
        slot = self._slots.slot(request)
        if slot.is_free:  # decided before the wait: on a loaded machine even a free slot takes time
            await slot.take()
        else:
            with self._waiting("slot"):
                await slot.take()
        return slot

    @contextmanager
    def _waiting(self, why: Literal["slot", "backoff"]) -> Iterator[None]:
        """Count the time in the block as waiting and log it, even if the block is interrupted."""
        start = self._clock.now()
        try:
            with self._clock.span("wait"), self._slots.waiting():
                yield
        finally:
            self._log.emit(Waited(why, in_seconds(start), in_seconds(self._clock.now() - start)))

    async def _send_with_faults(self, attempt: CallAttempt, faults: list[DueFault]) -> None:
        """Send a request, wrapped in the due faults at point `call`. A fault leaves the list when its request is sent, unless
        the fault is persistent."""
        send: Send = functools.partial(self._ask_model, attempt)
        for group in reversed(_faults_of_request(faults)):
            send = self._wrap(send, group, attempt, faults)
        try:
            attempt.reply = await send()
        except CallFailed as failure:
            attempt.failure = failure

    def _wrap(self, send: Send, group: list[DueFault], attempt: CallAttempt, faults: list[DueFault]) -> Send:
        """Return `send` wrapped in one fault, or in a group of faults of several subtasks that act as one fault. Their receipts
        are planned and delivered when the request is sent."""
        fault = group[0].fault
        effect = _effect(group[0])

        async def sleep(seconds: float) -> None:
            """Let seconds pass on the trial's clock as a delay of this call."""
            with self._clock.span("call") as span:
                attempt.delays.append(span)
                await self._clock.sleep(seconds)

        async def send_with_fault() -> Reply:
            """Send the request through the effect, and enter the delivery of each fault of the group."""
            for due in group:
                if not due.fault.is_persistent:
                    faults.remove(due)
                receipt = self._schedule.plan(due, attempt.call)
                receipt.enter("delivered")
                if effect.fails:
                    receipt.detect()
                if effect.changes_reply:
                    attempt.receipts.append(receipt)  # a changed reply can pass as a good one
            return await effect.strike(send, Disturbance(fault.seconds, sleep))

        return send_with_fault

    async def _ask_model(self, attempt: CallAttempt) -> Reply:
        """Send a request to the model, record the response, and return the reply. Equal requests are numbered, so that a
        recording can give each its own reply."""
        tally = self._tallies.setdefault(attempt.request.content, Tally())
        tally.sent += 1
        attempt.asked = True
        original = attempt.request
        request = Request(
            original.messages, original.seed, original.context, tally.sent, tally.answered, original.schema, original.options
        )
        try:
            with self._clock.span("call") as attempt.at_model:
                reply = attempt.reply = await await_flight(self._model.reply(request, self._clock.sleep), attempt.at_model)
                tally.answered += 1
                if reply.took is not None:
                    self._clock.advance(reply.took)
        except CallFailed as failure:
            self._record_response(request, failure, attempt)
            raise
        self._record_response(request, reply, attempt)
        return reply

    def _record_response(self, request: Request, outcome: Reply | CallFailed, attempt: CallAttempt) -> None:
        """Record the model's response, before the call's event is logged: a trial that is killed in between loses no paid
        response."""
        assert attempt.at_model and attempt.slot
        attempt.slot.report_outcome(outcome)
        response = Response(self._model.name, request, outcome, in_seconds(attempt.at_model.length))
        attempt.responses.append(response)
        self._log.on_response(response)

    def _log_call(self, attempt: CallAttempt, delivered: str | None) -> int:
        """Log a call as an event and return the event's number. A call that was not paid counts no tokens."""
        request, reply, failure, ask = attempt.request, attempt.reply, attempt.failure, attempt.purpose
        received = failure.partial if failure else reply.text if reply else ""
        text = reply.text if reply else received
        given = received if failure else delivered
        paid = failure is None or failure.paid
        tokens_in = tokens_read(request) if paid else 0
        tokens_out = (count_tokens(received) if failure or not reply else tokens_written(reply)) if paid else 0
        self.tokens += tokens_in + tokens_out
        usage = reply.usage if reply else None
        counted = (usage.tokens_in, usage.tokens_out) if usage else failure.counted if failure else None
        store_text = self._log.keep_text
        return self._log.emit(
            Called(
                call=attempt.call,
                subtasks=request.context.subtasks,
                attempt=request.context.attempt,
                try_=attempt.try_,
                cause=ask.cause,
                started=in_seconds(attempt.in_flight_since),
                seconds=in_seconds(attempt.length),
                seed=request.seed,
                messages=stored(request.messages, self._log.texts),
                reply=store_text(text) if reply or text else None,
                delivered=store_text(given) if given is not None and given != text else None,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                usage_in=counted[0] if counted else None,
                usage_out=counted[1] if counted else None,
                usage_cached=usage.cached if usage else None,
                finish=reply.finish if reply else None,
                failure=failure.kind if failure else None,
                detail=failure.detail if failure else "",
                delay=in_seconds(attempt.delay),
                client=in_seconds(attempt.client),
                asked=attempt.asked,
                retry_after=failure.retry_after if failure else None,
                reused=reply.reused if reply else False,
                by=failure.by if failure else reply.by if reply else "",
                sample=request.context.sample,
                caused_by=ask.caused_by,
                inferred=ask.inferred,
                tool_calls=store_text(text_of(reply.tool_calls)) if reply and reply.tool_calls else None,
                options=store_text(request.options) if request.options else None,
            )
        )


def _effect(due: DueFault) -> CallEffect:
    """Return the effect of a fault at point `call`."""
    return effect_at(due.fault.effect, due.fault.point, CallEffect)


def _received_texts(attempt: CallAttempt) -> Sequence[str]:
    """Return the texts of a reply that arrived, whole or in part."""
    texts = texts_written(attempt.reply) if attempt.reply else ()
    return (*texts, attempt.failure.partial) if attempt.failure else texts


def _faults_of_request(faults: list[DueFault]) -> list[list[DueFault]]:
    """Return the groups of faults that strike one request: each fault by itself, up to the first fault that makes the request
    fail. If no fault does, the faults that replace the reply are the last group, and act as one fault."""
    replacing = [due for due in faults if _effect(due).changes_reply]
    groups: list[list[DueFault]] = []
    for due in faults:
        if due in replacing:
            return [*groups, replacing]
        groups.append([due])
        if _effect(due).fails:
            break
    return groups
