"""Tells the gateway which MCP servers a process starts by itself, in the one run that `bench probe --init` watches."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

from .door import Door

MOST = 100
"""The most servers that a process tells."""
CLIENT = "mcp.client."
"""How the names of modules begin that start MCP servers."""


def watch(door: Door) -> None:
    """Tell of each program that MCP's client starts in this process."""
    commands = set[str]()

    def heard(event: str, arguments: Any) -> None:
        if event == "subprocess.Popen" and len(commands) < MOST and _is_of_client():
            with suppress(Exception):  # it must not fail what the agent does
                words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
                commands.add(line := shlex.join(map(os.fsdecode, words)))
                door.tell({"seen": "served", "what": line})

    sys.addaudithook(heard)


def _is_of_client() -> bool:
    """Return whether a module of MCP's client is among those that have called this."""
    frame: FrameType | None = sys._getframe()
    while frame and not str(frame.f_globals.get("__name__")).startswith(CLIENT):
        frame = frame.f_back
    return frame is not None
