"""Programs such as npx that load a server from a registry before they start it: each such server is started once before the
first run."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from bench.common.errors import ConfigError, one_line
from bench.wire.agent_process import AgentProcess

UV_FOLDERS, NPM_FOLDERS = (".cache/uv", ".local/share/uv"), (".npm",)
LOADERS = {"npx": NPM_FOLDERS, "npm": NPM_FOLDERS, "uvx": UV_FOLDERS, "uv": UV_FOLDERS}
"""Programs that load a server from a registry before they start it, each with the folders in the home where they keep it. The
folders stay from run to run."""
OFFLINE_VARIABLES = {"UV_OFFLINE": "1", "npm_config_offline": "true"}
"""Variables that let such a program start only what it has loaded before, so that no run queries a registry."""
ANSWER_TIMEOUT_S, POLL_INTERVAL_S, MAX_FILE_BYTES = 300.0, 0.05, 2**30
"""Seconds until a server must have answered for the first time, and between two checks; bytes of the largest file that it may
write."""
INITIALIZE_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench probe", "version": "1"}},
}


def loader_of(words: Sequence[str]) -> str:
    """Return the program of a command if it is one of the `LOADERS`, such as `npx`; else ""."""
    name = Path(words[0]).name if words else ""
    return name if name in LOADERS else ""


async def load_server(
    name: str, words: Sequence[str], folder: Path, variables: Mapping[str, str], namespaces: Sequence[int]
) -> None:
    """Start an MCP server over stdio once in a box, and end it once it has answered.

    Args:
        name: The server's name.
        words: The command that starts it; its program is a path.
        folder: The working folder.
        variables: The server's variables.
        namespaces: Open files of the box's namespaces.

    Raises:
        ConfigError: The server does not answer.
    """
    reads, hello = os.pipe()  # it stays open until the answer is there: at its end a server may end without one
    process: AgentProcess | None = None
    try:
        os.write(hello, json.dumps(INITIALIZE_REQUEST).encode() + b"\n")
        process = AgentProcess(words, folder, variables, MAX_FILE_BYTES, reads=reads, namespaces=namespaces)
        deadline, printed_answer = monotonic() + ANSWER_TIMEOUT_S, process.on_stdout
        while "\n" not in printed_answer.text and not process.ended.done() and monotonic() < deadline:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(POLL_INTERVAL_S)
        how = "ended before it answered" if process.ended.done() else f"did not answer within {ANSWER_TIMEOUT_S:g} s"
    finally:
        if process:
            await process.close()
        for opened in (reads, hello):
            os.close(opened)
    if "\n" not in printed_answer.text:
        printed = one_line(process.output.last_line or "nothing", 200)
        raise ConfigError(
            f"the MCP server {name} {how}, when it was started once so that {Path(words[0]).name} loads it; see its command, "
            f"or install it and name its program. It printed last: {printed}"
        )
