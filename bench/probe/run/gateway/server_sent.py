"""Server-sent events: a stream is split into events while it arrives."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_EVENT = 16 * 2**20
"""Bytes of the longest event that is kept together."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
_EVENT_END = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r(?!\Z)|\n)")
"""The end of a line and an empty line. A carriage return at the end of what has come can be half of a line's end."""


class EventSplitter:
    """Splits a stream into events without changing a byte."""

    def __init__(self) -> None:
        self._buffer, self._searched = bytearray(), 0

    def add(self, data: bytes) -> Iterator[bytes]:
        """Add data, and yield each complete event with the empty line that ends it. An event longer than `LONGEST_EVENT` is
        yielded in pieces."""
        self._buffer += data
        at = 0
        while end := _EVENT_END.search(self._buffer, max(at, self._searched)):
            yield bytes(self._buffer[at : end.end()])
            at = end.end()
            self._searched = 0
        del self._buffer[:at]
        if len(self._buffer) > LONGEST_EVENT:
            yield self.rest()
        self._searched = max(0, len(self._buffer) - 3)

    def rest(self) -> bytes:
        """Return the bytes after the last event, and remove them."""
        remaining = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return remaining


def events_of(stream: bytes) -> list[bytes]:
    """Return the events of a whole stream, and the bytes after the last event."""
    events = EventSplitter()
    return [event for event in (*events.add(stream), events.rest()) if event]


def data_of(event: bytes) -> bytes:
    """Return the data of an event; b"" if it has none."""
    lines = (line.partition(b":") for line in _LINE_END.split(event))
    return b"\n".join(value.removeprefix(b" ") for name, _, value in lines if name == b"data")


def with_data(event: bytes, data: bytes) -> bytes:
    """Return an event with other data, on one line."""
    lines = [line for line in _LINE_END.split(event) if line and line.partition(b":")[0] != b"data"]
    return b"\n".join([*lines, b"data: " + data, b"", b""])
