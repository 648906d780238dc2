"""JSON-RPC messages in lines and bodies, as MCP uses them, and the pipe that transports the lines.

A message is parsed in linear time and within bounds. Bytes that cannot be parsed are forwarded unchanged.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from bench.common.bounds import excess_in, is_too_deep
from bench.common.errors import whole_text

LONGEST = 16 * 2**20
"""Bytes of the longest message that is read. A longer one is passed on in pieces."""
AT_A_TIME = 2**18
"""Bytes that are read at a time."""

Object = dict[str, Any]


@dataclass(frozen=True)
class RpcMessage:
    """A JSON-RPC message, or a member of a batch that is no message (`kind` "other").

    key   the message's id as canonical JSON, so that ids of any type can be compared; "" if it has none
    """

    kind: Literal["request", "notification", "answer", "other"]
    body: Any
    key: str = ""
    method: str = ""

    @property
    def params(self) -> Object:
        """The parameters, or {} if they are no object."""
        return as_object(self.body.get("params")) if isinstance(self.body, dict) else {}

    @property
    def result(self) -> Object:
        """The result of an answer, or {} if it is no object."""
        return as_object(self.body.get("result"))


def messages_of(text: bytes) -> tuple[RpcMessage, ...]:
    """Return the messages of a line or a body: a single message, the messages of a batch, or an empty tuple if the text is
    no JSON-RPC or exceeds the bounds."""
    if len(text) > LONGEST or excess_in(text):
        return ()
    try:
        value = json.loads(text.decode())
        if rb"\ud" in text or rb"\uD" in text:  # it may name half a surrogate pair, which no file can hold
            value = json.loads(whole_text(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return ()
    if is_too_deep(value):
        return ()
    if isinstance(value, list):
        return tuple(map(_message, value))
    message = _message(value)
    return () if message.kind == "other" else (message,)


def is_batch(text: bytes) -> bool:
    """Return whether the text of messages is a batch."""
    return text.lstrip()[:1] == b"["


def _message(body: Any) -> RpcMessage:
    """Return a JSON value as a message."""
    if not isinstance(body, dict):
        return RpcMessage("other", body)
    method, key = body.get("method"), key_of(body["id"]) if "id" in body else ""
    if isinstance(method, str):
        return RpcMessage("request" if key else "notification", body, key, method)
    return RpcMessage("answer" if key and ("result" in body or "error" in body) else "other", body, key)


def key_of(identifier: JsonValue) -> str:
    """Return a request id, or a progress token, as canonical JSON. 1 and 1.0 are one number; 1 and "1" differ."""
    if isinstance(identifier, float) and identifier.is_integer():
        identifier = int(identifier)
    return json.dumps(identifier, sort_keys=True)


def waiting_key(waiting: Container[str], key: str) -> str:
    """Return the key under which the request of this response waits. Some servers respond to the id 1 with the id "1", and
    clients accept that."""
    other = key[1:-1] if key.startswith('"') else f'"{key}"'
    return other if key not in waiting and other in waiting else key


def text_of(body: Any) -> bytes:
    """Return a message as JSON in one line, without a line end."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class LineSplitter:
    """Splits a stream into lines without changing a byte."""

    def __init__(self, longest: int = LONGEST):
        self._longest, self._buffer, self._is_long = longest, bytearray(), False

    def add(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield each complete line with its line end, and True. A line beyond the bound is yielded in pieces, each with
        False; the last piece ends the line."""
        *complete_lines, rest = data.split(b"\n")
        for line in complete_lines:
            self._buffer += line
            self._buffer += b"\n"
            yield self.rest(), not self._is_long
            self._is_long = False
        self._buffer += rest
        if self._buffer and (self._is_long or len(self._buffer) > self._longest):
            self._is_long = True
            yield self.rest(), False

    def rest(self) -> bytes:
        """Return the text after the last line end, and clear it."""
        text = bytes(self._buffer)
        self._buffer.clear()
        return text


def as_object(value: Any) -> Object:
    """Return a value that is a JSON object; otherwise {}."""
    return value if isinstance(value, dict) else {}


class PipeClosed(Exception):
    """The other side no longer reads from the pipe, or this side has closed the pipe."""


class Pipe:
    """One end of a pipe, a socket or a file. The object owns the file descriptor. Each line is written completely before the
    next line."""

    def __init__(self, number: int):
        self._number, self._line, self._is_inside = number, asyncio.Lock(), False
        self._waits: asyncio.Future[None] | None = None
        os.set_blocking(number, False)

    async def lines(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Yield the lines that `LineSplitter` returns for the bytes read, and at the end the text after the last line."""
        lines = LineSplitter()
        while more := await self._read():
            for piece in lines.add(more):
                if self._number < 0:
                    return
                yield piece
        if rest := lines.rest():
            yield rest, True

    async def write(self, piece: bytes, is_whole: bool = True) -> None:
        """Write a line, or a piece of a line that is too long for memory. Return as soon as the kernel has taken the bytes.
        Raises PipeClosed."""
        if not self._is_inside or is_whole:
            await self._line.acquire()
        self._is_inside = not is_whole and not piece.endswith(b"\n")
        try:
            view = memoryview(piece)
            while view:
                try:
                    view = view[os.write(self._number, view) :]
                except BlockingIOError:
                    await self._ready(asyncio.get_running_loop().add_writer)
        except OSError as error:
            raise PipeClosed from error
        finally:
            if not self._is_inside:
                self._line.release()

    def end_line(self) -> None:
        """Release the pipe for other writers after a long line that has no end."""
        if self._is_inside:
            self._is_inside = False
            self._line.release()

    def close(self) -> None:
        """Close the pipe, also while a task waits for it. This may be called again."""
        if self._number < 0:
            return
        self.end_line()
        loop, number, self._number = asyncio.get_running_loop(), self._number, -1
        for forget in (loop.remove_reader, loop.remove_writer):
            forget(number)
        os.close(number)
        if self._waits and not self._waits.done():
            self._waits.set_exception(PipeClosed())

    async def _read(self) -> bytes:
        """Read some bytes; b"" at the end."""
        await asyncio.sleep(0)
        while True:
            try:
                return os.read(self._number, AT_A_TIME)
            except BlockingIOError:
                await self._ready(asyncio.get_running_loop().add_reader)
            except OSError:
                return b""

    async def _ready(self, add: Callable[..., Any]) -> None:
        """Wait until the descriptor is ready."""
        loop = asyncio.get_running_loop()
        self._waits = loop.create_future()
        add(self._number, _wake, self._waits)
        try:
            await self._waits
        finally:
            if self._number >= 0:
                (loop.remove_reader if add == loop.add_reader else loop.remove_writer)(self._number)


def _wake(waits: asyncio.Future[None]) -> None:
    if not waits.done():
        waits.set_result(None)
