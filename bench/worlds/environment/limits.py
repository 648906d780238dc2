"""A pack's code that does not end is ended: by an alarm where it runs in Python, by SQLite where it runs there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType


class NoEnd(BaseException):
    """The time is up. No `except Exception` of a pack holds it."""


class DidNotEnd(Exception):
    """A pack's code was ended."""


class TimeLimit:
    def __init__(self, seconds: float):
        self.seconds = seconds
        self._ends = float("inf")

    def overdue(self) -> bool:
        return monotonic() > self._ends

    @contextmanager
    def holding(self) -> Iterator[None]:
        """While inside, NoEnd is raised once the time is up. An alarm rings in the main thread alone: in any other it is up to
        SQLite, and a loop in Python is not ended."""
        self._ends = monotonic() + self.seconds
        alarmed = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGALRM, _ring) if alarmed else None
        try:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, self.seconds)
            yield
        finally:
            self._ends = float("inf")
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)


def _ring(_: int, __: FrameType | None) -> None:
    raise NoEnd
