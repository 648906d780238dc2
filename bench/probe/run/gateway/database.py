"""The door of a database: PostgreSQL's wire before the copy. A call is a transaction that writes, or a statement on its own.

What an agent sends reaches the copy as it was, and so does what the copy answers, but for the name of the owner's database,
which becomes the copy's. A transaction's call is its COMMIT: it is passed on, held, refused or killed there, after its
statements have passed. What a transaction reads are calls of their own. Messages are passed on to the next Sync, in the order
in which the server would do them.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from ssl import CERT_NONE, create_default_context
from typing import Any

from bench.common.errors import ConfigError, one_line, whole_text
from bench.probe.points import AnswerFate
from bench.probe.run.addresses import is_here
from bench.probe.run.gateway.database_answer import (
    BEGINS,
    COPIES_IN,
    ENDS,
    LARGEST,
    READS,
    ExecutedStatement,
    Prepared,
    ServerAnswer,
    is_acting,
    is_end,
    is_write,
    read,
    recorded,
)
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, LiveCall, Undelivered, WaitEnd
from bench.probe.run.gateway.http import Desk
from bench.probe.run.gateway.mcp import asks_again
from bench.probe.run.witness.store import DatabaseServer, OnServer
from bench.wire.access_guard import MOST_CONNECTIONS
from bench.wire.postgres import (
    CANCEL,
    GSS,
    TLS,
    MalformedMessage,
    MessageReader,
    SqlStatement,
    StartPacket,
    WireMessage,
    bound_by,
    columns_of,
    made,
    made_error,
    made_query,
    made_start,
    reaches_out,
    start_of,
    start_size,
    statements_of,
    texts_of,
)

LOOPBACK = "127.0.0.1"
AHEAD = 2**20
"""Bytes that an agent sends before it is asked for them."""
SECONDS_TO_CONNECT = 30.0
LOOK_AGAIN = 0.05
"""Seconds between two looks at what waits for a lock."""
LONGEST_PATH = 107
"""Bytes of the path of a socket."""
UNENTERED = (
    "the agent made no call to this database through the gateway; let it take the address from its command or from the store's "
    "`variable`"
)
REFUSED = made_error("ERROR", "40001", "could not serialize access due to concurrent update")
ENDED = made_error("FATAL", "57P01", "terminating connection due to administrator command")
NO_TLS = (
    "the agent asked for TLS, which the gateway does not speak, and left; let it take sslmode=prefer, or the address that the "
    "probe hands over: the way to the gateway does not leave this machine"
)
NOT_FOR_AGENTS = (
    "an agent may not run COPY ... PROGRAM, or CREATE, ALTER or DROP a DATABASE, ROLE, USER, GROUP, SYSTEM or TABLESPACE: they "
    "act on the whole server, and not on the copy"
)
MOST_PREPARED = 1_000
"""The prepared statements of a session that are remembered."""
LONGEST_NAME = 120
_FLUSH, _SYNC = b"H", b"S"
_ANSWERS = {b"P": b"1", b"B": b"2"}
"""Messages of the agent's that are answered each by one of the server's."""
_OFFER = 10
"""The message in which a server offers ways to log in."""


class DatabaseDoor:
    """Leads sessions with a server to the copies of its databases, and to nothing else on it.

    server  where the server listens
    stores  the copies there
    desk    the objects that all doors share
    hide    names whose values are in no output
    counts  whether the agent runs: what comes else, as from an owner's check, is no call
    path    the socket at which the door listens; None if the server has none
    silent  the calls that get no answer now
    """

    _failed: Exception | None

    def __init__(self, server: DatabaseServer, stores: Sequence[OnServer], desk: Desk, hide: frozenset[str] = frozenset()):
        self.server, self.stores, self.desk, self.hide = server, stores, desk, hide
        self.counts, self._failed = False, None
        self._sessions = dict[asyncio.Task[None], DatabaseSession]()
        self.silent = dict[LiveCall, asyncio.Future[WaitEnd]]()
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

    def notice(self, what: str, store: OnServer | None = None) -> None:
        self.desk.gate().noticed((store or self.stores[0]).name, what)

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
        for call in [call for call in self.silent if call in session.calls]:
            self.end_wait(call, "cancelled")
        _, writer = await connected(self.server)
        writer.write(made_start(packet))
        await writer.drain()
        writer.close()

    def end_wait(self, call: LiveCall, how: WaitEnd) -> None:
        if not self.silent[call].done():
            self.silent[call].set_result(how)


async def connected(server: DatabaseServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection with a server, which is encrypted where `sslmode` demands it, and where a server that is not on this
    machine can do so, unless `sslmode` forbids it. Raises OSError."""
    async with asyncio.timeout(SECONDS_TO_CONNECT):
        if server.socket:
            return await asyncio.open_unix_connection(server.socket)
        reader, writer = await asyncio.open_connection(server.address or server.host, server.port)
        demands = server.mode in ("require", "verify-ca", "verify-full")
        if not demands and (server.mode not in ("", "prefer") or is_here(server.host)):
            return reader, writer
        writer.write(made_start(StartPacket(TLS, {})))
        answer = await reader.read(2)  # bytes behind the answer came in the clear, and must not pass for encrypted ones
        if answer == b"N" and not demands:
            return reader, writer
        if answer != b"S":
            writer.close()
            raise ConnectionError("the server speaks no TLS, or says more before it")
        context = create_default_context()
        context.check_hostname = server.mode.startswith("verify-")
        if not context.check_hostname:
            context.verify_mode = CERT_NONE
        await writer.start_tls(context, server_hostname=server.host)
        return reader, writer


class Inbox:
    """The messages of an agent. It reads ahead, so that the end of the connection is seen while no message is asked for."""

    def __init__(self, reader: asyncio.StreamReader, told: asyncio.Event):
        self._reader, self._told, self.messages = reader, told, MessageReader()
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self.ended, self._is_left = asyncio.Event(), False
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(2**16):
                self.messages.feed(data)
                self._more.set()
                if self.messages.size > AHEAD and not self._is_left:
                    self._room.clear()
                    await self._room.wait()
        except OSError:
            pass
        finally:
            self.ended.set()
            self._told.set()
            self._more.set()

    def leave(self) -> None:
        """Read to the end of a connection that was aborted, also while nobody asks for messages."""
        self._is_left = True
        self._room.set()

    async def next(self) -> WireMessage | None:
        """Return the next message; None at the end. Raises MalformedMessage."""
        while (message := self.messages.take()) is None:
            if self.ended.is_set():
                return None
            self._more.clear()
            self._room.set()
            await self._more.wait()
        return message


class DatabaseSession:
    """One connection of the agent, with the one to the copy's server that was opened for it.

    key      the session and its secret, as a cancel request names them
    calls    the calls that are under way
    is_held  whether one of them is held, or is to be delivered
    """

    def __init__(self, door: DatabaseDoor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool) -> None:
        self._door, self._reader, self._writer = door, reader, writer
        self._store, self._counts = door.stores[0], counts
        self.key, self.calls, self.is_held = b"", set[LiveCall](), False
        self._status = b""
        """Of the last ReadyForQuery: idle, in a transaction, in a failed one; b"" until the first."""
        self._answer: ServerAnswer | None = None
        self._drops = False
        """Whether what the server answers is for nobody."""
        self._copies_in = asyncio.Event()
        self._turn = asyncio.Event()
        """Set whenever a wait for the server's answer may be over."""
        self._prepared, self._portals = dict[str, Prepared](), dict[str, list[ExecutedStatement]]()
        self._described = deque[list[str]]()
        """The columns of statements whose descriptions are awaited."""
        self._executed, self._transaction = list[ExecutedStatement](), list[ExecutedStatement]()
        self._has_written = self._has_forgotten = False
        self._unreadable = b"refused_" + token_hex(8).encode()
        """What is sent in the place of a statement that is refused; the server's error names it."""
        self._server: asyncio.StreamWriter
        self._inbox: Inbox
        self._answering: asyncio.Task[None]
        self._ready = asyncio.get_running_loop().create_future()

    def _notice(self, what: str) -> None:
        self._door.notice(what, self._store)

    @property
    def _session(self) -> int:
        return int.from_bytes(self.key[:4])

    def leave(self, *, server: bool) -> None:
        """End the agent's connection, and the one to the server too, where nothing is waited for."""
        self._writer.transport.abort()
        if hasattr(self, "_inbox"):
            self._inbox.leave()
        if server and hasattr(self, "_server"):
            self._server.transport.abort()

    def _close(self) -> None:
        self._writer.close()
        if hasattr(self, "_answering"):
            self._inbox.reading.cancel()
            self._answering.cancel()
            self._server.close()

    async def run(self) -> None:
        """Relay until either side ends. Raises OSError, EOFError, MalformedMessage, and what a gate raises."""
        try:
            async with asyncio.timeout(SECONDS_TO_CONNECT):
                packet = await self._begin()
            if packet and await self._connect(packet):
                await self._relay()
        finally:
            self._close()

    async def _begin(self) -> StartPacket | None:
        """Return what the agent says as it starts; None if it wants no session."""
        asked_for_tls = False
        while True:
            try:
                head = await self._reader.readexactly(4)
            except (EOFError, ConnectionError):
                if asked_for_tls:
                    self._notice(NO_TLS)
                return None
            packet = start_of(head + await self._reader.readexactly(start_size(head) - 4))
            if packet.code == CANCEL:
                await self._door.cancel(packet)
                return None
            if packet.code not in (TLS, GSS):
                return packet
            asked_for_tls = asked_for_tls or packet.code == TLS
            self._writer.write(b"N")

    async def _connect(self, packet: StartPacket) -> bool:
        """Connect with the copy's server. Return whether that could be done."""
        asked = packet.parameters.get("database") or packet.parameters.get("user", "")
        names = {name: store for store in self._door.stores for name in store.server_and_names()[1]}
        if packet.parameters.get("replication", "false") not in ("false", "off", "no", "0"):
            return await self._refuse("0A000", "a connection for replication is not passed on")
        if asked not in names:
            why = f"database {one_line(whole_text(asked), 100)!r} is not in the box of the probe; name it as a store"
            return await self._refuse("3D000", why)
        self._store = names[asked]
        self._counts = self._counts and self._store.is_door
        packet = replace(packet, parameters={**packet.parameters, "database": self._store.server_and_names()[1][1]})
        try:
            reader, self._server = await connected(self._door.server)
        except (OSError, TimeoutError) as error:
            return await self._refuse("08006", f"the server of the copy cannot be reached ({type(error).__name__})")
        self._server.write(made_start(packet))
        self._inbox = Inbox(self._reader, self._turn)
        self._answering = asyncio.create_task(self._take_answers(reader))
        self._answering.add_done_callback(lambda _: self._turn.set())
        return True

    async def _refuse(self, code: str, why: str) -> bool:
        self._notice(f"the agent was refused: {why}")
        self._writer.write(made_error("FATAL", code, f"bench probe: {why}").raw)
        await self._writer.drain()
        return False

    async def _relay(self) -> None:
        group = list[WireMessage]()
        while message := await self._next(self._answering):
            if message.kind not in b"pX":
                await self._ready_once()
            if not self._status or message.kind in b"dcf":  # the server itself asks who the agent is, or ended a copy
                await self._pass([message])
            elif message.kind == b"X":
                await self._pass([*group, message])
                return
            else:
                group.append(self._noted(message))
                if message.kind in (b"Q", b"F", _SYNC):
                    executed, self._executed = self._executed, []
                    if not await self._serve(group, executed):
                        return
                    group = []
                elif message.kind == _FLUSH or sum(len(each.raw) for each in group) > AHEAD:
                    if any(each.statement.verb in ENDS for each in self._executed):
                        self._notice("a COMMIT came before a Sync; it was passed on, and is no call")
                    await self._pass(group)
                    group = []

    async def _next(self, *unless: asyncio.Future[None]) -> WireMessage | None:
        """Return the agent's next message; None if it has ended, or if one of these is done before that."""
        if message := self._inbox.messages.take():
            return message
        coming = asyncio.ensure_future(self._inbox.next())
        try:
            await asyncio.wait(set[asyncio.Future[Any]]((coming, *unless)), return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else None
        finally:
            coming.cancel()

    async def _pass(self, messages: Sequence[WireMessage]) -> None:
        self._server.write(b"".join(message.raw for message in messages))
        await self._server.drain()

    async def _ready_once(self) -> None:
        """Wait until the server has let the agent in: what is sent before that is looked at too."""
        while not (self._status or self._answering.done() or self._inbox.ended.is_set()):
            self._turn.clear()
            await self._turn.wait()

    def _noted(self, message: WireMessage) -> WireMessage:
        """Return what is passed on in a message's place: itself, or what the server refuses as it would refuse any statement
        that it cannot read."""
        if message.kind not in b"QP":
            self._note(message)
            return message
        *names, sql = texts_of(message, 2 if message.kind == b"P" else 1)
        if not reaches_out(sql):
            self._note(message)
            return message
        self._notice(f"a statement of the agent was refused: {NOT_FOR_AGENTS}")
        if names == [""]:
            self._prepared.pop("", None)
        named = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)
        return made(message.kind, named + self._unreadable + b"\0" + (b"\0\0" if names else b""))

    def _note(self, message: WireMessage) -> None:
        """Note what an agent's message prepares, binds or executes."""
        kind, of_portal = message.kind, message.body[:1] == b"P"
        if kind == b"Q":
            self._executed += map(ExecutedStatement, statements_of(texts_of(message, 1)[0]))
        elif kind == b"F":
            self._executed.append(ExecutedStatement(SqlStatement("", "CALL")))
        elif kind == b"P":
            self._prepare(*texts_of(message, 2))
        elif kind == b"B":
            bound = bound_by(message)
            prepared = self._prepared.get(bound.statement, Prepared([]))
            made_of = [ExecutedStatement(each, tuple(bound.values), prepared.columns) for each in prepared.statements]
            self._portals[bound.portal] = made_of
        elif kind == b"E":
            self._executed += self._portals.get(texts_of(message, 1)[0], ())
        elif kind in (b"D", b"C"):
            name = texts_of(made(kind, message.body[1:]), 1)[0]
            if kind == b"C":
                self._portals.pop(name, None) if of_portal else self._prepared.pop(name, None)
            elif of_portal:
                self._described.append(next((each.columns for each in self._portals.get(name, ())), []))
            else:
                self._described.append(self._prepared.get(name, Prepared([])).columns)

    def _prepare(self, name: str, sql: str) -> None:
        self._prepared.pop(name, None)
        self._prepared[name] = Prepared(statements_of(sql))
        if len(self._prepared) > MOST_PREPARED:
            del self._prepared[next(iter(self._prepared))]
            if not self._has_forgotten:
                self._notice(f"an agent holds more than {MOST_PREPARED:,} prepared statements; the oldest are no calls")
            self._has_forgotten = True

    async def _take_answers(self, reader: asyncio.StreamReader) -> None:
        """Take what the server sends until it ends. What belongs to no call is passed back as it comes."""
        messages = MessageReader()
        try:
            while data := await reader.read(2**16):
                self._writer.write(b"".join(map(self._taken, messages.messages(data))))
                with suppress(OSError):  # an agent that has left
                    await self._writer.drain()
        except MalformedMessage as bad:
            self._notice(f"a connection to the server was ended: {bad}")
        except OSError:
            pass

    def _taken(self, message: WireMessage) -> bytes:
        """Take a message of the server's. Return the bytes that are passed back at once."""
        kind, message = message.kind, self._instead_of(message)
        if kind == b"K":
            self.key = message.body
        elif kind in b"Tn" and self._described:
            self._described.popleft()[:] = columns_of(message) if kind == b"T" else []
        elif kind == b"C":
            self._has_written = self._has_written or is_write(texts_of(message, 1)[0])
        elif kind == COPIES_IN:
            self._copies_in.set()
            self._turn.set()
        elif kind == b"Z":
            self._status = message.body
            self._described.clear()
            self._turn.set()
            if not self._ready.done():
                self._ready.set_result(None)
        if self._drops:
            return b""
        if self._answer:
            return self._answer.take(message, keeps=any(call.struck for call in self.calls))
        return message.raw

    def _instead_of(self, message: WireMessage) -> WireMessage:
        """Return what is passed back for a message of the server's: itself, but for what the gateway refuses, or cannot do."""
        if message.kind == b"E" and self._unreadable in message.body:
            return made_error("ERROR", "42501", f"bench probe: {NOT_FOR_AGENTS}")
        if message.kind == b"R" and self._server.get_extra_info("sslcontext"):
            return without_binding(message)
        return message

    async def _exchange(self, group: Sequence[WireMessage], executed: Sequence[ExecutedStatement]) -> ServerAnswer:
        """Pass a group of messages on, and return the answer, which is not complete if the server ended first."""
        self._answer = answer = ServerAnswer(executed)
        try:
            await self._round(group)
        finally:
            self._answer = None
        return answer

    async def _do(self, group: Sequence[WireMessage]) -> None:
        """Let the server do something whose answer is for nobody."""
        self._drops = True
        try:
            await self._round(group)
        finally:
            self._drops = False

    async def _round(self, group: Sequence[WireMessage]) -> None:
        """Pass a group on, and wait until the server is ready for the next one, or has ended. What the agent copies in is
        passed on meanwhile. An agent that leaves waits no longer than `patience`."""
        ready = self._ready = asyncio.get_running_loop().create_future()
        self._copies_in.clear()
        await self._pass(group)
        while not ready.done() and not self._answering.done():
            if self._copies_in.is_set():
                self._copies_in.clear()
                await self._copy_in(ready, simple=group[-1].kind == b"Q")
            elif self._inbox.ended.is_set():
                await asyncio.wait(
                    {ready, self._answering}, timeout=self._door.desk.gate().patience, return_when=asyncio.FIRST_COMPLETED
                )
                if not ready.done():
                    self._server.transport.abort()
                    await asyncio.wait({self._answering})
            else:
                self._turn.clear()
                await self._turn.wait()

    async def _copy_in(self, ready: asyncio.Future[None], *, simple: bool) -> None:
        """Pass on what the agent copies in, up to the Sync that follows if the statement was `simple`."""
        has_ended = False
        while message := await self._next(ready, self._answering):
            await self._pass([message])
            has_ended = has_ended or message.kind in b"cf"
            if has_ended and (simple or message.kind == _SYNC):
                return
        if not ready.done():  # the agent left in the middle
            self._server.transport.abort()

    async def _serve(self, group: Sequence[WireMessage], executed: Sequence[ExecutedStatement]) -> bool:
        """Serve a group of messages to the next Sync. Return whether the connection stays."""
        if self._counts and (call := await self._call_of(executed)):
            self.calls.add(call)
            try:
                stays = await self._pass_call(self._door.desk.gate(), call, group, executed)
            finally:
                self.calls.discard(call)
        else:
            await self._round(group)
            stays = not self._answering.done()
        if self._status == b"I":
            self._transaction, self._has_written = [], False
        elif self._counts:
            self._transaction += executed
        return stays

    async def _call_of(self, executed: Sequence[ExecutedStatement]) -> LiveCall | None:
        """Return the call that a group of messages is; None if it is none: it changes nothing that another session sees."""
        acting = [each for each in executed if is_acting(each.statement)]
        ends = any(is_end(each.statement) for each in executed)
        if self._status == b"I":
            if not acting or (executed[0].statement.verb in BEGINS and not ends):
                return None
        elif self._status == b"T" and ends:
            acting = [each for each in (*self._transaction, *acting) if is_acting(each.statement)]
            writes = self._has_written or any(
                each.statement.verb not in READS for each in executed if is_acting(each.statement)
            )
            if not writes and not await asyncio.to_thread(self._store.has_written, self._session):
                return None
        elif self._status != b"T" or not acting or any(each.statement.verb not in READS for each in acting):
            return None
        written = [each for each in acting if each.statement.verb not in READS]
        named = " + ".join(dict.fromkeys(each.statement.name for each in written or acting))
        call = LiveCall(
            self._door.desk.number(),
            self._store.name,
            "database",
            whole_text(named[:LONGEST_NAME]),
            [recorded(each, self._door.hide) for each in written or acting],
            reads=None if written or (ends and self._status == b"T") else True,
            life=self._door.desk.life(),
            wire=str(self._session),
        )
        call.kept["ends"] = ends
        return call

    async def _pass_call(
        self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage], executed: Sequence[ExecutedStatement]
    ) -> bool:
        for earlier in [each for each in self._door.silent if asks_again(call, each)]:
            self._door.end_wait(earlier, "asked_again")
        before = await gate.arrived(call)
        if before == "drop":
            return False
        if before == "answer":
            return await self._give_again(gate, call, group)
        if before not in ("pass", "hold"):
            return await self._give_error(gate, call)
        if before == "hold" and not await self._hold(gate, call, group, executed):
            return False
        answer = await self._exchange(group, executed)
        if not answer.is_complete:
            await gate.ended(call)
            self._writer.write(answer.raw)
            return False
        read(call, answer)
        raw = answer.raw if answer.is_whole else b""
        return await self._give(gate, call, answer, await gate.answered(call, raw if len(raw) <= LARGEST else b""))

    async def _give(self, gate: CallGate, call: LiveCall, answer: ServerAnswer, after: AnswerFate) -> bool:
        """Give an answer, or what stands in its place. Return whether the connection stays."""
        if after in ("silence", "late") and not await self._wait(gate, call, after):
            return False
        messages = answer.messages
        if after == "drop":
            return False
        if after == "error":
            self._writer.write(ENDED.raw)
            await self._writer.drain()
            return False
        if after in ("stale", "empty", "garbled", "too_large"):
            if (changed := answer.struck(after, call.instead or b"")) is None:
                self._notice(f"call {call.number}: its answer has no row that {after} could strike")
            messages = changed or messages
        elif after not in ("give", "silence", "late"):
            self._writer.transport.abort()
            return False
        if self._inbox.ended.is_set():
            gate.went(call, "disconnected")
            return False
        self._writer.write(b"".join(message.raw for message in messages))
        await self._writer.drain()
        await gate.given(call)
        return True

    async def _give_error(self, gate: CallGate, call: LiveCall) -> bool:
        """Refuse a call, as a server does that could not serialize it: a transaction is then over, or has failed."""
        call.failed = True
        if self._status == b"T":
            await self._do([made_query("ROLLBACK" if call.kept["ends"] else "SELECT 1 / 0")])
        self._writer.write(REFUSED.raw + made(b"Z", self._status).raw)
        await self._writer.drain()
        await gate.given(call)
        return True

    async def _give_again(self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage]) -> bool:
        """Give the answer of an earlier call, and take back what this one's transaction did. Statements that it prepares are
        prepared all the same."""
        instead = call.instead or b""
        if self._status == b"T":
            await self._do([made_query("ROLLBACK")])
        if prepares := [message for message in group if message.kind in b"PC"]:
            await self._do([*prepares, made(_SYNC)])
        given = [message.kind for message in MessageReader().messages(instead)]
        if any(given.count(answer) != sum(each.kind == asked for each in group) for asked, answer in _ANSWERS.items()):
            self._notice(f"call {call.number}: its messages are others than those of the call whose answer it would get")
            return False
        self._writer.write(instead)
        await self._writer.drain()
        await gate.given(call)
        return True

    async def _hold(
        self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage], executed: Sequence[ExecutedStatement]
    ) -> bool:
        """Keep a call from the server while its agent waits; a COMMIT holds the locks of its transaction meanwhile. Return
        whether the agent waits longer."""

        async def deliver() -> bytes:
            answer = await self._exchange(group, executed)
            if not answer.is_complete:
                raise Undelivered("the server ended the session")
            if not call.over.is_set():
                read(call, answer)
            return answer.raw

        call.deliver, self.is_held = deliver, True
        watching = asyncio.create_task(self._watch_locks(gate, call))
        try:
            if await self._wait(gate, call, "silence"):
                await gate.passes(call)
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(call.over.wait(), 2 * gate.patience)
            return False
        finally:
            self.is_held = False
            watching.cancel()

    async def _watch_locks(self, gate: CallGate, call: LiveCall) -> None:
        """Let a held call be done once another session waits for what it has locked."""
        waits = False
        while self._status == b"T" and not waits:
            await asyncio.sleep(LOOK_AGAIN)
            waits = await asyncio.to_thread(self._store.keeps_waiting, self._session)
        if waits:
            self._notice(f"call {call.number} is held no longer: another session waits for what it has locked")
            if call in self._door.silent:
                self._door.end_wait(call, "waits_longer")
            gate.blocks(call)

    async def _wait(self, gate: CallGate, call: LiveCall, after: AnswerFate) -> bool:
        """Be silent until the agent disconnects, cancels, asks again, or `patience` ends. Return whether an answer is given
        then."""
        waiting = self._door.silent[call] = asyncio.get_running_loop().create_future()
        left = asyncio.create_task(self._inbox.ended.wait())
        try:
            await asyncio.wait({waiting, left}, timeout=gate.patience, return_when=asyncio.FIRST_COMPLETED)
            del self._door.silent[call]
            how: WaitEnd = waiting.result() if waiting.done() else "disconnected" if left.done() else "waits_longer"
            gate.went(call, how)
            if how == "waits_longer" or (after == "late" and how != "disconnected"):
                return True
            await asyncio.wait({left}, timeout=gate.patience)
            self._writer.transport.abort()
            return False
        finally:
            left.cancel()


def without_binding(message: WireMessage) -> WireMessage:
    """Return a server's offer of ways to log in without those that bind to TLS: the agent's way ends here."""
    if int.from_bytes(message.body[:4]) != _OFFER:
        return message
    ways = [way for way in message.body[4:].split(b"\0") if way and not way.endswith(b"-PLUS")]
    return made(b"R", message.body[:4] + b"".join(way + b"\0" for way in ways) + b"\0")


KIND = DoorKind("database", can=frozenset(("hold",)))
