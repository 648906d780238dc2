"""The two kinds of time of a trial's clock: real and virtual. Both count nanoseconds since the trial began.

Virtual time stands still while anything of the trial can run, and then jumps to the earliest sleeper's moment:

    in process           nothing can run when the event loop is idle and no thread works for the trial
    over an endpoint     the calls that the framework declared must also have come (`bench.run.trial.declared_calls`)
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from time import perf_counter_ns

from bench.common.errors import UndeclaredCalls
from bench.record.intervals import in_nanoseconds
from bench.run.trial.declared_calls import DeclaredCalls
from bench.run.trial.loop import from_thread, running_loop


class RealTime:
    """Real time passes by itself: parallel calls overlap, and no call has to be declared."""

    def __init__(self) -> None:
        self._epoch = perf_counter_ns()

    def now(self) -> int:
        return perf_counter_ns() - self._epoch

    def restart(self) -> None:
        """Start the trial's time now."""
        self._epoch = perf_counter_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def in_turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def advance(self, nanoseconds: int) -> None:
        """Advance the clock by time that another trial spent on the same call."""
        self._epoch -= nanoseconds

    def reach(self, moment: int) -> None:
        """Do nothing: real time advances by itself."""

    def expect(self, calls: int) -> None:
        pass

    def endpoint_call(self, request: object, together: int | None, again: bool) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def elsewhere(self) -> AbstractContextManager[None]:
        return nullcontext()

    def add_jobs(self, more: int) -> None:
        pass


class VirtualTime:
    """Virtual time passes only when no work of the trial can run. A cancelled sleep takes no time."""

    def __init__(self) -> None:
        self._now = 0
        self._timers: list[tuple[int, int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._asleep = 0
        self._jobs = 0
        self._elsewhere = 0
        self._calls = DeclaredCalls()

    def now(self) -> int:
        return self._now

    def restart(self) -> None:
        """Do nothing: no time has passed yet."""

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time. Raises UndeclaredCalls in a thread, because nobody sees when a thread is idle."""
        if from_thread.get() and not self._elsewhere:
            raise UndeclaredCalls(
                "a thread made a call on the trial's event loop, and virtual time cannot tell when that thread waits;"
                " let it make its calls over workbench.endpoint(...), or use a live model"
            )
        await self._wait_for(self._add_timer(self._now + in_nanoseconds(seconds), 1))

    @asynccontextmanager
    async def in_turn(self) -> AsyncIterator[None]:
        """Return a context for a job in a thread. Its end waits until no other work of the trial can run, but comes before any
        sleeper wakes, so that jobs end in the order in which they began. While the trial works outside of this event loop, the
        context does not wait: the order of declared calls is fixed already."""
        timer = None if self._elsewhere else self._add_timer(self._now, 0)
        try:
            yield
        except BaseException:
            if timer:
                timer.cancel()
            raise
        if timer:
            await self._wait_for(timer)

    def _add_timer(self, due: int, rank: int) -> asyncio.Future[None]:
        """Add a timer that is due at this moment. Timers of the same moment fire in the order of their rank."""
        timer = running_loop().create_future()
        heapq.heappush(self._timers, (due, rank, next(self._numbers), timer))
        return timer

    async def _wait_for(self, timer: asyncio.Future[None]) -> None:
        """Register as a sleeper until this timer has fired."""
        sleepers = running_loop().sleepers
        sleepers[self] = None
        self._asleep += 1
        try:
            await timer
        finally:
            self._asleep -= 1
            if not self._asleep:
                del sleepers[self]

    def wake(self) -> bool:
        """Wake the earliest sleeper because the event loop is idle, unless other work of the trial is in progress."""
        if self._jobs and not self._elsewhere:
            return False
        if self._calls.must_wait():
            return self._calls.wait()
        while self._timers:
            due, _, _, timer = heapq.heappop(self._timers)
            if not timer.done():
                self._now = max(self._now, due)
                timer.set_result(None)
                return True
        return False

    def advance(self, nanoseconds: int) -> None:
        """Do nothing: only live replies are reused."""

    def reach(self, moment: int) -> None:
        """Advance the clock at least to this moment, because real time passed that counts."""
        self._now = max(self._now, moment)

    def expect(self, calls: int) -> None:
        self._calls.expect(calls)

    def endpoint_call(self, request: object, together: int | None, again: bool) -> AbstractAsyncContextManager[None]:
        return self._calls.endpoint_call(request, together, again)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let virtual time pass although a thread of the trial may wait for it. Raises UndeclaredCalls at the end if declared
        calls never arrived."""
        self._elsewhere += 1
        try:
            yield
        finally:
            self._elsewhere -= 1
        self._calls.check()

    def add_jobs(self, more: int) -> None:
        """Add to the number of jobs in threads that work for the trial."""
        self._jobs += more
