"""The access rules of an endpoint on loopback. Other requests reach it too: from pages in a browser on this machine, and
from programs of other users.

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

HERE = frozenset({"127.0.0.1", "::1", "localhost"})
LARGEST_BODY = 8 * 2**20
"""Bytes of the largest body."""
MOST_CONNECTIONS = 1024
"""Connections open at a time. Further ones are closed as they come."""
SECONDS = 30.0
"""A new connection must begin its first request within this time, and any request's body must arrive within it."""
KEPT = 75.0
"""Seconds after an answer within which the next request's head must arrive, or the connection is closed. nginx waits as long,
so that clients are used to it."""


class TurnedAway(Problem):
    """A request from a client without access."""


class AccessGuard:
    """The middleware before the handlers of an endpoint, which rejects requests without access.

    kept          the time in seconds within which a connection's next request must begin
    token         the API key that a client must send; "" if the endpoint requires none
    turned_away   the number of rejected requests; `why` is the reason of the last rejection
    """

    def __init__(self, token: str = "", seconds: float = SECONDS, most: int = MOST_CONNECTIONS, kept: float = KEPT):
        self.kept = kept
        self._token, self._seconds, self._most = token, seconds, most
        self._silent = set[asyncio.Protocol]()
        self._coming = 0
        self.turned_away, self.why = 0, ""

    @web.middleware
    async def let_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Forward an allowed request to its handler (a middleware). Raises TurnedAway for a client without access, or
        Problem for a malformed request."""
        if problem := stranger(request.headers, self._token):
            self.turned_away += 1
            self.why = f"{problem.status}: {problem.message}"
            raise problem
        self._silent.discard(request.protocol)
        await self._take_body(request)
        return await handler(request)

    def connection(self, server: web.Server) -> asyncio.Protocol:
        """Return the protocol of a new connection. Beyond the limit on connections, the protocol closes the connection."""
        if len(server.connections) + self._coming >= self._most:
            return _Closed()
        protocol, loop = server(), asyncio.get_running_loop()
        self._silent.add(protocol)
        self._coming += 1
        loop.call_soon(self._come)  # just before the server is told of the connection and counts it
        loop.call_later(self._seconds, self._close_if_silent, protocol)
        return protocol

    def _come(self) -> None:
        """Count a connection no longer as new, since the server counts it from now on."""
        self._coming -= 1

    def _close_if_silent(self, protocol: web.RequestHandler) -> None:
        """Close a connection that has sent no request in time."""
        if protocol in self._silent:
            self._silent.remove(protocol)
            protocol.force_close()

    async def _take_body(self, request: web.Request) -> None:
        """Read the body of a request, so that no handler waits for it. aiohttp stores the body with the request."""
        try:
            async with asyncio.timeout(self._seconds):
                body = await request.read()
        except TimeoutError:
            raise TurnedAway(408, f"the body was not there in {self._seconds:g} s; send it whole") from None
        if "Content-Encoding" in request.headers:
            raise Problem(415, "Content-Encoding: a packed body is not taken; send it as it is")
        if body and request.content_type != "application/json":
            raise Problem(415, f"Content-Type: {request.content_type[:80]} is not taken; send application/json")


class _Closed(asyncio.Protocol):
    """A protocol that closes a connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def stranger(headers: Mapping[str, str], token: str = "") -> TurnedAway | None:
    """Return why a request with these headers has no access; None if it has access. The names of `headers` are in any case."""
    if not _is_here(headers.get("Host", "")):
        return TurnedAway(403, f"Host: ask at {' or '.join(sorted(HERE - {'::1'}))}; any other name is refused")
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "none") != "none":
        return TurnedAway(403, "Origin: a browser's page may not ask here; ask from a program of your own")
    if token and not any(hmac.compare_digest(each, token.encode()) for each in _tokens_of(headers)):
        problem = "Incorrect API key provided: send the one that came with this address, as 'Authorization: Bearer KEY'"
        return TurnedAway(401, problem, code="invalid_api_key")
    return None


def _is_here(host: str) -> bool:
    """Return whether a host name means loopback."""
    try:
        return urlsplit(f"//{host}").hostname in HERE
    except ValueError:
        return False


def _tokens_of(headers: Mapping[str, str]) -> list[bytes]:
    """Return the API keys in the headers."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    keys = (headers.get(name, "") for name in ("api-key", "x-api-key"))
    tokens = (token if scheme.lower() == "bearer" else "", *keys)
    return [token.strip().encode(errors="surrogateescape") for token in tokens]
