"""The body of an answer, bounded while it arrives: whatever an endpoint sends, and however small it packs that, no more than
`LARGEST` bytes are held."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable

import aiohttp

LARGEST = 8 * 2**20
"""Bytes of a reply, unpacked: some two million tokens."""
LARGEST_ERROR = 2**16
"""Bytes that are read of an error's body. What follows is not looked at."""
PACKINGS = ("gzip", "x-gzip", "deflate")
ACCEPTED = "gzip"
"""What a request says, since nothing else is unpacked."""


class TooLarge(Exception):
    """A reply of more than LARGEST bytes."""


class BrokeOff(Exception):
    """The connection ended in mid-body. Whatever ends it before is aiohttp's own exception: nothing had been read."""


class NotUnpacked(Exception):
    """A body that is packed in a way that was not asked for, or that does not unpack."""


def text_in(content: bytes) -> str:
    """A body as text, with U+FFFD for what is none. JSON is UTF-8 whatever a header says, or what its first bytes tell: UTF-8
    with a byte order mark, or two or four bytes a character."""
    return content.decode(json.detect_encoding(content), errors="replace")


async def whole(pieces: AsyncIterator[bytes], packing: str, *, is_error: bool) -> bytes:
    """The body that arrives in these pieces, unpacked; an error's beginning. Raises TooLarge, NotUnpacked or BrokeOff."""
    try:
        return b"".join([piece async for piece in _unpacked(pieces, packing.strip().lower() or "identity", is_error=is_error)])
    except aiohttp.ClientError as error:
        raise BrokeOff(type(error).__name__) from None


async def _unpacked(pieces: AsyncIterator[bytes], packing: str, *, is_error: bool) -> AsyncIterator[bytes]:
    unpack, left = _unpacker(packing), LARGEST_ERROR if is_error else LARGEST
    async for piece in pieces:
        unpacked = unpack(piece, left + 1)
        if len(unpacked) <= left:
            left -= len(unpacked)
            yield unpacked
        elif is_error:
            yield unpacked[:left]
            return
        else:
            raise TooLarge(f"more than {LARGEST} bytes")


def _unpacker(packing: str) -> Callable[[bytes, int], bytes]:
    """Gives so many bytes at most; what more there is, is dropped: whoever asks has then had his fill. Raises NotUnpacked."""
    if packing == "identity":
        return lambda piece, most: piece[:most]
    if packing not in PACKINGS:
        raise NotUnpacked(f"it is packed as {packing[:40]!r}, which nobody asked for")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # the header says whether it is gzip or deflate

    def unpack(piece: bytes, most: int) -> bytes:
        try:
            return inflate.decompress(piece, most)
        except zlib.error as error:
            raise NotUnpacked(f"it does not unpack as {packing}: {error}") from None

    return unpack
