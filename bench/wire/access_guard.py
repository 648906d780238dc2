"""The access rules of an endpoint on loopback. They refuse requests from pages in a browser on this machine, and, if the
endpoint has a token, from programs of other users.

    Host              must name loopback: a page that made its own name point here (DNS rebinding) sends that name
    Origin, Sec-Fetch-Site   are sent by browsers and by no agent: refused
    Authorization     `Bearer TOKEN`, if the endpoint has a token; clients call it the API key. Azure's send it as `api-key`,
                  Anthropic's as `x-api-key`
    Content-Type      must be JSON: a page cannot send that elsewhere without asking first
    Content-Encoding  must be absent: a few packed bytes could be gigabytes

A refused request leaves no event in a trial and begins none, and its connection is closed.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from bench.wire.problem import Problem

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
MAX_BODY_BYTES = 8 * 2**20
MAX_CONNECTIONS = 1024
"""Connections open at a time. A further connection is closed at once."""
REQUEST_TIMEOUT_S = 30.0
"""A new connection must begin its first request within this time, and any request's body must arrive within it."""
KEEP_ALIVE_S = 75.0
"""After a response, the next request's head must arrive within this time, or the connection is closed. nginx waits as long,
so that clients are used to it."""


class AccessRefused(Problem):
    """The refusal of a request from a client without access."""


class AccessGuard:
    """The middleware before the handlers of an endpoint, which rejects requests without access.

    keep_alive   the time in seconds within which a connection's next request must begin
    token        the API key that a client must send; "" if the endpoint requires none
    refusals     the number of refused requests; `reason` is the reason of the last refusal
    """

    def __init__(
        self,
        token: str = "",
        timeout: float = REQUEST_TIMEOUT_S,
        limit: int = MAX_CONNECTIONS,
        keep_alive: float = KEEP_ALIVE_S,
    ):
        self.keep_alive = keep_alive
        self._token, self._timeout, self._limit = token, timeout, limit
        self._without_request = set[asyncio.Protocol]()
        self._uncounted = 0
        self.refusals, self.reason = 0, ""

    @web.middleware
    async def check_access(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Forward an allowed request to its handler, as an aiohttp middleware. Raises AccessRefused for a client without
        access, or Problem for a malformed request."""
        if problem := access_problem(request.headers, self._token):
            self.refusals += 1
            self.reason = f"{problem.status}: {problem.message}"
            raise problem
        self._without_request.discard(request.protocol)
        await self._read_body(request)
        return await handler(request)

    def connection(self, server: web.Server) -> asyncio.Protocol:
        """Return the protocol for a new connection. It closes the connection if too many are open, and otherwise serves it."""
        if len(server.connections) + self._uncounted >= self._limit:
            return _RejectedConnection()
        protocol, loop = server(), asyncio.get_running_loop()
        self._without_request.add(protocol)
        self._uncounted += 1
        loop.call_soon(self._note_counted)  # runs just before `server.connections` counts the connection
        loop.call_later(self._timeout, self._close_if_silent, protocol)
        return protocol

    def _note_counted(self) -> None:
        """Stop counting a new connection here: from now on `server.connections` counts it."""
        self._uncounted -= 1

    def _close_if_silent(self, protocol: web.RequestHandler) -> None:
        """Close a connection whose first request has not begun in time."""
        if protocol in self._without_request:
            self._without_request.remove(protocol)
            protocol.force_close()

    async def _read_body(self, request: web.Request) -> None:
        """Read the whole body of a request, which aiohttp stores with the request: no handler then waits for a slow client.
        Raises Problem if the body is late, compressed or no JSON."""
        try:
            async with asyncio.timeout(self._timeout):
                body = await request.read()
        except TimeoutError:
            raise AccessRefused(408, f"the body was not there in {self._timeout:g} s; send it whole") from None
        if "Content-Encoding" in request.headers:
            raise Problem(415, "Content-Encoding: a packed body is not taken; send it as it is")
        if body and request.content_type != "application/json":
            raise Problem(415, f"Content-Type: {request.content_type[:80]} is not taken; send application/json")


class _RejectedConnection(asyncio.Protocol):
    """A protocol that closes a connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def access_problem(headers: Mapping[str, str], token: str = "") -> AccessRefused | None:
    """Return the refusal of a request with these headers; None if it has access. Lookups in `headers` must ignore case."""
    if not _is_loopback(headers.get("Host", "")):
        return AccessRefused(403, f"Host: ask at {' or '.join(sorted(LOOPBACK_HOSTS - {'::1'}))}; any other name is refused")
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "none") != "none":
        return AccessRefused(403, "Origin: a browser's page may not ask here; ask from a program of your own")
    if token and not any(hmac.compare_digest(key, token.encode()) for key in _tokens_of(headers)):
        problem = "Incorrect API key provided: send the one that came with this address, as 'Authorization: Bearer KEY'"
        return AccessRefused(401, problem, code="invalid_api_key")
    return None


def _is_loopback(host: str) -> bool:
    """Return whether the value of a `Host` header, with or without a port, names loopback."""
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_HOSTS
    except ValueError:
        return False


def _tokens_of(headers: Mapping[str, str]) -> list[bytes]:
    """Return the API keys in the three headers that can hold one; b"" for a header without a key."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    keys = (headers.get(name, "") for name in ("api-key", "x-api-key"))
    tokens = (token if scheme.lower() == "bearer" else "", *keys)
    return [token.strip().encode(errors="surrogateescape") for token in tokens]
