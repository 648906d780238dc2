"""A forward proxy on loopback, as companies have them: for whatever host it is asked, it goes to one port of this machine.

with ProxyServer(to=port) as proxy:
    ...  # HTTP_PROXY=proxy.url
assert proxy.heads[0].startswith("POST http://model.example/")
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from stream_server import StreamServer


class ProxyServer(StreamServer):
    """A proxy while its `with` block lasts.

    answer   what it says to every request in place of passing it on: b"" closes without a word; None: it does pass it on
    mute     it takes every request, and says nothing
    heads    of everything that it was sent so far and could read, in order of arrival
    """

    def __init__(self, to: int = 0, *, answer: bytes | None = None, mute: bool = False, tls: ssl.SSLContext | None = None):
        super().__init__("proxy", tls)
        self._to, self._answer, self._mute = to, answer, mute
        self.heads: list[str] = []

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port.result()}"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heads.append(head)
            if self._mute:
                await self._stop.wait()
            elif self._answer is not None:
                writer.write(self._answer)
                await writer.drain()
            else:
                await self._pass_on(head, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # either side went away, as they do
        finally:
            writer.close()

    async def _pass_on(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to = await asyncio.open_connection("127.0.0.1", self._to)
        method, target, rest = head.split(" ", 2)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            lines = [line for line in rest.split("\r\n") if not line.lower().startswith("proxy-")]
            to.write("\r\n".join([f"{method} {urlsplit(target).path} {lines[0]}", *lines[1:]]).encode("latin-1"))
        try:
            await asyncio.wait(
                [asyncio.ensure_future(_pipe(reader, to)), asyncio.ensure_future(_pipe(there, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            to.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while more := await reader.read(2**16):
        writer.write(more)
        await writer.drain()
