"""A forward proxy on loopback, as companies have them: for whatever host it is asked, it goes to one port of this machine.

with ProxyServer(to=port) as proxy:
    ...  # HTTP_PROXY=proxy.url
assert proxy.heads[0].startswith("POST http://model.example/")
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from concurrent.futures import Future
from typing import Self
from urllib.parse import urlsplit


class ProxyServer:
    """Serves while its `with` block lasts, in a thread and event loop of its own.

    answer   what it says to every request in place of passing it on: b"" closes without a word; None: it does pass it on
    mute     it takes every request, and says nothing
    heads    of everything that it was sent so far and could read, in order of arrival
    """

    def __init__(self, to: int = 0, *, answer: bytes | None = None, mute: bool = False, tls: ssl.SSLContext | None = None):
        self._to, self._answer, self._mute, self._tls = to, answer, mute, tls
        self.heads: list[str] = []
        self._port: Future[int] = Future()
        self._handlers: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port.result()}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result(timeout=10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self._port.set_result(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.get_running_loop().create_task(self._handle(reader, writer))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)

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
            own = [line for line in rest.split("\r\n") if not line.lower().startswith("proxy-")]
            to.write("\r\n".join([f"{method} {urlsplit(target).path} {own[0]}", *own[1:]]).encode("latin-1"))
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
