"""The door of a database: a proxy that speaks PostgreSQL's wire protocol before the copy. A call is a transaction that writes,
or a single statement.

Messages are forwarded unchanged in both directions, except that the name of the owner's database becomes the copy's. The
call of a transaction is its COMMIT: there it is forwarded, held, refused or killed, after its statements were forwarded.
Each read in a transaction is a call of its own. Messages are forwarded up to the next Sync, in the order in which the server
would execute them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext

from bench.common.errors import ConfigError
from bench.probe.run.box.authority import POSTGRESQL, Authority
from bench.probe.run.gateway.database_session import DatabaseSession
from bench.probe.run.gateway.database_way import connect, offers_tls
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.gateway.held_answers import HeldAnswers
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.store import DatabaseServer
from bench.wire.access_guard import MAX_CONNECTIONS
from bench.wire.postgres import MalformedMessage, StartPacket, encode_start

LOOPBACK = "127.0.0.1"
MAX_SOCKET_PATH_BYTES = 107
"""The most bytes in the path of a Unix socket."""
NO_CALL_TEXT = (
    "the agent made no call to this database through the gateway; let it take the address from its command or from the store's "
    "`variable`"
)


class DatabaseDoor:
    """Connects sessions with a database server to the copies of its databases, and to no other database there.

    server     where the server listens
    stores     the copies there
    context    what all doors share
    hide       names whose values appear in no output
    authority  returns the authority that ends TLS; None if there is none
    counts     whether statements are calls: they are not while no agent runs, as in an owner's check
    path       the socket at which the door listens; None if the server has no socket
    held_answers  the calls whose response is held back
    """

    _gate_error: Exception | None

    def __init__(
        self,
        server: DatabaseServer,
        stores: Sequence[PostgresStore],
        context: DoorContext,
        hide: frozenset[str] = frozenset(),
        authority: Callable[[], Authority | None] = lambda: None,
    ):
        self.server, self.stores, self.context, self.hide, self._authority = server, stores, context, hide, authority
        self._offers_tls: bool | None = None
        self.counts, self._gate_error = False, None
        self._sessions = dict[asyncio.Task[None], DatabaseSession]()
        self.held_answers = HeldAnswers(context.gate)
        self.path: Path | None = None
        self._address = "", 0

    @asynccontextmanager
    async def open(self, path: Path, listening: socket.socket | None) -> AsyncIterator[None]:
        """Listen as the server does: at a socket with this path, or by TCP on loopback if statements are calls. Raises an
        exception that a gate has raised."""
        server = None
        if listening:
            server = await asyncio.start_unix_server(self.serve, sock=listening)
            self.path, self._address = path, (str(path.parent), int(path.suffix[1:]))
        elif any(store.is_door for store in self.stores):
            server = await asyncio.start_server(self.serve, LOOPBACK, 0)
            self._address = server.sockets[0].getsockname()[:2]
        try:
            yield
        finally:
            if server:
                server.close()
            await self.end()

    def with_door_addresses(self, text: str) -> str:
        """Return a text in which this door's address replaces the address of each copy whose transactions are calls. Raises
        ConfigError if the path of the door's socket is too long for a client."""
        for copy_address, door_address in self._addresses():
            if copy_address in text and len(os.fsencode(self.path or "")) > MAX_SOCKET_PATH_BYTES:
                raise ConfigError(f"no client of PostgreSQL takes a path as long as {self.path}; set TMPDIR to a shorter one")
            text = text.replace(copy_address, door_address)
        return text

    def with_copy_addresses(self, text: str) -> str:
        """Return a text in which the copies' own addresses replace the addresses of this door."""
        for copy_address, door_address in self._addresses():
            text = text.replace(door_address, copy_address)
        return text

    def _addresses(self) -> Iterator[tuple[str, str]]:
        """Yield (address of a copy, address at which this door listens for it) for each copy whose transactions are calls."""
        for store in self.stores:
            if store.is_door and store.replaces:  # otherwise the door is at the address of the owner's server
                yield store.address, store.dsn_at(*self._address)

    async def tls(self) -> SSLContext | None:
        """Return the TLS context of this door if the server offers TLS; None if it does not, or no authority can end TLS."""
        authority = None if self.server.socket else self._authority()
        if authority and self._offers_tls is None:
            try:
                self._offers_tls = await offers_tls(self.server)
            except OSError as error:
                self.notice(f"nobody knows whether the server itself offers TLS: {type(error).__name__}")
                return None
        host = LOOPBACK if any(store.replaces for store in self.stores) else self.server.host
        return authority.context(host, POSTGRESQL) if authority and self._offers_tls else None

    def notice(self, message: str, store: PostgresStore | None = None) -> None:
        """Record something that belongs to no call."""
        self.context.gate().notice((store or self.stores[0]).name, message)

    async def end(self, *, busy: bool = True) -> None:
        """Close the connections, since the agent has ended; if `busy`, also the connections whose call is held. Raises an
        exception that a gate has raised."""
        self.counts = False
        sessions_to_end = {
            task: session
            for task, session in self._sessions.items()
            if task is not asyncio.current_task() and (busy or not session.is_held)
        }
        for session in sessions_to_end.values():
            session.leave(server=busy)
        if sessions_to_end:
            _, still_open = await asyncio.wait(sessions_to_end, timeout=2 * self.context.gate().patience)
            for task in still_open:
                sessions_to_end[task].leave(server=True)
            if still_open:
                await asyncio.wait(still_open)
        if gate_error := self._gate_error:
            self._gate_error = None
            raise gate_error

    async def serve_other(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of another program than the agent, such as a service: it makes no calls."""
        await self.serve(reader, writer, counts=False)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool = True) -> None:
        """Serve a connection until it closes."""
        task = asyncio.current_task()
        assert task
        if len(self._sessions) >= MAX_CONNECTIONS:
            writer.close()
            return
        session = self._sessions[task] = DatabaseSession(self, reader, writer, counts=counts and self.counts)
        try:
            await session.run()
        except (OSError, EOFError):
            pass
        except MalformedMessage as bad:
            self.notice(f"a connection of the agent was ended: {bad}")
        except Exception as error:  # what a gate raised
            self._gate_error = self._gate_error or error
        finally:
            del self._sessions[task]

    async def cancel(self, packet: StartPacket) -> None:
        """Forward a request that cancels a statement, if its session came through this door."""
        session = next((candidate for candidate in self._sessions.values() if packet.key and candidate.key == packet.key), None)
        if session is None:
            return
        for call in session.calls:
            self.held_answers.end(call, "cancelled")
        _, writer = await connect(self.server)
        writer.write(encode_start(packet))
        await writer.drain()
        writer.close()


KIND = DoorKind("database", can=frozenset(("hold",)))
