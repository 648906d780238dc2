"""A user's MCP server over stdio, called once after another."""

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
PATIENCE = 60.0
"""Seconds for an answer."""
MOST_PAGES = 100
"""The most pages of a server's list of tools."""
MOST_LINES = 10_000
"""The most lines that a server writes before an answer."""


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool: the texts of its content, and whether the call failed."""

    text: str
    failed: bool


class AskedServer:
    """One process of an MCP server. Use it as an asynchronous context manager.

    Args:
        words: The server's command.
        environment: Its variables.

    Attributes:
        tools: Its tools by name, as it lists them. Known once it is entered.

    Raises:
        ConfigError: The server cannot be started, ends, or does not answer. The line says which.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]):
        self._words, self._environment, self._number = tuple(words), dict(environment), 0
        self.tools: dict[str, Object] = {}

    async def __aenter__(self) -> Self:
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        program = shutil.which(self._words[0], path=self._environment.get("PATH")) or self._words[0]
        largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        streams = (their_input, their_output, nowhere)
        try:
            words = [program, *self._words[1:]]
            self._process = AgentProcess(words, Path.cwd(), self._environment, largest, streams=streams)
        finally:
            for file in streams:
                os.close(file)
        self._input, self._output = Pipe(our_input), Pipe(our_output)
        self._lines = self._input.lines()
        try:
            client = {"name": "recovery-bench", "version": "1"}
            await self._grant("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
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
        """Call a tool. Returns None if the server lacks it. Raises ConfigError if the server ends or does not answer."""
        if tool not in self.tools:
            return None
        body = await self._ask("tools/call", {"name": tool, "arguments": dict(arguments)})
        if (why := _refusal(body)) is not None:
            return ToolAnswer(why, failed=True)
        result = _result(body)
        parts = [part["text"] for part in _objects(result.get("content")) if isinstance(part.get("text"), str)]
        return ToolAnswer("\n".join(parts), result.get("isError") is True)

    async def _list(self) -> None:
        cursor: Any = None
        for _ in range(MOST_PAGES):
            result = await self._grant("tools/list", {"cursor": cursor} if cursor else {})
            self.tools |= {tool["name"]: tool for tool in _objects(result.get("tools")) if isinstance(tool.get("name"), str)}
            cursor = result.get("nextCursor")
            if not cursor:
                return
        raise ConfigError(f"{self._words[0]}: lists more than {MOST_PAGES} pages of tools")

    async def _grant(self, method: str, params: Object) -> Object:
        """Return a request's result. Raises ConfigError if the server answers by an error."""
        body = await self._ask(method, params)
        if (why := _refusal(body)) is not None:
            raise ConfigError(f"{self._words[0]}: refuses {method}: {one_line(why, 200)}")
        return _result(body)

    async def _write(self, body: Object) -> None:
        with suppress(PipeClosed):
            await self._output.write(text_of({"jsonrpc": "2.0", **body}) + b"\n")

    async def _ask(self, method: str, params: Object) -> Object:
        self._number += 1
        try:
            async with asyncio.timeout(PATIENCE):
                await self._write({"id": self._number, "method": method, "params": params})
                return await self._answer()
        except TimeoutError as error:
            raise ConfigError(f"{self._words[0]}: did not answer {method} within {PATIENCE:.0f} s") from error

    async def _answer(self) -> Object:
        for _ in range(MOST_LINES):
            try:
                line, is_whole = await anext(self._lines)
            except StopAsyncIteration:
                ended = await self._process.ended
                how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.code}"
                why = f"{self._words[0]}: ended before it answered ({how}); start it by hand to see why"
                raise ConfigError(why) from None
            for message in messages_of(line) if is_whole else ():
                if message.kind == "answer" and message.key == str(self._number):
                    body: Object = message.body
                    return body
        raise ConfigError(f"{self._words[0]}: wrote {MOST_LINES:,} lines without an answer")


def _refusal(body: Object) -> str | None:
    error = body.get("error")
    return None if error is None else str(error.get("message") if isinstance(error, dict) else error)


def _result(body: Object) -> Object:
    result = body.get("result")
    return result if isinstance(result, dict) else {}


def _objects(value: Any) -> list[Object]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
