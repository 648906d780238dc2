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

MAX_MESSAGE_BYTES = 16 * 2**20
"""A longer message is not parsed, and is forwarded in pieces."""
READ_BYTES = 2**18
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
    if len(text) > MAX_MESSAGE_BYTES or excess_in(text):
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
    """Return whether the text of JSON-RPC messages is a batch, a JSON list."""
    return text.lstrip()[:1] == b"["


def _message(body: Any) -> RpcMessage:
    """Return a JSON value as a message. Its kind is "other" if the value is no message of JSON-RPC."""
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
    """Return the member of `waiting` that this response's key answers, or `key` itself if there is none. Some servers respond
    to the id 1 with the id "1", and clients accept that."""
    other_form = key[1:-1] if key.startswith('"') else f'"{key}"'
    return other_form if key not in waiting and other_form in waiting else key


def text_of(body: Any) -> bytes:
    """Return a message as JSON in UTF-8, in one line without a line end."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class LineSplitter:
    """Splits a stream into lines without changing a byte."""

    def __init__(self, max_bytes: int = MAX_MESSAGE_BYTES):
        self._max_bytes, self._buffer, self._is_in_long_line = max_bytes, bytearray(), False

    def add(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Add data, and yield each complete line with its line end, and True. A line longer than `max_bytes` is yielded in
        pieces, each with False; the last piece has the line end."""
        *complete_lines, rest = data.split(b"\n")
        for line in complete_lines:
            self._buffer += line
            self._buffer += b"\n"
            yield self.rest(), not self._is_in_long_line
            self._is_in_long_line = False
        self._buffer += rest
        if self._buffer and (self._is_in_long_line or len(self._buffer) > self._max_bytes):
            self._is_in_long_line = True
            yield self.rest(), False

    def rest(self) -> bytes:
        """Return the bytes after the last line end, and remove them from the buffer."""
        data = bytes(self._buffer)
        self._buffer.clear()
        return data


def as_object(value: Any) -> Object:
    """Return a value that is a JSON object; otherwise {}."""
    return value if isinstance(value, dict) else {}


class PipeClosed(Exception):
    """The other side no longer reads from the pipe, or this side has closed the pipe."""


class Pipe:
    """One end of a pipe, a socket or a file. The object owns the file descriptor. Each line is written completely before the
    next line."""

    def __init__(self, descriptor: int):
        self._descriptor, self._line_lock, self._is_in_line = descriptor, asyncio.Lock(), False
        self._readiness: asyncio.Future[None] | None = None
        os.set_blocking(descriptor, False)

    async def lines(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Yield the pieces that `LineSplitter.add` yields for the bytes read, and at the end the text after the last line."""
        splitter = LineSplitter()
        while data := await self._read():
            for piece in splitter.add(data):
                if self._descriptor < 0:
                    return
                yield piece
        if rest := splitter.rest():
            yield rest, True

    async def write(self, piece: bytes, is_whole: bool = True) -> None:
        """Write a line, or a piece of a long line if not `is_whole`. No other line is written until the last piece, which has
        the line end. Return as soon as the kernel has taken the bytes. Raises PipeClosed."""
        if not self._is_in_line or is_whole:
            await self._line_lock.acquire()
        self._is_in_line = not is_whole and not piece.endswith(b"\n")
        try:
            view = memoryview(piece)
            while view:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:
                    await self._wait_until_ready(asyncio.get_running_loop().add_writer)
        except OSError as error:
            raise PipeClosed from error
        finally:
            if not self._is_in_line:
                self._line_lock.release()

    def end_line(self) -> None:
        """Release the pipe for other writers after a long line that has no end."""
        if self._is_in_line:
            self._is_in_line = False
            self._line_lock.release()

    def close(self) -> None:
        """Close the pipe, also while a task waits for it. This may be called again."""
        if self._descriptor < 0:
            return
        self.end_line()
        loop, descriptor, self._descriptor = asyncio.get_running_loop(), self._descriptor, -1
        loop.remove_reader(descriptor)
        loop.remove_writer(descriptor)
        os.close(descriptor)
        if self._readiness and not self._readiness.done():
            self._readiness.set_exception(PipeClosed())

    async def _read(self) -> bytes:
        """Return some bytes; b"" at the end, or if reading fails."""
        await asyncio.sleep(0)
        while True:
            try:
                return os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                await self._wait_until_ready(asyncio.get_running_loop().add_reader)
            except OSError:
                return b""

    async def _wait_until_ready(self, add: Callable[..., Any]) -> None:
        """Wait until the descriptor is ready for what `add` watches: `loop.add_reader` or `loop.add_writer`."""
        loop = asyncio.get_running_loop()
        self._readiness = loop.create_future()
        add(self._descriptor, _wake, self._readiness)
        try:
            await self._readiness
        finally:
            if self._descriptor >= 0:
                (loop.remove_reader if add == loop.add_reader else loop.remove_writer)(self._descriptor)


def _wake(readiness: asyncio.Future[None]) -> None:
    """Complete the future on which `_wait_until_ready` waits."""
    if not readiness.done():
        readiness.set_result(None)
