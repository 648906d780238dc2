"""The door of a database: PostgreSQL's wire before the copy. A call is a transaction that writes, or a statement on its own.

What an agent sends reaches the copy as it was, and so does what the copy answers, but for the name of the owner's database,
which becomes the copy's. A transaction's call is its COMMIT: it is passed on, held, refused or killed there, after its
statements have passed. What a transaction reads are calls of their own. Messages are passed on to the next Sync, in the order
in which the server would do them.
"""

from __future__ import annotations

import asyncio
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
from bench.probe.run.gateway.gate import Desk, HeldAnswers
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.store import DatabaseServer
from bench.wire.access_guard import MOST_CONNECTIONS
from bench.wire.postgres import MalformedMessage, StartPacket, made_start

LOOPBACK = "127.0.0.1"
LONGEST_PATH = 107
"""Bytes of the path of a socket."""
UNENTERED = (
    "the agent made no call to this database through the gateway; let it take the address from its command or from the store's "
    "`variable`"
)


class DatabaseDoor:
    """Leads sessions with a server to the copies of its databases, and to nothing else on it.

    server  where the server listens
    stores  the copies there
    desk    the objects that all doors share
    hide    names whose values are in no output
    authority  returns what ends TLS; None if nothing can
    counts  whether the agent runs: what comes else, as from an owner's check, is no call
    path    the socket at which the door listens; None if the server has none
    silent  the calls that get no answer now
    """

    _failed: Exception | None

    def __init__(
        self,
        server: DatabaseServer,
        stores: Sequence[PostgresStore],
        desk: Desk,
        hide: frozenset[str] = frozenset(),
        authority: Callable[[], Authority | None] = lambda: None,
    ):
        self.server, self.stores, self.desk, self.hide, self._authority = server, stores, desk, hide, authority
        self._offers_tls: bool | None = None
        self.counts, self._failed = False, None
        self._sessions = dict[asyncio.Task[None], DatabaseSession]()
        self.silent = HeldAnswers(desk.gate)
        self.path: Path | None = None
        self._place = "", 0

    @asynccontextmanager
    async def open(self, path: Path, listening: socket.socket | None) -> AsyncIterator[None]:
        """Listen as the server does: at a socket with this path, or by TCP on loopback if calls are to pass. Raises what a gate
        has raised."""
        server = None
        if listening:
            server = await asyncio.start_unix_server(self.serve, sock=listening)
            self.path, self._place = path, (str(path.parent), int(path.suffix[1:]))
        elif any(store.is_door for store in self.stores):
            server = await asyncio.start_server(self.serve, LOOPBACK, 0)
            self._place = server.sockets[0].getsockname()[:2]
        try:
            yield
        finally:
            if server:
                server.close()
            await self.end()

    def toward(self, text: str) -> str:
        """Return a text in which the address of this door stands for that of a copy whose transactions are calls. Raises
        ConfigError if no client could reach it there."""
        for at_copy, at_door in self._addresses():
            if at_copy in text and len(str(self.path or "")) > LONGEST_PATH:
                raise ConfigError(f"no client of PostgreSQL takes a path as long as {self.path}; set TMPDIR to a shorter one")
            text = text.replace(at_copy, at_door)
        return text

    def around(self, text: str) -> str:
        """Return a text in which the copies' own addresses stand for those of this door."""
        for at_copy, at_door in self._addresses():
            text = text.replace(at_door, at_copy)
        return text

    def _addresses(self) -> Iterator[tuple[str, str]]:
        for store in self.stores:
            if store.is_door and store.replaces:  # else the door stands where the owner's server does
                yield store.address, store.dsn_at(*self._place)

    async def tls(self) -> SSLContext | None:
        """Return what ends TLS here, if the server itself offers TLS; None if it offers none, or nothing ends TLS."""
        authority = None if self.server.socket else self._authority()
        if authority and self._offers_tls is None:
            try:
                self._offers_tls = await offers_tls(self.server)
            except OSError as error:
                self.notice(f"nobody knows whether the server itself offers TLS: {type(error).__name__}")
                return None
        host = LOOPBACK if any(store.replaces for store in self.stores) else self.server.host
        return authority.context(host, POSTGRESQL) if authority and self._offers_tls else None

    def notice(self, what: str, store: PostgresStore | None = None) -> None:
        self.desk.gate().notice((store or self.stores[0]).name, what)

    async def end(self, *, busy: bool = True) -> None:
        """End all connections, as they end with the agent; the `busy` ones too, whose call is held. Raises what a gate has
        raised."""
        self.counts = False
        ending = {
            task: session
            for task, session in self._sessions.items()
            if task is not asyncio.current_task() and (busy or not session.is_held)
        }
        for session in ending.values():
            session.leave(server=busy)
        if ending:
            _, late = await asyncio.wait(ending, timeout=2 * self.desk.gate().patience)
            for task in late:
                ending[task].leave(server=True)
            if late:
                await asyncio.wait(late)
        if failed := self._failed:
            self._failed = None
            raise failed

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of who is not the agent, such as a service."""
        await self.serve(reader, writer, counts=False)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool = True) -> None:
        """Serve a connection to its end."""
        task = asyncio.current_task()
        assert task
        if len(self._sessions) >= MOST_CONNECTIONS:
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
            self._failed = self._failed or error
        finally:
            del self._sessions[task]

    async def cancel(self, packet: StartPacket) -> None:
        """Pass on what cancels a statement of a session, if that session came through this door."""
        session = next((each for each in self._sessions.values() if packet.key and each.key == packet.key), None)
        if session is None:
            return
        for call in session.calls:
            self.silent.end(call, "cancelled")
        _, writer = await connect(self.server)
        writer.write(made_start(packet))
        await writer.drain()
        writer.close()


KIND = DoorKind("database", can=frozenset(("hold",)))
