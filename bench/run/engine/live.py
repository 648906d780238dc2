"""The side of a live trial that stays in the process that began the run, while a worker runs the trial.

Every call is made here: through the run's gates, out of its budget, and from what it was answered before. A response is kept
before the worker is given it. So a worker that dies has lost nothing that was paid, and Ctrl-C, a 429 and a budget hold for all
workers at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from bench.common.errors import CallFailed
from bench.common.tokens import count_tokens, uncounted
from bench.record.intervals import in_seconds
from bench.run.engine.relay import CountWaiting, FlownOutcome, LeaveSlot, SendRequest, TakeSlot, WorkerMessage, carried
from bench.run.models.base import Model, Reply, Request, Response
from bench.run.models.counting import texts_written
from bench.run.trial.slots import Slot, Slots


class Conducted:
    """One trial. `keep` is called with each response as it arrives, and `saw` after its tokens are counted, as in this
    process."""

    def __init__(
        self,
        relay: Any,
        trial: str,
        model: Model,
        slots: Slots,
        keep: Callable[[Response], object],
        saw: Callable[[Response], object],
    ):
        self._relay, self._trial = relay, trial
        self._model, self._slots, self._keep, self._saw = model, slots, keep, saw
        self._taken: dict[int, Slot] = {}
        self._working: dict[int, asyncio.Task[None]] = {}

    async def until(self, ended: asyncio.Future[Any]) -> None:
        """Serve the trial until it ends. Calls in flight are awaited and kept, even if the trial no longer needs them or nobody
        can reach it any more.

        If this is cancelled, they are given up. Raises ResultsError if the relay is lost.
        """
        try:
            async with asyncio.TaskGroup() as group:
                listening = asyncio.ensure_future(self._listen(group))
                try:
                    await asyncio.wait((ended, listening), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    listening.cancel()
                for call in self._working.keys() - self._taken.keys():  # they wait for slots that nobody leaves any more
                    self._working[call].cancel()
            await asyncio.gather(listening, return_exceptions=True)
            if not ended.done():
                listening.result()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            for slot in self._taken.values():
                slot.leave()
            self._relay.forget.remote(self._trial)

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        while True:
            heard = asyncio.wrap_future(self._relay.heard.remote(self._trial).future())
            for number, message in await carried(asyncio.shield(heard)):  # Ray stumbles over a cancelled future
                self._hear(number, message, group)

    def _hear(self, number: int, message: WorkerMessage, group: asyncio.TaskGroup) -> None:
        match message:
            case TakeSlot(call, request):
                self._working[call] = group.create_task(self._enter(number, call, request))
            case SendRequest(call, request) if call in self._taken:
                self._working[call] = group.create_task(self._ask(number, call, request))
            case CountWaiting(calls):
                self._slots.count(waiting=calls)
            case LeaveSlot(call):
                self._working.pop(call).cancel()
                self._taken.pop(call).leave()

    async def _enter(self, number: int, call: int, request: Request) -> None:
        slot = self._slots.slot(request)
        await slot.take()
        self._taken[call] = slot
        self._relay.answer.remote(number, None)

    async def _ask(self, number: int, call: int, request: Request) -> None:
        outcome: Reply | CallFailed
        began = perf_counter_ns()
        try:
            outcome = await self._model.reply(request, asyncio.sleep)
        except CallFailed as failure:
            outcome = failure
        except Exception as bug:
            self._relay.answer.remote(number, bug)
            return
        since, until = outcome.flight or (began, perf_counter_ns())
        self._taken[call].saw(outcome)
        took = outcome.took if isinstance(outcome, Reply) else None
        response = Response(self._model.name, request, outcome, in_seconds(until - since) if took is None else took)
        self._keep(response)
        written = texts_written(outcome) if isinstance(outcome, Reply) else (outcome.partial,)
        if long := uncounted((*written, *(message.content for message in request.messages))):
            await asyncio.to_thread(lambda: [count_tokens(text) for text in long])
        self._saw(response)
        self._relay.answer.remote(number, FlownOutcome(outcome, until - since))
