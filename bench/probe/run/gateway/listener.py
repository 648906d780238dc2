"""The gateway's port on loopback. Each HTTP door has an address at this port, whose path begins with a token that only the
agent knows."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import quote

from bench.common.errors import ConfigError
from bench.probe.run.box.authority import Authority
from bench.probe.run.box.closed_network import ClosedNetwork
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.gateway.http import HttpDoor
from bench.probe.run.gateway.http_exchange import AgentWire
from bench.probe.run.gateway.http_wire import BadMessage, Head, make_head
from bench.probe.run.gateway.mcp_http import McpDoor
from bench.probe.run.gateway.model import ModelDoor
from bench.probe.run.gateway.subject import McpServer, ModelSource, Service
from bench.wire.access_guard import MAX_CONNECTIONS, REQUEST_TIMEOUT_S, access_problem

LOOPBACK = "127.0.0.1"
MODEL = "model"
"""The name of the model's door."""


class AgentListener:
    """Listens for connections of the agent while its context lasts, and closes all of them at its end.

    context  what all doors share
    token    the first part of each door's path; "" for a random token for each door
    """

    def __init__(self, context: DoorContext, token: str = ""):
        self._context, self._token = context, token
        self._doors = dict[str, tuple[str, HttpDoor]]()
        self._doors_of_started_servers = list[HttpDoor]()
        """The doors before servers that the probe starts."""
        self._addresses = dict[str, HttpDoor]()
        self._connections = set[asyncio.Task[None]]()
        self._server: asyncio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self.serve, LOOPBACK, 0)
        self.address = f"http://{LOOPBACK}:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server
        self._server.close()
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def add_service(self, service: Service) -> str:
        """Add the door of a service, and return the address at which the agent reaches it. Raises ConfigError."""
        opens = DOOR_KINDS[service.door].opens
        assert opens
        door = opens(service.name, service.url, self._context)
        door.kind = service.door
        return self.add(door, bool(service.command))

    def add_mcp(self, server: McpServer) -> str:
        """Add the door of an MCP server with a URL, and return the address at which the agent reaches it. Raises
        ConfigError."""
        return self.add(McpDoor(server.name, server.url, self._context))

    def add_model(self, source: ModelSource) -> str:
        """Add the door of the model, and return the address at which the agent reaches it, with the source's suffix. Raises
        ConfigError."""
        return self.add(ModelDoor(MODEL, source, self._context), bool(source.script))

    async def serve_in_box(
        self, agents: ClosedNetwork, servers: ClosedNetwork, authority: Authority | None
    ) -> Mapping[str, str]:
        """Serve an agent in a box at each server's own host and port, with TLS where the server has TLS and there is an
        authority.

        Args:
            agents: The network of the agent.
            servers: The network of the servers that the probe starts.
            authority: Ends TLS; None if nothing can.

        Returns:
            The addresses that the `add` methods returned -> the servers' own addresses.

        Raises:
            ConfigError: A host and port cannot be served.
        """
        await agents.serve_at(LOOPBACK, self.port, self.serve, "http")
        for door in self._doors_of_started_servers:
            door.origin.open_connection = servers.connect
        places, own_addresses = dict[tuple[str, int], tuple[str, bool, list[HttpDoor]]](), dict[str, str]()
        for address, door in self._addresses.items():
            for host, port, has_tls in door.places:
                same_place_doors = places.setdefault((agents.addresses_of(host)[0], port), (host, has_tls, []))[2]
                # of doors with the same path at one place, only the first is served there
                if (authority or not has_tls) and all(other.origin.path != door.origin.path for other in same_place_doors):
                    same_place_doors.append(door)
                    own_addresses[address] = door.use_origin_address()
        for (_, port), (host, has_tls, doors) in places.items():
            if doors:
                tls = authority.context(host) if authority and has_tls else None
                await agents.serve_at(host, port, partial(self.serve, doors=doors), "https" if tls else "http", tls=tls)
        return own_addresses

    @property
    def has_tls(self) -> bool:
        """Whether a server is called with TLS."""
        return any(has_tls for door in self._addresses.values() for _, _, has_tls in door.places)

    @property
    def port(self) -> int:
        """The gateway's port on loopback."""
        assert self._server
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def add(self, door: HttpDoor, is_started: bool = False) -> str:
        """Add a door, and return its address at the gateway's port. `is_started`: whether the probe starts the server behind
        the door. Raises ConfigError if another door has this name."""
        name = quote(door.name, safe="")
        if not self.address or name in self._doors:
            raise ConfigError(f"{door.name}: two doors have this name; give each server, service and model its own")
        token = self._token or secrets.token_urlsafe(24)
        self._doors[name] = token, door
        self._doors_of_started_servers += [door] * is_started
        address = door.set_address(self.address, f"/{token}/{name}")
        self._addresses[address] = door
        return address

    def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doors: Sequence[HttpDoor] | None = None
    ) -> None:
        """Begin to serve a connection, which is closed with this listener. `doors` are the doors that replace a server at its
        own address; None at the gateway's port."""
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(AgentWire(reader, writer), doors))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, client: AgentWire, doors: Sequence[HttpDoor] | None) -> None:
        """Answer the requests on a connection until it closes."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await client.head()
            while head and await (self._answer(client, head) if doors is None else _door_of(head, doors).serve(client, head)):
                head = await client.head()
        except BadMessage as bad:
            self._context.gate().notice("", f"a request is no HTTP/1.1: {bad}")
            await _refuse(client, 400, str(bad))
        except (OSError, TimeoutError):
            pass
        finally:
            client.close()

    async def _answer(self, client: AgentWire, head: Head) -> bool:
        """Answer a request at the gateway's own port by the door whose token and name the path has. Return whether the
        connection remains open."""
        if problem := access_problem(head.mapping()):
            return await self._reject(client, problem.status, problem.message)
        token, _, rest = head.target.decode("latin-1")[1:].partition("/")
        expected, door = self._doors.get(rest.partition("?")[0].partition("/")[0], ("", None))
        if door is None or not hmac.compare_digest(token.encode("latin-1"), expected.encode()):
            return await self._reject(client, 401, "ask at the whole address that was given: its path holds a key")
        if head.method == "CONNECT":
            return await self._reject(client, 404, "no server has this address; ask at the one that was given")
        return await door.serve(client, head)

    async def _reject(self, client: AgentWire, status: int, why: str) -> bool:
        """Reject a request, and return False, since the connection does not remain open."""
        self._context.gate().notice("", f"a request was refused: {why}")
        await _refuse(client, status, why)
        return False


def _door_of(head: Head, doors: Sequence[HttpDoor]) -> HttpDoor:
    """Return the door for a request to a server's own address: of the doors there, the door with the longest path that begins
    the request's path."""
    path = head.target.partition(b"?")[0].decode("latin-1")

    def matching_chars(door: HttpDoor) -> int:
        """Return the number of characters of a door's path if it begins the request's path; otherwise -1."""
        prefix = door.origin.path.rstrip("/")
        return len(prefix) if path == prefix or path.startswith(f"{prefix}/") else -1

    return max(doors, key=matching_chars)


async def _refuse(client: AgentWire, status: int, why: str) -> None:
    """Answer a request with an HTTP error and its reason."""
    body = f"{why}\n".encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), "Connection": "close"}
    with suppress(ConnectionError):
        await client.send(make_head(f"HTTP/1.1 {status} Refused", fields).raw + body)
