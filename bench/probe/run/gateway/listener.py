"""The gateway's port on loopback. Each proxy has an address at this port, with a token of its own in its path that only the
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
from bench.probe.run.gateway.gate import Desk
from bench.probe.run.gateway.http import AgentWire, HttpDoor
from bench.probe.run.gateway.http_wire import BadMessage, Head, made_head
from bench.probe.run.gateway.mcp_http import McpDoor
from bench.probe.run.gateway.model import ModelDoor
from bench.probe.run.gateway.outbox_doors import WebhookDoor
from bench.probe.run.gateway.subject import McpServer, ModelSource, Service
from bench.wire.access_guard import MOST_CONNECTIONS, SECONDS, stranger

LOOPBACK = "127.0.0.1"
MODEL = "model"
"""The name of the model's door."""


class AgentListener:
    """Listens while its context lasts, and ends every connection with it.

    desk     the objects that all doors share
    token    the first part of every door's path; by default each door has its own
    """

    def __init__(self, desk: Desk, token: str = ""):
        self._desk, self._token = desk, token
        self._doors = dict[str, tuple[str, HttpDoor]]()
        self._started = list[HttpDoor]()
        """Before servers that the probe starts."""
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
        """Return the address at which the agent finds this service. Raises ConfigError."""
        opens = DOOR_KINDS[service.door].opens
        assert opens
        door = opens(service.name, service.url, self._desk)
        door.kind = service.door
        return self._add(door, bool(service.command))

    def add_mcp(self, server: McpServer) -> str:
        """Return the address at which the agent finds this MCP server. Raises ConfigError."""
        return self._add(McpDoor(server.name, server.url, self._desk))

    def add_model(self, source: ModelSource) -> str:
        """Return the address at which the agent finds its model, with the source's suffix. Raises ConfigError."""
        return self._add(ModelDoor(MODEL, source, self._desk), bool(source.script))

    def add_webhook(self, door: WebhookDoor) -> None:
        """Add the door of a webhook, which the agent finds in a box at its own address. Raises ConfigError."""
        self._add(door)

    async def stand_in(self, agents: ClosedNetwork, servers: ClosedNetwork, authority: Authority | None) -> Mapping[str, str]:
        """Have the agent, in a box, find each server at its own host and port: those with TLS if there is an authority.
        Servers that the probe starts are called in their network. Return the addresses that the `add` methods gave -> the
        servers' own. Raises ConfigError."""
        await agents.lead(LOOPBACK, self.port, self.serve, "http")
        for door in self._started:
            door.origin.reach = servers.connect
        places, instead = dict[tuple[str, int], tuple[str, bool, list[HttpDoor]]](), dict[str, str]()
        for address, door in self._addresses.items():
            for host, port, has_tls in door.places:
                beside = places.setdefault((agents.addresses_of(host)[0], port), (host, has_tls, []))[2]
                if (authority or not has_tls) and all(other.origin.path != door.origin.path for other in beside):
                    beside.append(door)
                    instead[address] = door.stands_in()
        for (_, port), (host, has_tls, doors) in places.items():
            if doors:
                tls = authority.context(host) if authority and has_tls else None
                await agents.lead(host, port, partial(self.serve, doors=doors), "https" if tls else "http", tls=tls)
        return instead

    @property
    def has_tls(self) -> bool:
        """Whether a server is called with TLS."""
        return any(has_tls for door in self._addresses.values() for _, _, has_tls in door.places)

    @property
    def port(self) -> int:
        assert self._server
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _add(self, door: HttpDoor, is_started: bool = False) -> str:
        name = quote(door.name, safe="")
        if not self.address or name in self._doors:
            raise ConfigError(f"{door.name}: two doors have this name; give each server, service and model its own")
        token = self._token or secrets.token_urlsafe(24)
        self._doors[name] = token, door
        self._started += [door] * is_started
        address = door.listens(self.address, f"/{token}/{name}")
        self._addresses[address] = door
        return address

    def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doors: Sequence[HttpDoor] | None = None
    ) -> None:
        """Serve a connection, and end it with this listener. `doors`: those that stand in for a server there."""
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(AgentWire(reader, writer), doors))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, client: AgentWire, doors: Sequence[HttpDoor] | None) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                head = await client.head()
            while head and await (self._answer(client, head) if doors is None else _door_of(head, doors).serve(client, head)):
                head = await client.head()
        except BadMessage as bad:
            self._desk.gate().notice("", f"a request is no HTTP/1.1: {bad}")
            await _refuse(client, 400, str(bad))
        except (OSError, TimeoutError):
            pass
        finally:
            client.close()

    async def _answer(self, client: AgentWire, head: Head) -> bool:
        if refused := stranger(head.mapping()):
            return await self._turn_away(client, refused.status, refused.message)
        token, _, rest = head.target.decode("latin-1")[1:].partition("/")
        expected, door = self._doors.get(rest.partition("?")[0].partition("/")[0], ("", None))
        if door is None or not hmac.compare_digest(token.encode("latin-1"), expected.encode()):
            return await self._turn_away(client, 401, "ask at the whole address that was given: its path holds a key")
        if head.method == "CONNECT":
            return await self._turn_away(client, 404, "no server has this address; ask at the one that was given")
        return await door.serve(client, head)

    async def _turn_away(self, client: AgentWire, status: int, why: str) -> bool:
        self._desk.gate().notice("", f"a request was refused: {why}")
        await _refuse(client, status, why)
        return False


def _door_of(head: Head, doors: Sequence[HttpDoor]) -> HttpDoor:
    """Return the door for a request to a server's own address: where several are at one place, the one whose path it has."""
    path = head.target.partition(b"?")[0].decode("latin-1")

    def fits(door: HttpDoor) -> int:
        begins = door.origin.path.rstrip("/")
        return len(begins) if path == begins or path.startswith(f"{begins}/") else -1

    return max(doors, key=fits)


async def _refuse(client: AgentWire, status: int, why: str) -> None:
    body = f"{why}\n".encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), "Connection": "close"}
    with suppress(ConnectionError):
        await client.send(made_head(f"HTTP/1.1 {status} Refused", fields).raw + body)
