"""Split a stream into server-sent events while it arrives."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_EVENT = 16 * 2**20
"""Bytes of the longest event that is kept together."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
_EVENT_END = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r(?!\Z)|\n)")
"""The end of a line and an empty line. A carriage return at the end of what has come can be half of a line's end."""


class EventCutter:
    """Splits a stream into events without changing a byte."""

    def __init__(self) -> None:
        self._held, self._looked = bytearray(), 0

    def add(self, more: bytes) -> Iterator[bytes]:
        """Yield each event that is complete, with the empty line that ends it. A longer one than `LONGEST_EVENT` comes in
        pieces."""
        self._held += more
        at = 0
        while end := _EVENT_END.search(self._held, max(at, self._looked)):
            yield bytes(self._held[at : end.end()])
            at = end.end()
            self._looked = 0
        del self._held[:at]
        if len(self._held) > LONGEST_EVENT:
            yield self.rest()
        self._looked = max(0, len(self._held) - 3)

    def rest(self) -> bytes:
        """Return the bytes after the last event, and forget them."""
        held = bytes(self._held)
        self._held.clear()
        self._looked = 0
        return held


def events_of(stream: bytes) -> list[bytes]:
    """Return a stream's events, and what stands after the last of them."""
    events = EventCutter()
    return [event for event in (*events.add(stream), events.rest()) if event]


def data_of(event: bytes) -> bytes:
    """Return the data of an event; b"" if it has none."""
    lines = (line.partition(b":") for line in _LINE_END.split(event))
    return b"\n".join(value.removeprefix(b" ") for name, _, value in lines if name == b"data")


def with_data(event: bytes, data: bytes) -> bytes:
    """Return an event with other data, in one line."""
    lines = [line for line in _LINE_END.split(event) if line and line.partition(b":")[0] != b"data"]
    return b"\n".join([*lines, b"data: " + data, b"", b""])
