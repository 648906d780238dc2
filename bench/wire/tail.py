"""The end of a process's output, in bounded memory."""

from __future__ import annotations

KEPT = 64 * 2**10
"""Bytes."""


class Tail:
    """`written` counts all bytes, `text` holds the last of them."""

    def __init__(self, kept: int = KEPT):
        self._kept, self._bytes = kept, bytearray()
        self.written = 0

    def add(self, more: bytes) -> None:
        self.written += len(more)
        self._bytes += more[-self._kept :]
        if len(self._bytes) > 2 * self._kept:
            del self._bytes[: -self._kept]

    @property
    def text(self) -> str:
        return bytes(self._bytes[-self._kept :]).decode(errors="replace")

    @property
    def last_line(self) -> str:
        """The last line that has a letter, cut to 200 characters; "" if none has."""
        return last_line(self.text)


def last_line(text: str) -> str:
    """Return the last line that has a letter, at most 200 characters of it, without what frames a traceback; "" if none has."""
    lines = (line for line in reversed(text.splitlines()) if any(map(str.isalpha, line)))
    return next(lines, "").strip(" \t|")[-200:]
