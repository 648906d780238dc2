"""Asks an MCP server over stdio for its tools if its agent calls them without listing them: the server is started once more."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

from bench.probe.run.box.loading import INITIALIZE_REQUEST
from bench.probe.run.gateway.mcp import KnownServer
from bench.wire.agent_process import AgentProcess
from bench.wire.json_rpc import Object, Pipe, PipeClosed, RpcMessage, messages_of, text_of

LIST_TIMEOUT_S = 10.0
"""The time in which a server must have listed its tools."""
MAX_PAGES = 100
INITIALIZED: Object = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def list_tools(start: Callable[[tuple[int, int, int]], AgentProcess], known: KnownServer) -> None:
    """Start a server, record the tools that it lists, and end it. Nothing is recorded if it does not answer in time.

    Args:
        start: Starts the server with its stdin, stdout and stderr. Raises OSError if it cannot.
        known: Records the tools.
    """
    their_input, our_output = os.pipe()
    our_input, their_output = os.pipe()
    to_server, from_server, process = Pipe(our_output), Pipe(our_input), None
    try:
        try:
            process = start((their_input, their_output, subprocess.DEVNULL))
        finally:
            for file in (their_input, their_output):
                os.close(file)
        async with asyncio.timeout(LIST_TIMEOUT_S):
            await _request_tools(to_server, from_server, known)
    except (OSError, PipeClosed):
        pass  # TimeoutError is an OSError
    finally:
        for pipe in (to_server, from_server):
            pipe.close()
        if process:
            await process.close()


async def _request_tools(to_server: Pipe, from_server: Pipe, known: KnownServer) -> None:
    """Initialize a session, and request each page of the tools. Raises PipeClosed if the server ends."""
    messages = (message async for line, is_whole in from_server.lines() if is_whole for message in messages_of(line))

    async def answer_to(request: RpcMessage) -> RpcMessage:
        """Send a request, and return its response."""
        await to_server.write(text_of(request.body) + b"\n")
        async for message in messages:
            if message.kind == "answer" and message.key == request.key:
                return message
        raise PipeClosed

    [hello] = messages_of(text_of(INITIALIZE_REQUEST))
    await answer_to(hello)
    await to_server.write(text_of(INITIALIZED) + b"\n")
    params: Object = {}
    for page in range(MAX_PAGES):
        [request] = messages_of(text_of({"jsonrpc": "2.0", "id": page + 2, "method": "tools/list", "params": params}))
        listing = await answer_to(request)
        known.learn(request, listing)
        if not isinstance(cursor := listing.result.get("nextCursor"), str):
            return
        params = {"cursor": cursor}
