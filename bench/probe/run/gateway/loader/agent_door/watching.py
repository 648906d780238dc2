"""Tells the gateway which MCP servers a process starts by itself, in the one run that `bench probe --init` watches."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from typing import Any

from .door import Door

MOST = 100
"""The most programs that a process tells."""
CLIENT = "mcp.client.stdio"
"""The module that starts MCP servers over stdio."""


def watch(door: Door) -> None:
    """Tell of each program that this process starts once it has MCP's client."""
    told = set[str]()

    def heard(event: str, arguments: Any) -> None:
        if event == "subprocess.Popen" and CLIENT in sys.modules and len(told) < MOST:
            with suppress(Exception):  # it must not fail what the agent does
                words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
                told.add(line := shlex.join(map(os.fsdecode, words)))
                door.tell({"seen": "served", "what": line})

    sys.addaudithook(heard)
