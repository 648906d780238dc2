"""Programs that load what they start from a registry: a server that one of them starts is started once before the first run."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from bench.common.errors import ConfigError, one_line
from bench.wire.agent_process import AgentProcess

UV, NPM = (".cache/uv", ".local/share/uv"), (".npm",)
LOADERS = {"npx": NPM, "npm": NPM, "uvx": UV, "uv": UV}
"""Programs that load what they start, and where they keep it in the home: it stays from run to run."""
OFFLINE = {"UV_OFFLINE": "1", "npm_config_offline": "true"}
"""Variables by which such a program takes only what it has loaded: no run asks a registry."""
LONGEST, LOOK_AGAIN, LARGEST = 300.0, 0.05, 2**30
"""Seconds until a server must have answered for the first time, and between two looks; bytes of its largest file."""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench probe", "version": "1"}},
}


def loader_of(words: Sequence[str]) -> str:
    """Return the program of a command that loads what it starts, such as `npx`; "" if it is another program."""
    name = Path(words[0]).name if words else ""
    return name if name in LOADERS else ""


async def load_server(
    name: str, words: Sequence[str], folder: Path, variables: Mapping[str, str], namespaces: Sequence[int]
) -> None:
    """Start an MCP server over stdio once in a box, and end it when it has answered.

    Args:
        name: The server's.
        words: The command that starts it, its program as a path.
        folder: Where it is started.
        variables: Its variables.
        namespaces: Open files of the box's namespaces.

    Raises:
        ConfigError: It does not answer.
    """
    reads, hello = os.pipe()  # it stays open until the answer is there: at its end a server may end without one
    process: AgentProcess | None = None
    try:
        os.write(hello, json.dumps(HELLO).encode() + b"\n")
        process = AgentProcess(words, folder, variables, LARGEST, reads=reads, namespaces=namespaces)
        until, answers = monotonic() + LONGEST, process.on_stdout
        while "\n" not in answers.text and not process.ended.done() and monotonic() < until:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(LOOK_AGAIN)
        how = "ended before it answered" if process.ended.done() else f"did not answer within {LONGEST:g} s"
    finally:
        if process:
            await process.close()
        for opened in (reads, hello):
            os.close(opened)
    if "\n" not in answers.text:
        printed = one_line(process.output.last_line or "nothing", 200)
        raise ConfigError(
            f"the MCP server {name} {how}, when it was started once so that {Path(words[0]).name} loads it; see its command, "
            f"or install it and name its program. It printed last: {printed}"
        )
