"""Server-sent events: a stream is split into events while it arrives."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_EVENT_BYTES = 16 * 2**20
"""A longer event is split into pieces."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
_EVENT_END = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r(?!\Z)|\n)")
"""The end of a line, and an empty line. A carriage return at the end of the buffer does not match, since a line feed may
follow."""


class EventSplitter:
    """Splits a stream into events without changing a byte."""

    def __init__(self) -> None:
        self._buffer, self._search_start = bytearray(), 0

    def add(self, data: bytes) -> Iterator[bytes]:
        """Add data, and yield each complete event with the empty line that ends it. An event longer than `MAX_EVENT_BYTES` is
        yielded in pieces."""
        self._buffer += data
        event_start = 0
        while end := _EVENT_END.search(self._buffer, max(event_start, self._search_start)):
            yield bytes(self._buffer[event_start : end.end()])
            event_start = end.end()
            self._search_start = 0
        del self._buffer[:event_start]
        if len(self._buffer) > MAX_EVENT_BYTES:
            yield self.rest()
        self._search_start = max(0, len(self._buffer) - 3)

    def rest(self) -> bytes:
        """Return the bytes after the last event, and remove them."""
        remaining = bytes(self._buffer)
        self._buffer.clear()
        self._search_start = 0
        return remaining


def events_of(stream: bytes) -> list[bytes]:
    """Return the events of a whole stream, and at the end the bytes after the last event, if any."""
    events = EventSplitter()
    return [event for event in (*events.add(stream), events.rest()) if event]


def data_of(event: bytes) -> bytes:
    """Return the data of an event, its `data` lines joined; b"" if it has none."""
    lines = (line.partition(b":") for line in _LINE_END.split(event))
    return b"\n".join(value.removeprefix(b" ") for name, _, value in lines if name == b"data")


def with_data(event: bytes, data: bytes) -> bytes:
    """Return an event in which `data`, which must be one line, replaces the event's own data."""
    lines = [line for line in _LINE_END.split(event) if line and line.partition(b":")[0] != b"data"]
    return b"\n".join([*lines, b"data: " + data, b"", b""])
