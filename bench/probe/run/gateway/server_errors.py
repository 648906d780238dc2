"""What an MCP server writes to its standard error: it is passed on to the agent's, and its end is kept."""

from __future__ import annotations

import asyncio
import os
import select
from contextlib import suppress
from threading import Thread

from bench.wire.tail import Tail

AT_A_TIME = 2**16
LAST = 1.0
"""Seconds for the last bytes of a server that has ended."""


class ServerErrors:
    """A pipe for a server's standard error. Close `input` once the server has it.

    A thread passes the bytes on, since the agent's standard error is shared, and nobody may set a flag on it. The thread ends
    when the last process that can write into the pipe has ended.
    """

    def __init__(self, target: int):
        """`target` is the agent's standard error, which stays the caller's."""
        self._source, self.input = os.pipe()
        self._target, self._tail = os.dup(target), Tail()
        self._thread = Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    async def last_line(self) -> str:
        """Return the last line of a server that has ended; "" if it wrote none."""
        await asyncio.to_thread(self._thread.join, LAST)
        return self._tail.last_line

    def _pass_on(self) -> None:
        with suppress(OSError):  # nobody reads the agent's standard error any more
            while more := os.read(self._source, AT_A_TIME):
                self._tail.add(more)
                while more:
                    try:
                        more = more[os.write(self._target, more) :]
                    except BlockingIOError:
                        select.select([], [self._target], [])
        os.close(self._source)
        os.close(self._target)
