"""Framework time: the real time in which a trial's own code works, measured step by step, so that another trial's work on the
same event loop is never counted."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

from bench.runtime.intervals import Interval, total, union

Result = TypeVar("Result")


class Stopwatch:
    """Runs during the trial's steps. It stands while a call is in flight or the trial waits (`stop`). While the trial works
    where its steps cannot be seen (`away`), all real time counts in which nothing stood. Of a call that turns out to have been
    in flight for a shorter time, the steps before and after count: a client's own work is framework time."""

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
        """While inside, the trial's code works elsewhere; its steps here are not counted twice."""
        began = self.stop()
        try:
            yield
        finally:
            self._abroad.append((began, perf_counter_ns()))
            self.go_on()

    def stood(self, began: int, ended: int) -> None:
        """An interval of the real clock was none of the framework's."""
        self._stood.append((began, ended))

    def follow(self, work: Coroutine[Any, Any, Result]) -> Steps[Result]:
        """Await this, and the steps of `work` count."""
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
        """The steps count no more until `go_on`, which is called as often; returns now, by `time.perf_counter_ns`."""
        self.end_step()
        self._stopped += 1
        return perf_counter_ns()

    def go_on(self) -> None:
        self.end_step()
        self._stopped -= 1


class Steps(Generic[Result]):
    """Passes every step of a coroutine through, with the stopwatch running only during the steps."""

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
