"""The HTTP transport below OpenAI's client: one request, one answer of limited size, no retries, no redirects.

aiohttp sends the request over sockets that record when bytes left and arrived (`bench.run.openai.timed_sockets`), so that the
time a busy process spends on a call is not counted as flight. An answer whose status is not 200 to 299 is raised as
`ErrorStatus`. OpenAI's client never gets that answer: it would read all of it.

With many concurrent calls, aiohttp takes much less processor time for each call than httpx2's own transport.
"""

from __future__ import annotations

import asyncio
import functools
import io
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import aiohttp
import httpx2
from multidict import CIMultiDict

from bench.run.openai.bodies import ACCEPT_ENCODING, read_body, text_in
from bench.run.openai.proxies import Proxy, proxy_to
from bench.run.openai.settings import OpenAISettings
from bench.run.openai.timed_sockets import TimedSocket, timed_socket
from bench.wire.blotting import blot

MAX_HEADER_BYTES = 2**16
MIN_STREAMED_BYTES = 2**20
"""A request with at least this many bytes is sent in pieces."""
REPLACED_HEADERS = frozenset({"host", "content-length", "accept-encoding", "connection"})
"""Headers of the client's request that aiohttp writes itself."""
MAX_LOOP_TURNS = 100
"""The most turns of the event loop to wait until it has closed the sockets that were shut down. Two or three turns sufficed in
all trials."""
ANSWER = "bench.answer"
"""The extension of an httpx2 response that holds its `RawAnswer`."""


@dataclass(frozen=True)
class RawAnswer:
    """An answer with a status of 200 to 299, and the start and end of its flight (`TimedSocket.flight`)."""

    body: str
    flight: tuple[int, int] | None


class ErrorStatus(Exception):
    """An answer with another status than 200 to 299. `body` is the beginning of its text."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str, flight: tuple[int, int] | None):
        super().__init__(f"HTTP {status}")
        self.status, self.headers, self.body, self.flight = status, headers, body, flight


class Transport(httpx2.AsyncBaseTransport):
    """An HTTP transport that belongs to the event loop on which it was made, until it is closed. Raises EndpointError for an
    unusable proxy."""

    def __init__(self, settings: OpenAISettings):
        """Open a session of aiohttp with the proxy, the connection limits and the timeout of the settings."""
        self.proxy = proxy_to(settings.base_url)
        self._proxy_arguments = _proxy_arguments(settings.base_url, self.proxy)
        self._secrets = (*settings.address.secrets, *([self.proxy.password] if self.proxy else []))
        self._sockets: WeakValueDictionary[int, TimedSocket] = WeakValueDictionary()
        connector = aiohttp.TCPConnector(
            limit=0,  # the caller's slots bound the calls in flight
            ssl=httpx2.create_ssl_context() if "https" in _schemes(settings.base_url, self.proxy) else True,
            socket_factory=self._socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"Accept-Encoding": ACCEPT_ENCODING},
            response_class=type("Response", (_Response,), {"sockets": self._sockets}),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=settings.connect_timeout_seconds),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. The response has its `RawAnswer` as an extension, and no body.

        Raises:
            ErrorStatus: The status is not 200 to 299.
            TooLarge, NotUnpacked, BrokeOff: The body cannot be read (`bench.run.openai.bodies.read_body`).
            aiohttp.ClientError: No answer began.
        """
        content, proxy_arguments = request.content, dict(self._proxy_arguments)
        # aiohttp also sends a session's headers to the proxy in clear text, even if the endpoint is reached by TLS
        headers = {name: value for name, value in request.headers.items() if name not in REPLACED_HEADERS}
        headers |= proxy_arguments.pop("headers", {})
        body = content if len(content) < MIN_STREAMED_BYTES else io.BytesIO(content)
        arguments: dict[str, Any] = {"data": body, "headers": headers, "allow_redirects": False, **proxy_arguments}
        async with self._session.post(str(request.url), **arguments) as answer:
            is_error = not 200 <= answer.status < 300
            encoding = answer.headers.get("Content-Encoding", "")
            answer_body = await read_body(answer.content.iter_any(), encoding, is_error=is_error)
            assert isinstance(answer, _Response)
            text = self._without_secrets(text_in(answer_body))
            if is_error:
                headers_of_answer = CIMultiDict((name, self._without_secrets(value)) for name, value in answer.headers.items())
                raise ErrorStatus(answer.status, headers_of_answer, text, answer.flight)
            return httpx2.Response(answer.status, extensions={ANSWER: RawAnswer(text, answer.flight)})

    async def aclose(self) -> None:
        """Close every socket. asyncio alone would keep an encrypted connection open, even after its loop has ended, until the
        other side closes it."""
        await self._session.close()
        for open_socket in self._open_sockets():
            with suppress(OSError):  # it is not connected
                open_socket.shutdown(socket.SHUT_RDWR)
        for _ in range(MAX_LOOP_TURNS):
            if not self._open_sockets():
                break
            await asyncio.sleep(0)

    def _without_secrets(self, text: str) -> str:
        """Return a text of the endpoint without the secrets of its address and of the proxy."""
        return functools.reduce(blot, self._secrets, text)

    def _open_sockets(self) -> list[TimedSocket]:
        return [timed for timed in self._sockets.values() if timed.fileno() >= 0]

    def _socket(self, address: aiohttp.AddrInfoType) -> TimedSocket:
        """Return a new socket for an address, and remember it by its number."""
        timed = timed_socket(address)
        self._sockets[timed.fileno()] = timed
        return timed


class _Response(aiohttp.ClientResponse):
    """A response with the times of its flight. When it is read, its connection can already serve another request."""

    sockets: Mapping[int, TimedSocket]
    flight: tuple[int, int] | None = None

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Read the head of the response, and note the flight when its body has been read."""
        timed = self.sockets.get(connection.transport.get_extra_info("socket").fileno())
        await super().start(connection)
        self.content.on_eof(lambda: self._note_flight(timed))
        return self

    def _note_flight(self, timed: TimedSocket | None) -> None:
        self.flight = timed.flight() if timed else None


def _proxy_arguments(url: str, proxy: Proxy | None) -> dict[str, Any]:
    """Return aiohttp's arguments for the proxy of each request."""
    if proxy is None:
        return {}
    authorization = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
    headers_argument = "proxy_headers" if urlsplit(url).scheme == "https" else "headers"
    return {"proxy": proxy.address, headers_argument: authorization}


def _schemes(url: str, proxy: Proxy | None) -> set[str]:
    """Return the URL schemes of the endpoint and of the proxy."""
    return {urlsplit(address).scheme for address in (url, proxy.address if proxy else "")}
