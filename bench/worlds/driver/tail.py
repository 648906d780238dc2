"""The end of what a process writes: however much it is, no more is ever held."""

from __future__ import annotations

KEPT = 64 * 2**10
"""Bytes."""


class Tail:
    """`written` counts all bytes."""

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
        """The last that is not empty, shortened."""
        return self.text.strip().rpartition("\n")[2].strip()[-200:]
