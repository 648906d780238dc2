"""What a command does when nobody reads its output any more, as in `bench runs | head`."""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import NoReturn

UNREAD = 128 + signal.SIGPIPE
"""The exit code of a command that SIGPIPE ends. The signal itself stays ignored: it would also end a command whose agent or
model closed a connection."""


def is_unread() -> bool:
    """Return whether the reader of standard output or standard error has gone."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def end_unread() -> NoReturn:
    """End the command without a word. What is left in the buffers goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    sys.exit(UNREAD)
