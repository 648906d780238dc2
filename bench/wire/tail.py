"""The end of a process's output, in bounded memory."""

from __future__ import annotations

KEPT = 64 * 2**10
"""Bytes."""


class Tail:
    """The last bytes of an output. `written` is the number of all bytes, and `text` the last part of them."""

    def __init__(self, kept: int = KEPT):
        self._kept, self._bytes = kept, bytearray()
        self.written = 0

    def add(self, more: bytes) -> None:
        """Add bytes, and drop the oldest bytes beyond the bound."""
        self.written += len(more)
        self._bytes += more[-self._kept :]
        if len(self._bytes) > 2 * self._kept:
            del self._bytes[: -self._kept]

    @property
    def text(self) -> str:
        """The last part of the output."""
        return bytes(self._bytes[-self._kept :]).decode(errors="replace")

    @property
    def last_line(self) -> str:
        """The last line with a letter, cut to 200 characters; "" if no line has a letter."""
        return last_line(self.text)


def last_line(text: str) -> str:
    """Return the last line with a letter, cut to 200 characters, without the frame of a traceback; "" if no line has a
    letter."""
    lines = (line for line in reversed(text.splitlines()) if any(map(str.isalpha, line)))
    return next(lines, "").strip(" \t|")[-200:]
