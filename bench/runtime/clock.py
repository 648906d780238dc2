"""A trial's clock: where its seconds went.

    API time        the union of the intervals in which a call was in flight
    waiting         for a slot or a back-off, where no call was in flight
    framework time  the time in which the trial's own code ran and no call was in flight: measured step by step, so that
                    another trial's work on the same event loop is never counted here

A live trial's seconds are real. A virtual trial (simulated or recorded model) does not sleep: `sleep` moves its clock on,
and calls that are in flight together overlap as they would; its framework time is real all the same.

Inside, time is whole nanoseconds: so the seconds of a recorded call, replayed on any trial's clock, come out the same.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from collections.abc import Awaitable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Literal, TypeVar

Result = TypeVar("Result")
Interval = tuple[int, int]
"""From, to: nanoseconds on the trial's clock."""
NANOSECONDS = 1_000_000_000
SETTLING_TURNS = 8
"""Turns of the event loop before virtual time moves on: a woken task needs a few to reach its next sleep."""

_current: contextvars.ContextVar[TrialClock | None] = contextvars.ContextVar("trial_clock", default=None)


@dataclass
class Span:
    """A stretch of a trial's clock; nanoseconds. `ended` is set once it has."""

    started: int
    ended: int = 0

    @property
    def length(self) -> int:
        return self.ended - self.started


@dataclass(frozen=True)
class Pause:
    """A wait that has begun: since when on the trial's clock and, `began`, on the real one; nanoseconds."""

    since: int
    began: int


class TrialClock:
    def __init__(self, virtual: bool):
        self.virtual = virtual
        self._stepped = 0
        self._epoch = perf_counter_ns()
        self._virtual_now = 0
        self._advanced = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._waking = False
        self._intervals: dict[str, list[Interval]] = {"call": [], "wait": []}
        self._standing = 0
        self._away = 0
        self._abroad: list[Interval] = []
        self._idle: list[Interval] = []
        self._mark = 0

    def now(self) -> int:
        """Nanoseconds since the trial began."""
        return self._virtual_now if self.virtual else perf_counter_ns() - self._epoch + self._advanced

    def advance(self, seconds: float) -> None:
        """Seconds that were spent once, for another live trial, pass on this one's clock as well."""
        self._advanced += round(seconds * NANOSECONDS)

    async def sleep(self, seconds: float) -> None:
        if not self.virtual:
            await asyncio.sleep(seconds)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._virtual_now + round(seconds * NANOSECONDS), next(self._numbers), woken))
        if not self._waking:
            self._waking = True
            self._wake_after(SETTLING_TURNS)
        await woken

    def _wake_after(self, turns: int) -> None:
        """Wake one sleeper once the trial's other tasks had so many turns of the loop to begin sleeps of their own."""
        if turns:
            asyncio.get_running_loop().call_soon(self._wake_after, turns - 1)
            return
        due, _, woken = heapq.heappop(self._sleepers)
        if not woken.done():  # a cancelled sleep takes no time
            self._virtual_now = max(self._virtual_now, due)
            woken.set_result(None)
        self._waking = bool(self._sleepers)
        if self._waking:
            self._wake_after(SETTLING_TURNS)

    @contextmanager
    def standing(self, what: Literal["call", "wait"]) -> Iterator[Span]:
        """While inside, a call is in flight or the trial waits: nothing of it is framework time."""
        self._accrue()
        self._standing += 1
        span, began = Span(self.now()), perf_counter_ns()
        try:
            yield span
        finally:
            span.ended = self.now()
            self._intervals[what].append((span.started, span.ended))
            self._idle.append((began, perf_counter_ns()))
            self._accrue()
            self._standing -= 1

    @property
    def api_seconds(self) -> float:
        return in_seconds(self._in_calls())

    @property
    def waiting_seconds(self) -> float:
        together = total(union(self._intervals["call"] + self._intervals["wait"]))
        return in_seconds(together - self._in_calls())

    @property
    def framework_seconds(self) -> float:
        idle = union(self._idle)
        worked_abroad = total(union(self._abroad + idle)) - total(idle)
        return in_seconds(self._stepped + worked_abroad)

    def _in_calls(self) -> int:
        return total(union(self._intervals["call"]))

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While inside, the trial works where its steps cannot be seen: in a framework's threads, at the other end of a
        connection. Framework time is then all real time in which no call is in flight and nothing waits."""
        self._accrue()
        self._away += 1
        began = perf_counter_ns()
        try:
            yield
        finally:
            self._abroad.append((began, perf_counter_ns()))
            self._accrue()
            self._away -= 1

    def pause(self) -> Pause:
        """Begin what may turn out to be a wait that the trial did not choose itself: a client's own back-off."""
        return Pause(self.now(), perf_counter_ns())

    def resume(self, pause: Pause) -> int:
        """It was one, and ends; its nanoseconds. They are real: a trial's own clock is moved on by as many. A pause that is
        never resumed was none: its time stays the framework's."""
        ended = perf_counter_ns()
        waited = ended - pause.began
        self._virtual_now = max(self._virtual_now, pause.since + waited)
        self._intervals["wait"].append((pause.since, pause.since + waited))
        self._idle.append((pause.began, ended))
        return waited

    def run(self, work: Coroutine[Any, Any, Result]) -> Awaitable[Result]:
        """Await `work`, counting the time in which it, or a task that it started, really ran."""
        _current.set(self)
        return _Metered(self, work)

    def _accrue(self) -> None:
        now = perf_counter_ns()
        if not self._standing and not self._away:
            self._stepped += now - self._mark
        self._mark = now

    def _enter(self) -> None:
        self._mark = perf_counter_ns()


class _Metered:
    """Passes every step of a coroutine through, with the clock running only during the steps."""

    def __init__(self, clock: TrialClock, work: Coroutine[Any, Any, Any]):
        self._clock, self._work = clock, work

    def __await__(self) -> Generator[Any, Any, Any]:
        clock, work = self._clock, self._work
        step, value = work.send, None
        while True:
            clock._enter()
            try:
                awaited = step(value)
            except StopIteration as done:
                return done.value
            finally:
                clock._accrue()
            try:
                value = yield awaited
                step = work.send
            except BaseException as error:  # a cancellation belongs to the work: it is thrown in there
                value, step = error, work.throw


async def _metered(clock: TrialClock, work: Coroutine[Any, Any, Result]) -> Result:
    return await _Metered(clock, work)  # type: ignore[no-any-return]


def meter_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Let tasks that a trial starts on this loop count for its clock, too."""

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        clock = _current.get()
        metered = _metered(clock, work) if clock and asyncio.iscoroutine(work) else work
        return asyncio.Task(metered, loop=loop, **options)

    loop.set_task_factory(factory)


def union(intervals: list[Interval]) -> list[Interval]:
    """The same points in time as disjoint intervals, in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def total(intervals: list[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def in_seconds(nanoseconds: int) -> float:
    return nanoseconds / NANOSECONDS
