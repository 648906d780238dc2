"""The body of an answer, bounded while it arrives: whatever an endpoint sends, and however small it packs that, no more than
`LARGEST` bytes are held."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable

import httpx2

LARGEST = 8 * 2**20
"""Bytes of a reply, unpacked: some two million tokens."""
LARGEST_ERROR = 2**16
"""Bytes that are read of an error's body. What follows is not looked at."""
PACKINGS = ("gzip", "x-gzip", "deflate")
HEADERS = {"Accept-Encoding": "gzip"}
"""What a request says, since nothing else is unpacked."""


class TooLarge(Exception):
    """A reply of more than LARGEST bytes."""


class BrokeOff(Exception):
    """The connection ended in mid-body. Whatever ends it before is httpx2's own exception: nothing had been read."""


class NotUnpacked(Exception):
    """A body that is packed in a way that was not asked for, or that does not unpack."""


async def bound(response: httpx2.Response) -> None:
    """A response hook: the body is unpacked here, and ends at its bound. To read it raises TooLarge, NotUnpacked or
    BrokeOff."""
    packing = response.headers.pop("Content-Encoding", "identity").strip().lower()
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(stream, packing, is_error=response.status_code >= 400)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, packing: str, is_error: bool):
        self._stream, self._packing, self._is_error = stream, packing, is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._unpacked():
                yield piece
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise BrokeOff(type(error).__name__) from None

    async def _unpacked(self) -> AsyncIterator[bytes]:
        unpack, left = _unpacker(self._packing), LARGEST_ERROR if self._is_error else LARGEST
        async for piece in self._stream:
            unpacked = unpack(piece, left + 1)
            yield unpacked[:left]
            left -= len(unpacked)
            if left < 0 and self._is_error:
                return
            if left < 0:
                raise TooLarge(f"more than {LARGEST} bytes")

    async def aclose(self) -> None:
        await self._stream.aclose()


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
