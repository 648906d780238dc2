"""A server on loopback in a thread and event loop of its own, whatever is spoken there."""

from __future__ import annotations

import asyncio
import ssl
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from types import TracebackType
from typing import Self


class StreamServer(ABC):
    """Serves while its `with` block lasts."""

    def __init__(self, name: str, tls: ssl.SSLContext | None):
        self._tls = tls
        self._port: Future[int] = Future()
        self._handlers: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result(timeout=10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._port.done():
                raise
            self._port.set_exception(error)

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
        """Own the task, so that nothing of a connection outlives the server."""
        handler = asyncio.get_running_loop().create_task(self._handle(reader, writer))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)

    @abstractmethod
    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
