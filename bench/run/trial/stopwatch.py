"""Framework time: the real time in which a trial's own code works, measured step by step, so that other trials' work on the
same event loop is never counted."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

from bench.record.intervals import Interval, total, union

Result = TypeVar("Result")


class Stopwatch:
    """Runs during the trial's steps. It stops while a call is in flight or the trial waits (`stop`). While the trial works
    where its steps cannot be seen (`away`), all real time counts that no `stood` interval covers. If a call turns out to have
    been in flight for a shorter time, the time before and after counts: a client's own work is framework time."""

    def __init__(self) -> None:
        self._stepped = 0
        self._mark = 0
        self._stopped = 0
        self._stood: list[Interval] = []
        self._abroad: list[Interval] = []

    @property
    def nanoseconds(self) -> int:
        if not self._abroad:
            return self._stepped
        stood = union(self._stood)
        return self._stepped + total(union(self._abroad + stood)) - total(stood)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Count the block as the trial's work elsewhere; its steps here are not counted twice."""
        began = self.stop()
        try:
            yield
        finally:
            self._abroad.append((began, perf_counter_ns()))
            self.go_on()

    def stood(self, began: int, ended: int) -> None:
        """Exclude an interval of the real clock from framework time."""
        self._stood.append((began, ended))

    def follow(self, work: Coroutine[Any, Any, Result]) -> Steps[Result]:
        """Return an awaitable that counts the steps of `work`."""
        return Steps(self, work)

    def begin_step(self) -> None:
        self._mark = perf_counter_ns()

    def end_step(self) -> None:
        now = perf_counter_ns()
        if not self._stopped:
            self._stepped += now - self._mark
        else:
            self._abroad.append((self._mark, now))
        self._mark = now

    def stop(self) -> int:
        """Count no steps until `go_on` has been called as often. Return the present time of `time.perf_counter_ns`."""
        self.end_step()
        self._stopped += 1
        return perf_counter_ns()

    def go_on(self) -> None:
        self.end_step()
        self._stopped -= 1


class Steps(Generic[Result]):
    """Passes every step of a coroutine through; the stopwatch runs only during the steps."""

    def __init__(self, stopwatch: Stopwatch, work: Coroutine[Any, Any, Result]):
        self._stopwatch, self._work = stopwatch, work

    def __await__(self) -> Generator[Any, Any, Result]:
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
