"""A trial's clock, which divides the trial's time into API time, waiting and framework time.

    API time        the union of the intervals in which a call was in flight
    waiting         for a slot or a back-off, while no call was in flight
    framework time  the time in which the trial's own code ran and no call was in flight (`bench.run.trial.stopwatch`)

A live trial's seconds are real. A virtual trial (simulated or recorded model) does not sleep: its time passes when nothing of
it can run (`bench.run.trial.virtual_time`), and calls that are in flight together overlap as they would. Its framework time is
still real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from time import perf_counter_ns
from typing import Any, Literal, TypeVar

from bench.common.values import dataclass
from bench.record.intervals import Interval, covered_time, in_nanoseconds, in_seconds
from bench.run.trial.loop import observer, running_loop
from bench.run.trial.stopwatch import Stopwatch
from bench.run.trial.virtual_time import RealTime, VirtualTime

__all__ = ["Pause", "Span", "TrialClock", "in_seconds"]

Result = TypeVar("Result")
CANCEL_TIMEOUT_S = 5.0
"""Real seconds for which the end of cancelled tasks is awaited."""


class Span:
    """An interval on a trial's clock, in nanoseconds, during which a call is in flight or the trial waits. `flight` is the real
    interval in which the call was in flight, by `time.perf_counter_ns`, if the model measured it; `client` is the rest of the
    span, in which this process worked."""

    def __init__(self, clock: TrialClock, kind: Literal["call", "wait"]):
        self.started = self.ended = self.client = self._began = 0
        self.flight: Interval | None = None
        self._clock, self.kind = clock, kind

    @property
    def length(self) -> int:
        return self.ended - self.started

    def __enter__(self) -> Span:
        self._began = self._clock.begin_span()
        self.started = self._clock.now()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = self._clock.now()
        self._clock.end_span(self, (self._began, perf_counter_ns()))


@dataclass(frozen=True)
class Pause:
    """The start of a wait, in nanoseconds: on the trial's clock (`since`) and by `time.perf_counter_ns` (`began`)."""

    since: int
    began: int


class TrialClock:
    """A trial's clock. It counts nanoseconds since the trial began, real or virtual."""

    def __init__(self, virtual: bool):
        self.is_virtual = virtual
        self._time = VirtualTime() if virtual else RealTime()
        self._stopwatch = Stopwatch()
        self._intervals: dict[str, list[Interval]] = {"call": [], "wait": []}
        self._tasks: set[asyncio.Task[Any]] = set()

    def now(self) -> int:
        """Return the nanoseconds since the trial began."""
        return self._time.now()

    def restart(self) -> None:
        """Start the trial's time now."""
        self._time.restart()

    async def sleep(self, seconds: float) -> None:
        await self._time.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Advance the clock by seconds that another live trial spent on the same call."""
        self._time.advance(in_nanoseconds(seconds))

    def span(self, kind: Literal["call", "wait"]) -> Span:
        """Return a span during which a call is in flight or the trial waits. It is not framework time."""
        return Span(self, kind)

    def begin_span(self) -> int:
        """Stop the stopwatch for a span that begins. Return the present `time.perf_counter_ns`."""
        return self._stopwatch.stop()

    def end_span(self, span: Span, real: Interval) -> None:
        """Record a span that has ended and the real interval of the span, and restart the stopwatch."""
        if span.flight and not self.is_virtual:
            real = span.flight
            self._narrow(span, span.flight)
        self._intervals[span.kind].append((span.started, span.ended))
        self._stopwatch.exclude(*real)
        self._stopwatch.go_on()

    def _narrow(self, span: Span, flight: Interval) -> None:
        """Shorten a span to the time in which its call was in flight."""
        trial_start = perf_counter_ns() - self.now()
        began, ended = (min(max(moment - trial_start, span.started), span.ended) for moment in flight)
        span.client = span.length - (ended - began)
        span.started, span.ended = began, ended

    @property
    def api_seconds(self) -> float:
        return in_seconds(self._call_nanoseconds())

    @property
    def waiting_seconds(self) -> float:
        """The seconds in which the trial waited while no call was in flight."""
        if not self._intervals["wait"]:
            return 0.0
        calls_and_waits = covered_time(self._intervals["call"] + self._intervals["wait"])
        return in_seconds(calls_and_waits - self._call_nanoseconds())

    @property
    def framework_seconds(self) -> float:
        return in_seconds(self._stopwatch.nanoseconds)

    def _call_nanoseconds(self) -> int:
        """Return the nanoseconds in which at least one call was in flight."""
        return covered_time(self._intervals["call"])

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Count the block as work outside of this event loop: in a framework's threads, or in the process at the other end of a
        connection. Its steps cannot be seen, so framework time is all real time in which no call is in flight and nothing
        waits."""
        with self._time.elsewhere(), self._stopwatch.count_all_time():
            yield

    async def run_in_thread(self, work: Callable[[], Result]) -> Result:
        """Run work of the trial in a thread, so that other trials continue. The work is framework time, and virtual time does
        not pass meanwhile. The trial's other tasks first run as far as they can, so that their order is the same each time."""
        async with self._time.in_turn():
            with self._stopwatch.count_all_time():
                return await asyncio.to_thread(work)

    def expect(self, calls: int) -> None:
        """Declare that the next `calls` calls over the endpoint are made together; without a declaration, one call is made at a
        time. Raises UndeclaredCalls if a call is already in flight."""
        self._time.expect(calls)

    def endpoint_call(
        self, request: object, together: int | None = None, *, again: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Return a context in which a call over the endpoint counts as in flight. `together` is the number of calls made
        together, this call included, if the request says so; calls made together begin in the order of `request`. The context
        raises UndeclaredCalls if virtual time cannot tell when the call began, but not for a failed call that is made
        `again`."""
        return self._time.endpoint_call(request, together, again)

    def pause(self) -> Pause:
        """Begin a wait that the trial did not choose, such as a client's own back-off."""
        return Pause(self.now(), perf_counter_ns())

    def resume(self, pause: Pause) -> int:
        """End a wait and return its real nanoseconds, by which the trial's clock also advances. A pause that is never resumed
        stays framework time."""
        ended = perf_counter_ns()
        waited = ended - pause.began
        self._time.reach(pause.since + waited)
        self._intervals["wait"].append((pause.since, pause.since + waited))
        self._stopwatch.exclude(pause.began, ended)
        return waited

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await `work`, counting the real time in which it, or a task that it started, ran. A task that still runs at the end
        is cancelled: its later requests would be in no account."""
        try:
            running_loop()
        except RuntimeError:
            work.close()
            raise
        token = observer.set(self)
        try:
            return await self.follow(work)
        finally:
            observer.reset(token)
            await self._end_tasks()

    async def follow(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await a part of the trial's work that runs in a task of its own."""
        return await self._stopwatch.follow(work)

    def task_began(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_tasks(self) -> None:
        """Cancel the trial's other tasks and wait until they have ended, at most CANCEL_TIMEOUT_S."""
        unfinished = self._tasks - {asyncio.current_task()}
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=CANCEL_TIMEOUT_S)

    def job_began(self) -> None:
        self._time.add_jobs(+1)

    def job_ended(self) -> None:
        self._time.add_jobs(-1)
