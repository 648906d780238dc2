"""End a pack's code that runs too long: an alarm ends Python code, SQLite ends its own statements."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

AGAIN = 0.2
"""Seconds between the alarms: Python swallows what one raises within a finalizer, such as a callback of a weak reference."""


class NoEnd(BaseException):
    """Raised in a pack's code when its time is up. A pack's `except Exception` does not catch it."""


class DidNotEnd(Exception):
    """Raised after a pack's code was ended."""


class TimeLimit:
    def __init__(self, seconds: float):
        self.seconds = seconds
        self._ends = float("inf")

    def overdue(self) -> bool:
        return monotonic() > self._ends

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Raise NoEnd in the block once the time is up. The alarm works only in the main thread; in another thread SQLite ends
        statements, but nothing ends a Python loop."""
        self._ends = monotonic() + self.seconds
        alarmed = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGALRM, self._ring) if alarmed else None
        try:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN)
            yield
        finally:
            self._ends = float("inf")
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    def _ring(self, _: int, __: FrameType | None) -> None:
        if self.overdue():
            raise NoEnd
