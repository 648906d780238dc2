"""Read the body of an answer. At most MAX_REPLY_BYTES are held, whatever an endpoint sends and however well the body is
compressed."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable

import aiohttp

from bench.wire.inflater import Inflater

MAX_REPLY_BYTES = 8 * 2**20
"""Bytes of a decompressed reply: some two million tokens."""
MAX_ERROR_BYTES = 2**16
"""Bytes that are read of an error's body. The rest is ignored."""
COMPRESSIONS = ("gzip", "x-gzip", "deflate")
ACCEPT_ENCODING = "gzip"
"""The compression that requests ask for. A body with another of COMPRESSIONS is decompressed as well."""


class TooLarge(Exception):
    """A reply of more than MAX_REPLY_BYTES."""


class BrokeOff(Exception):
    """The connection ended within the body. If it ends before the body, aiohttp's own exception is raised."""


class NotUnpacked(Exception):
    """A body with a compression that was not asked for, or that cannot be decompressed."""


def text_in(content: bytes) -> str:
    """Return a body as text, with U+FFFD for undecodable bytes. JSON is read as UTF-8 whatever the header says, unless its
    first bytes show a byte order mark, UTF-16 or UTF-32."""
    return content.decode(json.detect_encoding(content), errors="replace")


async def read_body(pieces: AsyncIterator[bytes], packing: str, *, is_error: bool) -> bytes:
    """Return the whole decompressed body, or the beginning of an error's body. Raises TooLarge, NotUnpacked or BrokeOff."""
    try:
        return b"".join([piece async for piece in _unpack(pieces, packing.strip().lower() or "identity", is_error=is_error)])
    except aiohttp.ClientError as error:
        raise BrokeOff(type(error).__name__) from None


async def _unpack(pieces: AsyncIterator[bytes], packing: str, *, is_error: bool) -> AsyncIterator[bytes]:
    """Yield the decompressed pieces of a body, up to its limit."""
    unpack, bytes_left = _unpacker(packing), MAX_ERROR_BYTES if is_error else MAX_REPLY_BYTES
    async for piece in pieces:
        unpacked = unpack(piece, bytes_left + 1)
        if len(unpacked) <= bytes_left:
            bytes_left -= len(unpacked)
            yield unpacked
        elif is_error:
            yield unpacked[:bytes_left]
            return
        else:
            raise TooLarge(f"more than {MAX_REPLY_BYTES} bytes")


def _unpacker(packing: str) -> Callable[[bytes, int], bytes]:
    """Return a function that decompresses a piece and returns at most `limit` bytes. It drops the rest, since its caller then
    stops. Raises NotUnpacked."""
    if packing == "identity":
        return lambda piece, limit: piece[:limit]
    if packing not in COMPRESSIONS:
        raise NotUnpacked(f"it is packed as {packing[:40]!r}, which nobody asked for")
    inflater = Inflater()

    def unpack(piece: bytes, limit: int) -> bytes:
        """Return at most `limit` decompressed bytes of a piece."""
        try:
            return inflater.add(piece, limit)
        except zlib.error as error:
            raise NotUnpacked(f"it does not unpack as {packing}: {error}") from None

    return unpack
