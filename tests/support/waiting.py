"""Waiting for what another process does."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

PAUSE_S, MAX_PAUSES = 0.01, 6000


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as `condition()` is true. The function counts pauses and not seconds: the clock goes on while a machine is
    paused, and then a deadline passes although the other process had no time.

    Raises:
        AssertionError: The condition is still false after `MAX_PAUSES` pauses, a minute at least.
    """
    for _ in range(MAX_PAUSES):
        if condition():
            return
        sleep(PAUSE_S)
    raise AssertionError("the condition stayed false")
