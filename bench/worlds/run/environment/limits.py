"""End a pack's code that runs too long: an alarm ends Python code, SQLite ends its own statements."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

ALARM_INTERVAL_S = 0.2
"""Seconds from one alarm to the next. There are several, because Python swallows an exception that an alarm raises within a
finalizer, such as a callback of a weak reference."""


class TimeIsUp(BaseException):
    """Raised in a pack's code when its time is up. A pack's `except Exception` does not catch it."""


class DidNotEnd(Exception):
    """Raised after a pack's code was ended."""


class TimeLimit:
    """A limit of real seconds on a pack's code."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._ends = float("inf")

    def overdue(self) -> bool:
        """Return whether the enforced limit is past."""
        return monotonic() > self._ends

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Raise NoEnd in the block once the time is up. The alarm works only in the main thread; in another thread SQLite ends
        statements, but nothing ends a Python loop."""
        self._ends = monotonic() + self.seconds
        has_alarm = threading.current_thread() is threading.main_thread()
        old_handler = signal.signal(signal.SIGALRM, self._raise_if_overdue) if has_alarm else None
        try:
            if has_alarm:
                signal.setitimer(signal.ITIMER_REAL, self.seconds, ALARM_INTERVAL_S)
            yield
        finally:
            self._ends = float("inf")
            if has_alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, old_handler)

    def _raise_if_overdue(self, _: int, __: FrameType | None) -> None:
        """Handle the alarm: raise TimeIsUp if the limit is past."""
        if self.overdue():
            raise TimeIsUp
