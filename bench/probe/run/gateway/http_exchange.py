"""A request that an agent sends to an HTTP service, the response while it arrives, and the connections of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from ssl import create_default_context
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import JsonValue

from bench.common.errors import ConfigError
from bench.probe.run.gateway.bodies import MAX_MEMORY_BYTES, Body, value_of
from bench.probe.run.gateway.http_wire import BadMessage, Head, Wire, framing_of

STREAM_TYPES = frozenset({"text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json"})
"""Media types of streams: the pieces of such a body are forwarded as they arrive."""
CONNECT_TIMEOUT_S = 30.0
CONTENT_FIELDS = frozenset(
    ("content-length", "content-encoding", "transfer-encoding", "trailer", "etag", "content-md5", "digest", "repr-digest")
)
"""Names of header fields that describe the content, and are removed when the content changes."""
Result = TypeVar("Result")


Connect = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""(host, port, ssl=...) -> a connection with a server."""


class ClientDisconnected(Exception):
    """The agent closed its connection before it had the response."""


class ServerUnavailable(Exception):
    """The server could not be reached, or its response was incomplete. The text gives the reason."""


class Origin:
    """The address of a server. Raises ConfigError if the URL is no http:// or https:// address.

    place    its host and port, as the field `Host` names them
    target   its path and query, with which each request target begins
    login    the user name and password before its host, with their `@`, or ""
    tls      how its certificate is verified; None without TLS
    """

    def __init__(self, url: str, name: str):
        try:
            parts = urlsplit(url)
            self.host, port = parts.hostname or "", parts.port
        except ValueError:
            self.host, port, parts = "", None, urlsplit("")
        if parts.scheme not in ("http", "https") or not self.host:
            raise ConfigError(
                f"{name}: its address is no http:// or https:// address; write one, such as http://127.0.0.1:8000"
            )
        self.login, _, self.place = f"@{parts.netloc}".rpartition("@")
        self.login = f"{self.login[1:]}@" if self.login[1:] else ""
        self.target = parts.path + (f"?{parts.query}" if parts.query else "")
        self.path = parts.path
        self.tls = create_default_context() if parts.scheme == "https" else None
        self.port = port or (443 if self.tls else 80)
        self.root, self.url = f"{parts.scheme}://{self.place}", url
        self.open_connection: Connect = asyncio.open_connection
        """Connects to the server, which can be in another network."""

    async def connect(self) -> Wire:
        """Return a connection with the server. Raises ServerUnavailable."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return Wire(*await self.open_connection(self.host, self.port, ssl=self.tls))
        except (OSError, TimeoutError) as error:
            raise ServerUnavailable(f"cannot be reached: {type(error).__name__}") from None


class AgentWire(Wire):
    """A connection from the agent, and the connections to servers that were opened for it, which are closed with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        super().__init__(reader, writer)
        self.upstream = dict[Origin, Wire]()
        self._disconnection: asyncio.Task[None] | None = None

    async def unless_disconnected(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of `work`. If the agent disconnects first, cancel `work` and raise ClientDisconnected.

        From the first of these calls until `unwatch`, nothing else may read from the connection. Do not call the gate inside
        `work`, since the gate's actions must not be cancelled.
        """
        self._disconnection = self._disconnection or asyncio.ensure_future(self.wait_until_closed())
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._disconnection}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise ClientDisconnected
        finally:
            await _cancel(task)

    def wire_of_tape(self, taped_answer: bytes) -> Wire:
        """Return a connection that delivers a response from a tape."""
        reader = asyncio.StreamReader()
        reader.feed_data(taped_answer)
        reader.feed_eof()
        return Wire(reader, self._writer)

    async def unwatch(self) -> None:
        """Stop watching whether the agent disconnects."""
        if self._disconnection:
            await _cancel(self._disconnection)
            self._disconnection = None

    def close(self) -> None:
        """Close the connection from the agent, and the connections to servers."""
        for wire in self.upstream.values():
            wire.close()
        super().close()


class DisconnectedWire(AgentWire):
    """Replaces the connection of an agent that has disconnected, while its held call is delivered."""

    def __init__(self) -> None:
        self.upstream = dict[Origin, Wire]()

    async def unless_disconnected(self, work: Coroutine[Any, Any, Result]) -> Result:
        return await work


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task, and wait until it has ended."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@dataclass(frozen=True, eq=False)
class ServiceRequest:
    """A request of the agent. `head` is the head that the server gets. `taped_answer` is the response from a tape; b"" if the
    server is to answer."""

    client: AgentWire
    head: Head
    body: Body
    taped_answer: bytes = b""

    @property
    def path(self) -> str:
        return self.head.target.partition(b"?")[0].decode("latin-1")

    @property
    def query(self) -> str:
        return self.head.target.partition(b"?")[2].decode("latin-1")

    @property
    def value(self) -> JsonValue:
        """The parsed content of the body."""
        return value_of(self.body, self.head.get("content-type"), self.head.get("content-encoding"))


class IncomingAnswer:
    """A server's response while it arrives."""

    def __init__(self, wire: Wire, head: Head, request: ServiceRequest):
        self._wire, self.head, self._client = wire, head, request.client
        self.framing = framing_of(head, request.head.method)

    @property
    def kind(self) -> str:
        """The media type of the response, in lower case."""
        return self.head.get("content-type").partition(";")[0].strip().lower()

    async def pieces(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the pieces of the body as they arrive: the bytes on the wire, and the content in them. Raises
        ServerUnavailable, ClientDisconnected."""
        while not self.framing.is_whole and (piece := await self._client.unless_disconnected(self._piece())):
            yield piece

    async def _piece(self) -> tuple[bytes, bytes] | None:
        """Return the next piece of the body; None at its end. Raises ServerUnavailable."""
        try:
            return await self._wire.piece(self.framing)
        except (BadMessage, OSError) as error:
            raise ServerUnavailable(f"its answer broke off: {error}") from None

    async def whole(self, body: Body) -> ServiceAnswer:
        """Return the complete response. Raises ServerUnavailable and ClientDisconnected; `body` then has what had arrived."""
        await self._client.unless_disconnected(self._read_into(body))
        return ServiceAnswer(self.head, body, self.head.keeps_open and not self.framing.ends_with_connection)

    async def _read_into(self, body: Body) -> None:
        """Add the rest of the response to a body."""
        while piece := await self._piece():
            body.add(*piece)


@dataclass(frozen=True, eq=False)
class ServiceAnswer:
    """A complete response. `keeps_open`: whether the connection remains open after it."""

    head: Head
    body: Body
    keeps_open: bool

    @property
    def value(self) -> JsonValue:
        """The parsed content of the body."""
        return value_of(self.body, self.head.get("content-type"), self.head.get("content-encoding"))

    @property
    def plain(self) -> bytes | None:
        """The content without its Content-Encoding; None if it cannot be decoded."""
        return self.body.plain(self.head.get("content-encoding"))

    @property
    def is_stream(self) -> bool:
        """Whether the media type is one of a stream."""
        return self.head.get("content-type").partition(";")[0].strip().lower() in STREAM_TYPES

    @property
    def raw(self) -> bytes:
        """The response with its head; b"" if it is too long."""
        return self.head.raw + b"".join(self.body.pieces()) if self.body.size <= MAX_MEMORY_BYTES else b""

    def with_content(self, content: bytes) -> bytes:
        """Return the bytes of this response with other content."""
        return self.head.without(*CONTENT_FIELDS).with_fields({"content-length": str(len(content))}).raw + content
