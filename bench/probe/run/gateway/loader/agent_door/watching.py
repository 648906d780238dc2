"""Reports the MCP servers that a process starts by itself, in the one run that `bench probe --init` watches."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

from .door import Door

MAX_SERVERS = 100
"""The most servers that a process reports."""
CLIENT_PREFIX = "mcp.client."
"""The beginning of the names of the modules that start MCP servers."""


def watch_servers(door: Door) -> None:
    """Report each program that MCP's client starts in this process."""
    commands = set[str]()

    def hook(event: str, arguments: Any) -> None:
        if event == "subprocess.Popen" and len(commands) < MAX_SERVERS and _is_called_by_client():
            with suppress(Exception):  # a failure here must not reach the agent
                words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
                commands.add(command := shlex.join(map(os.fsdecode, words)))
                door.tell({"seen": "served", "what": command})

    sys.addaudithook(hook)


def _is_called_by_client() -> bool:
    """Return whether a module of MCP's client is on the call stack."""
    frame: FrameType | None = sys._getframe()
    while frame and not str(frame.f_globals.get("__name__")).startswith(CLIENT_PREFIX):
        frame = frame.f_back
    return frame is not None
