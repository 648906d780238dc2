"""The bytes of a body with `Content-Encoding: gzip` or `deflate`, decompressed as they arrive."""

from __future__ import annotations

import zlib

_AUTOMATIC = zlib.MAX_WBITS | 32
"""The header of the bytes says whether they are gzip or deflate."""
GZIP = zlib.MAX_WBITS | 16
_BLOCK_BYTES = 4096
"""Bytes that are decompressed at a time: zlib copies the rest of a block at the end of each member."""


class Inflater:
    """Decompresses a body. Several members of gzip, one after another, are one content (RFC 1952, 2.2), and zero bytes after a
    member are padding.

    Args:
        window_bits: The format in zlib's words; if left out, gzip or deflate, as the header says.
    """

    def __init__(self, window_bits: int = _AUTOMATIC) -> None:
        self._window_bits = window_bits
        self._member = zlib.decompressobj(window_bits)

    def add(self, data: bytes, most: int) -> bytes:
        """Return at most `most` decompressed bytes. A caller that gets so many has lost the rest. Raises zlib.error."""
        parts = list[bytes]()
        for start in range(0, len(data), _BLOCK_BYTES):
            block = data[start : start + _BLOCK_BYTES]
            while block and most > 0:
                if self._member.eof:
                    if not (block := block.lstrip(b"\0")):
                        break
                    self._member = zlib.decompressobj(self._window_bits)
                parts.append(self._member.decompress(block, most))
                most -= len(parts[-1])
                block = self._member.unused_data
        return b"".join(parts)

    @property
    def is_whole(self) -> bool:
        """Whether the last member has ended."""
        return self._member.eof
