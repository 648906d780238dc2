"""The exit of a command after the reader of its output has closed the pipe, as in `bench runs | head`."""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import NoReturn

UNREAD_EXIT_CODE = 128 + signal.SIGPIPE
"""The exit code of a command that SIGPIPE ends. The signal itself stays ignored: it would also end a command whose agent or
model closed a connection."""


def is_output_closed() -> bool:
    """Whether the reader of standard output or standard error has closed the pipe."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def exit_unread() -> NoReturn:
    """Exit the command silently. The remaining output in the buffers is discarded."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(null_device, number)
    sys.exit(UNREAD_EXIT_CODE)
