"""The standard error of an MCP server: it is forwarded to the agent's standard error, and its last bytes are kept."""

from __future__ import annotations

import asyncio
import os
import select
from contextlib import suppress
from threading import Thread

from bench.wire.tail import Tail

READ_BYTES = 2**16
LAST_BYTES_TIMEOUT_S = 1.0
"""How long the last bytes of a server that has ended are waited for."""


class ServerErrors:
    """A pipe for a server's standard error. Close `input` once the server has been started with it.

    A thread forwards the bytes, since the agent's standard error is shared with other processes and must not be made
    non-blocking. The thread ends when the last process that can write into the pipe has ended.
    """

    def __init__(self, target: int):
        """Start to forward.

        Args:
            target: The agent's standard error, which the caller closes.
        """
        self._source, self.input = os.pipe()
        self._target, self._tail = os.dup(target), Tail()
        self._thread = Thread(target=self._forward, daemon=True)
        self._thread.start()

    async def last_line(self) -> str:
        """Return the last line that the server printed; "" if it printed none."""
        await asyncio.to_thread(self._thread.join, LAST_BYTES_TIMEOUT_S)
        return self._tail.last_line

    def _forward(self) -> None:
        """Forward the bytes until all writers have closed the pipe."""
        with suppress(OSError):  # nobody reads the agent's standard error any more
            while data := os.read(self._source, READ_BYTES):
                self._tail.add(data)
                while data:
                    try:
                        data = data[os.write(self._target, data) :]
                    except BlockingIOError:
                        select.select([], [self._target], [])
        os.close(self._source)
        os.close(self._target)
