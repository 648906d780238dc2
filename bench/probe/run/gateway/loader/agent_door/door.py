"""The connection to the gateway: one socket for each process, opened by the first message, and read by one thread."""

from __future__ import annotations

import _thread
import itertools
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

DoorMessage = dict[str, Any]
GONE = {"do": "raise", "kind": "ConnectionAbortedError", "text": "bench probe: its gateway cannot be reached"}
"""What is answered if the gateway is gone: nothing is done that nobody would see."""


class Door:
    """Asks the gateway before and after each call.

    Args:
        port: The gateway's port on loopback.
        token: Shows the gateway that this process is the agent's.
    """

    def __init__(self, port: int, token: str):
        self._port, self._token = port, token
        self._start_anew()
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        """Close the socket of the parent process, if any, and start with no socket: a socket belongs to one process."""
        if socket_of_parent := getattr(self, "_socket", None):
            socket_of_parent.close()
        self._socket: socket.socket | None = None
        self._lock, self._numbers = _thread.allocate_lock(), itertools.count(1)
        self._waiting: dict[int, Callable[[DoorMessage], Any]] = {}

    def number(self) -> int:
        """Return a number that no other call of this process has."""
        return next(self._numbers)

    def tell(self, message: DoorMessage) -> bool:
        """Send a message that has no reply. Return whether it was sent."""
        with self._lock:
            try:
                self._connect().sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                return False
        return True

    def ask(self, message: DoorMessage) -> DoorMessage:
        """Return the reply to a message. The thread waits."""
        replies: list[DoorMessage] = []
        replied = _thread.allocate_lock()
        replied.acquire()

        def wake(reply: DoorMessage) -> None:
            replies.append(reply)
            replied.release()

        self._send(message, wake)
        replied.acquire()
        return replies[0]

    async def ask_in_loop(self, message: DoorMessage) -> DoorMessage:
        """Return the reply to a message. The agent's event loop continues meanwhile."""
        replies: list[DoorMessage] = []
        trio: Any = sys.modules.get("trio")
        if trio and trio.lowlevel.in_trio_run():
            event, token = trio.Event(), trio.lowlevel.current_trio_token()
            wait, set_in_loop = event.wait(), partial(token.run_sync_soon, event.set)
        else:
            import asyncio

            loop = asyncio.get_running_loop()
            future = loop.create_future()
            wait = future
            set_in_loop = partial(loop.call_soon_threadsafe, _complete, future)

        def wake(reply: DoorMessage) -> None:
            replies.append(reply)
            set_in_loop()

        self._send(message, wake)
        await wait
        return replies[0]

    def _send(self, message: DoorMessage, wake: Callable[[DoorMessage], None]) -> None:
        """Send a message; `wake` gets the reply."""
        self._waiting[message["call"]] = wake
        if not self.tell(message):
            self._wake(self._waiting.pop(message["call"], None), GONE)

    def _connect(self) -> socket.socket:
        """Return the socket of this process. The caller holds the lock."""
        if self._socket is None:
            connection = socket.socket()  # `create_connection` would load what names of other hosts need
            connection.connect(("127.0.0.1", self._port))
            self._socket = connection
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(json.dumps({"token": self._token}).encode() + b"\n")
            _thread.start_new_thread(self._read, (connection, self._waiting))
        return self._socket

    def _read(self, connection: socket.socket, waiting: dict[int, Callable[[DoorMessage], Any]]) -> None:
        """Pass each reply to the caller that waits for it, until the gateway closes the connection."""
        try:
            with connection.makefile("rb") as lines:
                for line in lines:
                    reply = json.loads(line)
                    self._wake(waiting.pop(reply["call"], None), reply)
        except (OSError, ValueError):
            pass
        while waiting:
            self._wake(waiting.popitem()[1], GONE)

    @staticmethod
    def _wake(wake: Callable[[DoorMessage], Any] | None, reply: DoorMessage) -> None:
        """Pass a reply to a caller."""
        try:
            if wake:
                wake(reply)
        except RuntimeError:  # its loop is closed
            pass


def _complete(future: Any) -> None:
    """Complete a future unless it is done."""
    if not future.done():
        future.set_result(None)
