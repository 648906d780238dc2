"""The end of a process's output, in bounded memory."""

from __future__ import annotations

MAX_TAIL_BYTES = 64 * 2**10


class Tail:
    """The last bytes of an output, at most `max_bytes`. `written` is the number of bytes of the whole output."""

    def __init__(self, max_bytes: int = MAX_TAIL_BYTES):
        self._max_bytes, self._bytes = max_bytes, bytearray()
        self.written = 0

    def add(self, data: bytes) -> None:
        """Add bytes, and drop the oldest bytes beyond the bound."""
        self.written += len(data)
        self._bytes += data[-self._max_bytes :]
        if len(self._bytes) > 2 * self._max_bytes:
            del self._bytes[: -self._max_bytes]

    @property
    def text(self) -> str:
        """The last bytes as text."""
        return bytes(self._bytes[-self._max_bytes :]).decode(errors="replace")

    @property
    def last_line(self) -> str:
        """The last line with a letter, cut to 200 characters; "" if no line has a letter."""
        return last_line(self.text)


def last_line(text: str) -> str:
    """Return the last line with a letter, cut to 200 characters, without the frame of a traceback; "" if no line has a
    letter."""
    lines = (line for line in reversed(text.splitlines()) if any(map(str.isalpha, line)))
    return next(lines, "").strip(" \t|")[-200:]
