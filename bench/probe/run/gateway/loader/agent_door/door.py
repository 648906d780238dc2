"""The connection of an agent's process to the gateway: one socket, which the first message opens and one thread reads."""

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
GATEWAY_LOST = {"do": "raise", "kind": "ConnectionAbortedError", "text": "bench probe: its gateway cannot be reached"}
"""The reply to each message if the gateway is lost: the call fails, since the gateway would not see its effect."""


class Door:
    """Asks the gateway before and after each call.

    Args:
        port: The gateway's port on loopback.
        token: Shows the gateway that this process is the agent's.
    """

    def __init__(self, port: int, token: str):
        self._port, self._token = port, token
        self._forget_connection()
        os.register_at_fork(after_in_child=self._forget_connection)

    def _forget_connection(self) -> None:
        """Close the socket of the parent process after a fork, and start without a socket: a socket belongs to one process."""
        if socket_of_parent := getattr(self, "_socket", None):
            socket_of_parent.close()
        self._socket: socket.socket | None = None
        self._lock, self._call_numbers = _thread.allocate_lock(), itertools.count(1)
        self._wakers: dict[int, Callable[[DoorMessage], Any]] = {}

    def next_number(self) -> int:
        """Return a number that no other call of this process has."""
        return next(self._call_numbers)

    def tell(self, message: DoorMessage) -> bool:
        """Send a message that has no reply. Return whether it was sent."""
        with self._lock:
            return self._write(message)

    def ask(self, message: DoorMessage) -> DoorMessage:
        """Send a message, and block this thread until the reply arrives. Return the reply."""
        replies: list[DoorMessage] = []
        reply_lock = _thread.allocate_lock()
        reply_lock.acquire()

        def wake(reply: DoorMessage) -> None:
            replies.append(reply)
            reply_lock.release()

        self._send(message, wake)
        reply_lock.acquire()
        return replies[0]

    async def ask_in_loop(self, message: DoorMessage) -> DoorMessage:
        """Send a message, and return the reply. The agent's event loop continues until it arrives."""
        replies: list[DoorMessage] = []
        trio: Any = sys.modules.get("trio")
        if trio and trio.lowlevel.in_trio_run():
            trio_event, token = trio.Event(), trio.lowlevel.current_trio_token()
            reply_event, set_in_loop = trio_event.wait(), partial(token.run_sync_soon, trio_event.set)
        else:
            import asyncio

            loop = asyncio.get_running_loop()
            future = loop.create_future()
            reply_event = future
            set_in_loop = partial(loop.call_soon_threadsafe, _complete, future)

        def wake(reply: DoorMessage) -> None:
            replies.append(reply)
            set_in_loop()

        self._send(message, wake)
        await reply_event
        return replies[0]

    def _send(self, message: DoorMessage, wake: Callable[[DoorMessage], None]) -> None:
        """Send a message about a call; `wake` is called with the reply."""
        with self._lock:
            self._wakers[message["call"]] = wake
            is_sent = self._write(message)
        if not is_sent:
            self._wake(self._wakers.pop(message["call"], None), GATEWAY_LOST)

    def _write(self, message: DoorMessage) -> bool:
        """Write a message to the socket, and return whether that worked. The caller holds the lock."""
        try:
            self._connect().sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True

    def _connect(self) -> socket.socket:
        """Return the socket of this process, and open it if there is none. The caller holds the lock."""
        if self._socket is None:
            connection = socket.socket()  # `create_connection` would import the codec for names of hosts
            connection.connect(("127.0.0.1", self._port))
            self._socket = connection
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(json.dumps({"token": self._token}).encode() + b"\n")
            _thread.start_new_thread(self._read, (connection, self._wakers))
        return self._socket

    def _read(self, connection: socket.socket, wakers: dict[int, Callable[[DoorMessage], Any]]) -> None:
        """Pass each reply to the caller that waits for it, until the gateway closes the connection. The next message then opens
        another one, since nobody would read a reply on this one."""
        try:
            with connection.makefile("rb") as lines:
                for line in lines:
                    reply = json.loads(line)
                    self._wake(wakers.pop(reply["call"], None), reply)
        except (OSError, ValueError):
            pass
        with self._lock:
            connection.close()
            self._socket = None if self._socket is connection else self._socket
            lost = [wakers.popitem()[1] for _ in range(len(wakers))]  # those of the next connection come after the lock
        for wake in lost:
            self._wake(wake, GATEWAY_LOST)

    @staticmethod
    def _wake(wake: Callable[[DoorMessage], Any] | None, reply: DoorMessage) -> None:
        """Pass a reply to the function that waits for it, if any."""
        try:
            if wake:
                wake(reply)
        except RuntimeError:  # its loop is closed
            pass


def _complete(future: Any) -> None:
    """Complete a future unless it is done."""
    if not future.done():
        future.set_result(None)
