"""Tells the gateway what a process reaches and starts, in the one run that `bench probe --init` watches."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from typing import Any

from .door import Door

MOST = 200
"""The most facts that a process tells."""
CLIENT = "mcp.client.stdio"
"""The module that starts MCP servers over stdio."""


class ProcessWatch:
    """Tells of each host and port that this process asks for by Python's sockets, and of each program that it starts.

    Args:
        door: The connection to the gateway.
        port: The gateway's, whose connections are the probe's doing.
    """

    def __init__(self, door: Door, port: int):
        self._door, self._gateway = door, port
        self._told = set[tuple[str, str]]()
        self._ports = set[int]()
        """The ports of hosts that were looked up: what is connected to there has a name already."""

    def install(self) -> None:
        """Begin."""
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: Any) -> None:
        if event not in ("socket.getaddrinfo", "socket.connect", "subprocess.Popen"):
            return
        with suppress(Exception):  # it must not fail what the agent does
            if event == "subprocess.Popen":
                words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
                self._tell("served" if CLIENT in sys.modules else "started", shlex.join(map(os.fsdecode, words)))
                return
            host, port = arguments[:2] if event == "socket.getaddrinfo" else arguments[1][:2]
            if event == "socket.getaddrinfo":
                self._ports.add(int(port))
            if host and int(port) != self._gateway and (event == "socket.getaddrinfo" or port not in self._ports):
                self._tell("reached", f"{os.fsdecode(host)}:{int(port)}")

    def _tell(self, kind: str, what: str) -> None:
        if (kind, what) not in self._told and len(self._told) < MOST:
            self._told.add((kind, what))
            self._door.tell({"seen": kind, "what": what})
