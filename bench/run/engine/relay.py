"""The relay between a live model and a trial on a worker: a Ray actor that carries messages, and the worker's side of it.

The worker's side looks like a model and like slots at a gate, and holds neither: the process that began the run makes each call
and keeps its response before the worker is given the reply (`bench.run.engine.live`). So keys stay with that process, too.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

from bench.common.errors import CallFailed, ResultsError
from bench.run.models.base import Model, Reply, Request, Sleep
from bench.run.trial.slots import Slot, Slots

GOES_ON = "what came back is kept, and the same command goes on"
"""The error of a run that lost a worker or the relay."""


@dataclass(frozen=True)
class TakeSlot:
    """A call needs a slot for this request, whose messages are left out. It is answered once the slot is taken."""

    call: int
    request: Request


@dataclass(frozen=True)
class SendRequest:
    """A call that has its slot sends this request. It is answered by `FlownOutcome`, or by the exception that a bug raised."""

    call: int
    request: Request


@dataclass(frozen=True)
class LeaveSlot:
    """A call gives up its slot. Nobody waits for its reply."""

    call: int


@dataclass(frozen=True)
class CountWaiting:
    """A change in the number of calls that wait for a slot or a back-off."""

    calls: int


WorkerMessage = TakeSlot | SendRequest | LeaveSlot | CountWaiting


@dataclass(frozen=True)
class FlownOutcome:
    """The model's outcome, and how many nanoseconds the call was in flight."""

    outcome: Reply | CallFailed
    flight: int


class Relay:
    """The actor. It carries the messages of each trial and their answers. It stores nothing and decides nothing."""

    def __init__(self) -> None:
        self._messages: defaultdict[str, asyncio.Queue[tuple[int, WorkerMessage] | None]] = defaultdict(asyncio.Queue)
        self._answers: dict[int, asyncio.Future[object]] = {}
        self._numbers = itertools.count()

    async def ask(self, trial: str, message: WorkerMessage) -> object:
        """Carry a worker's message, and wait for its answer."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._messages[trial].put_nowait((number, message))
        return await answer

    async def tell(self, trial: str, message: WorkerMessage) -> None:
        """Carry a worker's message that has no answer."""
        self._messages[trial].put_nowait((-1, message))

    async def heard(self, trial: str) -> list[tuple[int, WorkerMessage]]:
        """Return the next messages of a trial, each with its number; none if the trial was forgotten meanwhile."""
        queue = self._messages[trial]
        heard = [await queue.get()]
        while not queue.empty():
            heard.append(queue.get_nowait())
        return [each for each in heard if each]

    async def answer(self, number: int, answer: object) -> None:
        """Answer the message of this number."""
        self._answers.pop(number).set_result(answer)

    async def forget(self, trial: str) -> None:
        """Forget a trial that has ended."""
        self._messages.pop(trial, asyncio.Queue()).put_nowait(None)


async def carried(message: Awaitable[Any]) -> Any:
    """Await what the relay returns. Raises ResultsError if the relay is lost, with its process or its node."""
    try:
        return await message
    except Exception as error:  # Ray's: the relay itself raises nothing
        raise ResultsError(f"the relay to the workers is lost ({type(error).__name__}); {GOES_ON}") from error


class Line:
    """A worker's connection to the relay, for one trial. It keeps each message until the relay has it."""

    def __init__(self, relay: Any, trial: str):
        self._relay, self._trial = relay, trial
        self._told = set[asyncio.Future[object]]()

    async def ask(self, message: WorkerMessage) -> Any:
        answer = await carried(asyncio.wrap_future(self._relay.ask.remote(self._trial, message).future()))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(self, message: WorkerMessage) -> None:
        sending = asyncio.wrap_future(self._relay.tell.remote(self._trial, message).future())
        self._told.add(sending)
        sending.add_done_callback(self._told.discard)


_call: ContextVar[int] = ContextVar("call")
"""The call that the present task makes: a request is sent in the slot that was taken for it."""


class RemoteModel:
    """Implements `bench.run.models.base.Model` for a trial on a worker: the process that began the run asks the model."""

    def __init__(self, model: Model, line: Line):
        self._model, self._line = model, line
        self.name, self.timing = model.name, model.timing
        self.endpoint, self.concurrency = model.endpoint, model.concurrency

    @property
    def parameters(self) -> dict[str, object]:
        return self._model.parameters

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        del sleep  # a live call takes its own time
        answered: FlownOutcome = await self._line.ask(SendRequest(_call.get(), request))
        outcome, now = answered.outcome, perf_counter_ns()
        flight = now - answered.flight, now
        if isinstance(outcome, CallFailed):
            outcome.flight = flight
            raise outcome
        return outcome if outcome.reused else replace(outcome, flight=flight)

    async def prepare(self, patient: bool = True) -> None:
        pass

    async def close(self) -> None:
        pass


class RemoteSlots(Slots):
    """The slots of one trial on a worker. The process that began the run counts them and is told of each wait."""

    def __init__(self, line: Line):
        super().__init__()
        self._line = line
        self._calls = itertools.count(1)

    def slot(self, request: Request) -> Slot:
        return RemoteSlot(self._line, TakeSlot(next(self._calls), replace(request, messages=(), schema=None)))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self._line.tell(CountWaiting(1))
        try:
            yield
        finally:
            self._line.tell(CountWaiting(-1))


class RemoteSlot(Slot):
    """A call's place in flight, held by the process that began the run. It cannot be known here whether one is free."""

    is_free = False

    def __init__(self, line: Line, enter: TakeSlot):
        self._line, self._enter = line, enter

    async def take(self) -> None:
        entering = asyncio.ensure_future(_whole(self._line.ask(self._enter)))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            entering.add_done_callback(lambda _: self.leave())
            raise
        _call.set(self._enter.call)

    def leave(self) -> None:
        self._line.tell(LeaveSlot(self._enter.call))

    def saw(self, outcome: Reply | CallFailed) -> None:
        """Do nothing: the gate in the run's process has counted the call."""


async def _whole(asking: Coroutine[Any, Any, object]) -> None:
    await asking
