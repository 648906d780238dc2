"""One session of an agent with PostgreSQL, at which its calls are struck: what it says is passed on to the next Sync."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from ssl import SSLContext
from typing import Any, Protocol

from bench.common.errors import one_line, whole_text
from bench.probe.points import AnswerFate
from bench.probe.run.gateway.database_answer import COPIES_IN, LARGEST, ServerAnswer, is_write, read
from bench.probe.run.gateway.database_statements import SessionStatements, StatementRecord, record_of
from bench.probe.run.gateway.database_way import (
    AHEAD,
    BINDING,
    NO_BINDING,
    SECONDS_TO_CONNECT,
    Inbox,
    Login,
    connect,
    start_packet,
)
from bench.probe.run.gateway.gate import CallGate, Desk, HeldAnswers, LiveCall, Undelivered
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.store import DatabaseServer
from bench.wire.postgres import (
    CANCEL,
    MalformedMessage,
    MessageReader,
    StartPacket,
    WireMessage,
    made,
    made_error,
    made_query,
    made_start,
    reaches_out,
    texts_of,
)

SECONDS_TO_CLOSE = 1.0
LOOK_AGAIN = 0.05
"""Seconds between two looks at what waits for a lock."""
REFUSED = made_error("ERROR", "40001", "could not serialize access due to concurrent update")
ENDED = made_error("FATAL", "57P01", "terminating connection due to administrator command")
NOT_FOR_AGENTS = (
    "an agent may not run COPY ... PROGRAM, or CREATE, ALTER or DROP a DATABASE, ROLE, USER, GROUP, SYSTEM or TABLESPACE: they "
    "act on the whole server, and not on the copy"
)
LONGEST_NAME = 120
_FLUSH, _SYNC = b"H", b"S"
_ANSWERS = {b"P": b"1", b"B": b"2"}
"""Messages of the agent's that are answered each by one of the server's."""


class SessionDoor(Protocol):
    """What sessions need of the door through which they come."""

    server: DatabaseServer
    stores: Sequence[PostgresStore]
    desk: Desk
    hide: frozenset[str]
    silent: HeldAnswers

    async def tls(self) -> SSLContext | None: ...

    async def cancel(self, packet: StartPacket) -> None: ...

    def notice(self, what: str, store: PostgresStore | None = None) -> None: ...


class DatabaseSession:
    """One connection of the agent, with the one to the copy's server that was opened for it.

    key      the session and its secret, as a cancel request names them
    calls    the calls that are under way
    is_held  whether one of them is held, or is to be delivered
    """

    def __init__(self, door: SessionDoor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool) -> None:
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
        self._statements, self._transaction = SessionStatements(), StatementRecord()
        self._has_written = False
        self._unreadable = b"refused_" + token_hex(8).encode()
        """What is sent in the place of a statement that is refused; the server's error names it."""
        self._server: asyncio.StreamWriter
        self._login: Login
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

    async def _close(self) -> None:
        ends = [self._writer]
        if hasattr(self, "_answering"):
            self._inbox.reading.cancel()
            self._answering.cancel()
            ends.append(self._server)
        for end in ends:
            end.close()
        closing = [asyncio.ensure_future(end.wait_closed()) for end in ends]
        await asyncio.wait(closing, timeout=SECONDS_TO_CLOSE)
        for end in ends:
            end.transport.abort()
        await asyncio.gather(*closing, return_exceptions=True)

    async def run(self) -> None:
        """Relay until either side ends. Raises OSError, EOFError, MalformedMessage, and what a gate raises."""
        try:
            async with asyncio.timeout(SECONDS_TO_CONNECT):
                packet = await start_packet(self._reader, self._writer, self._door.tls, self._notice)
            if packet and packet.code == CANCEL:
                await self._door.cancel(packet)
            elif packet and await self._connect(packet):
                await self._relay()
                if self._login.waits and self._inbox.ended.is_set():
                    self._notice(NO_BINDING)
        finally:
            await self._close()

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
            reader, self._server = await connect(self._door.server)
        except (OSError, TimeoutError) as error:
            return await self._refuse("08006", f"the server of the copy cannot be reached ({type(error).__name__})")
        self._login = Login()
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
            if not self._status and message.kind == b"p" and self._login.refuses(message):
                await self._refuse("08P01", BINDING)
                return
            if not self._status or message.kind in b"dcf":  # the server itself asks who the agent is, or ended a copy
                await self._pass([message])
            elif message.kind == b"X":
                await self._pass([*group, message])
                return
            else:
                group.append(self._passable(message))
                if message.kind in (b"Q", b"F", _SYNC):
                    if not await self._serve(group, self._statements.take()):
                        return
                    group = []
                elif message.kind == _FLUSH or sum(len(each.raw) for each in group) > AHEAD:
                    if self._statements.executed.ends:
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

    def _passable(self, message: WireMessage) -> WireMessage:
        """Return what is passed on in a message's place: itself, or what the server refuses as it would refuse any statement
        that it cannot read."""
        if message.kind not in b"QP":
            self._statements.note(message)
            return message
        *names, sql = texts_of(message, 2 if message.kind == b"P" else 1)
        if not reaches_out(sql):
            self._statements.note(message)
            return message
        self._notice(f"a statement of the agent was refused: {NOT_FOR_AGENTS}")
        for name in names:
            self._statements.refuse(name)
        named = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)
        return made(message.kind, named + self._unreadable + b"\0" + (b"\0\0" if names else b""))

    async def _take_answers(self, reader: asyncio.StreamReader) -> None:
        """Take what the server sends until it ends. What belongs to no call is passed back as it comes."""
        messages = MessageReader()
        try:
            while data := await reader.read(2**16):
                self._writer.write(b"".join(map(self._take_message, messages.messages(data))))
                with suppress(OSError):  # an agent that has left
                    await self._writer.drain()
        except MalformedMessage as bad:
            self._notice(f"a connection to the server was ended: {bad}")
        except OSError:
            pass

    def _take_message(self, message: WireMessage) -> bytes:
        """Take a message of the server's. Return the bytes that are passed back at once."""
        kind, message = message.kind, self._instead_of(message)
        self._statements.see(message)
        if kind == b"K":
            self.key = message.body
        elif kind == b"C":
            self._has_written = self._has_written or is_write(texts_of(message, 1)[0])
        elif kind == COPIES_IN:
            self._copies_in.set()
            self._turn.set()
        elif kind == b"Z":
            self._status = message.body
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
        return self._login.without_binding(message)

    async def _exchange(self, group: Sequence[WireMessage], executed: StatementRecord) -> ServerAnswer:
        """Pass a group of messages on, and return the answer, which is not complete if the server ended first."""
        self._answer = answer = ServerAnswer(executed.kept)
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

    async def _serve(self, group: Sequence[WireMessage], executed: StatementRecord) -> bool:
        """Serve a group of messages to the next Sync. Return whether the connection stays."""
        if self._counts:
            self._transaction.extend(executed)
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
            self._transaction, self._has_written = StatementRecord(), False
        return stays

    async def _call_of(self, executed: StatementRecord) -> LiveCall | None:
        """Return the call that a group of messages is; None if it is none: it changes nothing that another session sees."""
        whole = executed
        if self._status == b"I":
            if not executed.acts or (executed.begins and not executed.ends):
                return None
        elif self._status == b"T" and executed.ends:
            whole, writes = self._transaction, self._has_written or executed.writes
            if not writes and not await asyncio.to_thread(self._store.has_written, self._session):
                return None
        elif self._status != b"T" or not executed.acts or executed.writes:
            return None
        named_by, further = whole.summary()
        named = " + ".join(dict.fromkeys(each.statement.name for each in named_by))
        return self._door.desk.call(
            self._store.name,
            "database",
            whole_text(named[:LONGEST_NAME]),
            [*(record_of(each, self._door.hide) for each in named_by), *further],
            reads=None if whole.writes or (executed.ends and self._status == b"T") else True,
            wire=str(self._session),
            kept={"ends": executed.ends},
        )

    async def _pass_call(self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage], executed: StatementRecord) -> bool:
        self._door.silent.end_repeated(call)
        before = await gate.arrive(call)
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
            await gate.note_end(call)
            self._writer.write(answer.raw)
            return False
        read(call, answer)
        raw = answer.raw if answer.is_whole else b""
        return await self._give(gate, call, answer, await gate.answer(call, raw if len(raw) <= LARGEST else b""))

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
            if (changed := answer.strike(after, call.instead or b"")) is None:
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
        await gate.note_given(call)
        return True

    async def _give_error(self, gate: CallGate, call: LiveCall) -> bool:
        """Refuse a call, as a server does that could not serialize it: a transaction is then over, or has failed."""
        call.failed = True
        if self._status == b"T":
            await self._do([made_query("ROLLBACK" if call.kept["ends"] else "SELECT 1 / 0")])
        self._writer.write(REFUSED.raw + made(b"Z", self._status).raw)
        await self._writer.drain()
        await gate.note_given(call)
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
        await gate.note_given(call)
        return True

    async def _hold(self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage], executed: StatementRecord) -> bool:
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
            self._door.silent.end(call, "waits_longer")
            gate.blocks(call)

    async def _wait(self, gate: CallGate, call: LiveCall, after: AnswerFate) -> bool:
        """Be silent until the agent disconnects, cancels, asks again, or `patience` ends. Return whether an answer is given
        then."""
        how = await self._door.silent.wait(call, self._inbox.ended.wait())
        if how == "waits_longer" or (after == "late" and how != "disconnected"):
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._inbox.ended.wait(), gate.patience)
        self._writer.transport.abort()
        return False
