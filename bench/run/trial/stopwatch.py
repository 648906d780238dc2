"""Framework time: the real time in which a trial's own code works, measured step by step, so that other trials' work on the
same event loop is never counted."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

from bench.record.intervals import Interval, covered_time

Result = TypeVar("Result")


class Stopwatch:
    """Measures framework time: it runs during the trial's steps, and stops while a call is in flight or the trial waits
    (`stop`). While the trial works where its steps cannot be seen (`count_all_time`), all real time counts except the intervals
    given to `exclude`. If a call turns out to have been in flight for a shorter time, the time before and after counts: a
    client's own work is framework time."""

    def __init__(self) -> None:
        self._in_steps = 0
        self._step_start = 0
        self._stopped = 0
        self._excluded: list[Interval] = []
        self._unobserved: list[Interval] = []

    @property
    def nanoseconds(self) -> int:
        """The framework time so far."""
        if not self._unobserved:
            return self._in_steps
        return self._in_steps + covered_time(self._unobserved + self._excluded) - covered_time(self._excluded)

    @contextmanager
    def count_all_time(self) -> Iterator[None]:
        """Count the real time of the block as framework time. The trial's steps during the block are not counted twice."""
        began = self.stop()
        try:
            yield
        finally:
            self._unobserved.append((began, perf_counter_ns()))
            self.go_on()

    def exclude(self, began: int, ended: int) -> None:
        """Exclude an interval of the real clock from framework time."""
        self._excluded.append((began, ended))

    def follow(self, work: Coroutine[Any, Any, Result]) -> Steps[Result]:
        """Return an awaitable that counts the steps of `work`."""
        return Steps(self, work)

    def begin_step(self) -> None:
        self._step_start = perf_counter_ns()

    def end_step(self) -> None:
        """Count the time since the step began, or note it as unobserved if the stopwatch is stopped."""
        now = perf_counter_ns()
        if not self._stopped:
            self._in_steps += now - self._step_start
        else:
            self._unobserved.append((self._step_start, now))
        self._step_start = now

    def stop(self) -> int:
        """Count no steps until `go_on` has been called once for each `stop`. Return the present time of
        `time.perf_counter_ns`."""
        self.end_step()
        self._stopped += 1
        return perf_counter_ns()

    def go_on(self) -> None:
        self.end_step()
        self._stopped -= 1


class Steps(Generic[Result]):
    """Awaits a coroutine step by step; the stopwatch runs only during the steps."""

    def __init__(self, stopwatch: Stopwatch, work: Coroutine[Any, Any, Result]):
        self._stopwatch, self._work = stopwatch, work

    def __await__(self) -> Generator[Any, Any, Result]:
        """Run the work, and measure each of its steps between two suspensions."""
        stopwatch, work = self._stopwatch, self._work
        step, value = work.send, None
        while True:
            stopwatch.begin_step()
            try:
                awaited = step(value)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            finally:
                stopwatch.end_step()
            try:
                value = yield awaited
                step = work.send
            except BaseException as error:  # a cancellation belongs to the work: it is thrown in there
                value, step = error, work.throw
