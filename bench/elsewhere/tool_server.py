"""A client of a user's MCP server over stdio. The calls are sent one after another."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench.common.errors import ConfigError, one_line
from bench.wire.agent_process import AgentProcess
from bench.wire.json_rpc import Object, Pipe, PipeClosed, messages_of, text_of

PROTOCOL = "2025-06-18"
ANSWER_TIMEOUT_S = 60.0
"""Seconds to wait for an answer."""
MAX_PAGES = 100
"""The most pages of a server's list of tools."""
MAX_LINES = 10_000
"""The most lines that a server writes before an answer."""


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool: the texts of its content, and whether the call failed."""

    text: str
    failed: bool


class McpServerProcess:
    """One process of an MCP server. Use it as an asynchronous context manager.

    Args:
        words: The command of the server.
        environment: The environment variables of the server.

    Attributes:
        tools: The tools that the server lists, by name. They are known after the context is entered.

    Raises:
        ConfigError: The server cannot be started, exits, or does not respond. The line says which.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]):
        self._words, self._environment, self._number = tuple(words), dict(environment), 0
        self.tools: dict[str, Object] = {}

    async def __aenter__(self) -> Self:
        """Start the server, open an MCP session, and list the tools."""
        server_input, client_output = os.pipe()
        client_input, server_output = os.pipe()
        devnull = os.open(os.devnull, os.O_WRONLY)
        program = shutil.which(self._words[0], path=self._environment.get("PATH")) or self._words[0]
        max_file_bytes = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        streams = (server_input, server_output, devnull)
        try:
            words = [program, *self._words[1:]]
            self._process = AgentProcess(words, Path.cwd(), self._environment, max_file_bytes, streams=streams)
        finally:
            for file in streams:
                os.close(file)
        self._input, self._output = Pipe(client_input), Pipe(client_output)
        self._lines = self._input.lines()
        try:
            client = {"name": "recovery-bench", "version": "1"}
            await self._request_result("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
            await self._write({"method": "notifications/initialized"})
            await self._list()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._output.close()
        self._input.close()
        await self._process.close()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer | None:
        """Call a tool. Returns None if the server lacks the tool. Raises ConfigError if the server exits or does not
        respond."""
        if tool not in self.tools:
            return None
        body = await self._request("tools/call", {"name": tool, "arguments": dict(arguments)})
        if (error := _error_of(body)) is not None:
            return ToolAnswer(error, failed=True)
        result = _result_of(body)
        parts = [part["text"] for part in _objects_in(result.get("content")) if isinstance(part.get("text"), str)]
        return ToolAnswer("\n".join(parts), result.get("isError") is True)

    async def _list(self) -> None:
        """Read the list of the server's tools, page by page."""
        cursor: Any = None
        for _ in range(MAX_PAGES):
            result = await self._request_result("tools/list", {"cursor": cursor} if cursor else {})
            self.tools |= {tool["name"]: tool for tool in _objects_in(result.get("tools")) if isinstance(tool.get("name"), str)}
            cursor = result.get("nextCursor")
            if not cursor:
                return
        raise ConfigError(f"{self._words[0]}: lists more than {MAX_PAGES} pages of tools")

    async def _request_result(self, method: str, params: Object) -> Object:
        """Send a request and return its result. Raises ConfigError if the server responds with an error."""
        body = await self._request(method, params)
        if (error := _error_of(body)) is not None:
            raise ConfigError(f"{self._words[0]}: refuses {method}: {one_line(error, 200)}")
        return _result_of(body)

    async def _write(self, body: Object) -> None:
        """Write a message to the server."""
        with suppress(PipeClosed):
            await self._output.write(text_of({"jsonrpc": "2.0", **body}) + b"\n")

    async def _request(self, method: str, params: Object) -> Object:
        """Send a request and return the response. Raises ConfigError if no response arrives in time."""
        self._number += 1
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._write({"id": self._number, "method": method, "params": params})
                return await self._read_response()
        except TimeoutError as error:
            raise ConfigError(f"{self._words[0]}: did not answer {method} within {ANSWER_TIMEOUT_S:.0f} s") from error

    async def _read_response(self) -> Object:
        """Read lines until the response to the last request arrives. Raises ConfigError if the server exits before."""
        for _ in range(MAX_LINES):
            try:
                line, is_whole = await anext(self._lines)
            except StopAsyncIteration:
                end = await self._process.ended
                end_text = f"signal {end.signal}" if end.signal else f"exit code {end.code}"
                message_text = f"{self._words[0]}: ended before it answered ({end_text}); start it by hand to see why"
                raise ConfigError(message_text) from None
            for message in messages_of(line) if is_whole else ():
                if message.kind == "answer" and message.key == str(self._number):
                    body: Object = message.body
                    return body
        raise ConfigError(f"{self._words[0]}: wrote {MAX_LINES:,} lines without an answer")


def _error_of(body: Object) -> str | None:
    """Return the error message of a response; None if the response is no error."""
    error = body.get("error")
    return None if error is None else str(error.get("message") if isinstance(error, dict) else error)


def _result_of(body: Object) -> Object:
    """Return the result of a response."""
    result = body.get("result")
    return result if isinstance(result, dict) else {}


def _objects_in(value: Any) -> list[Object]:
    """Return the objects in a JSON list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
