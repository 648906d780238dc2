"""One session of the agent with PostgreSQL: its messages are forwarded up to each Sync, and faults are injected into its
calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from ssl import SSLContext
from typing import Any, Protocol

from bench.common.errors import one_line, whole_text
from bench.probe.points import AnswerAction
from bench.probe.run.gateway.database_answer import COPIES_IN, MAX_ANSWER_BYTES, ServerAnswer, is_write, record_answer
from bench.probe.run.gateway.database_statements import SessionStatements, StatementRecord, record_of
from bench.probe.run.gateway.database_way import (
    BINDING_TEXT,
    CONNECT_TIMEOUT_S,
    MAX_UNREAD_BYTES,
    NO_BINDING_TEXT,
    Inbox,
    Login,
    connect,
    start_packet,
)
from bench.probe.run.gateway.gate import CallGate, DoorContext, LiveCall, Undelivered
from bench.probe.run.gateway.held_answers import HeldAnswers
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.store import DatabaseServer
from bench.wire.postgres import (
    CANCEL_CODE,
    MalformedMessage,
    MessageReader,
    StartPacket,
    WireMessage,
    acts_beyond_database,
    encode_start,
    first_texts,
    make_error,
    make_message,
    make_query,
)

CLOSE_TIMEOUT_S = 1.0
LOCK_POLL_S = 0.05
"""The time between two checks whether another session waits for a lock."""
REFUSAL = make_error("ERROR", "40001", "could not serialize access due to concurrent update")
TERMINATION = make_error("FATAL", "57P01", "terminating connection due to administrator command")
FORBIDDEN_TEXT = (
    "an agent may not run COPY ... PROGRAM, or CREATE, ALTER or DROP a DATABASE, ROLE, USER, GROUP, SYSTEM or TABLESPACE: they "
    "act on the whole server, and not on the copy"
)
MAX_CALL_NAME_CHARS = 120
_FLUSH, _SYNC = b"H", b"S"
_ANSWER_KINDS = {b"P": b"1", b"B": b"2"}
"""Kind of a message of the agent (Parse, Bind) -> kind of the message that answers it."""


class SessionOwner(Protocol):
    """What a session needs of the door that opened it (`DatabaseDoor`)."""

    server: DatabaseServer
    stores: Sequence[PostgresStore]
    context: DoorContext
    hide: frozenset[str]
    held_answers: HeldAnswers

    async def tls(self) -> SSLContext | None: ...

    async def cancel(self, packet: StartPacket) -> None: ...

    def notice(self, message: str, store: PostgresStore | None = None) -> None: ...


class DatabaseSession:
    """One connection of the agent, and the connection to the copy's server that was opened for it.

    key      the session's id and secret, as a cancel request contains them
    calls    the calls that the server has not answered
    is_held  whether a call of this session is held, or is still to be delivered
    """

    def __init__(self, door: SessionOwner, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool) -> None:
        self._door, self._reader, self._writer = door, reader, writer
        self._store, self._makes_calls = door.stores[0], counts
        self.key, self.calls, self.is_held = b"", set[LiveCall](), False
        self._status = b""
        """The status in the last ReadyForQuery: b"I" idle, b"T" in a transaction, b"E" in a failed transaction; b"" before the
        first."""
        self._answer: ServerAnswer | None = None
        self._drops_answers = False
        """Whether the server's messages are sent to nobody."""
        self._copies_in = asyncio.Event()
        self._progress = asyncio.Event()
        """Set by each event that may end a wait for the server."""
        self._statements, self._transaction = SessionStatements(), StatementRecord()
        self._has_written = False
        self._refused_statement = b"refused_" + token_hex(8).encode()
        """The SQL that is sent in place of a refused statement. It is invalid, and the server's error quotes it."""
        self._server: asyncio.StreamWriter
        self._login: Login
        self._inbox: Inbox
        self._server_reading: asyncio.Task[None]
        self._ready = asyncio.get_running_loop().create_future()

    def _notice(self, message: str) -> None:
        self._door.notice(message, self._store)

    @property
    def _session(self) -> int:
        return int.from_bytes(self.key[:4])

    def leave(self, *, server: bool) -> None:
        """Close the agent's connection. If `server`, also close the connection to the server."""
        self._writer.transport.abort()
        if hasattr(self, "_inbox"):
            self._inbox.read_to_end()
        if server and hasattr(self, "_server"):
            self._server.transport.abort()

    async def _close(self) -> None:
        """Close both connections, and abort those that do not close in time."""
        ends = [self._writer]
        if hasattr(self, "_server_reading"):
            self._inbox.reading.cancel()
            self._server_reading.cancel()
            ends.append(self._server)
        for end in ends:
            end.close()
        closing = [asyncio.ensure_future(end.wait_closed()) for end in ends]
        await asyncio.wait(closing, timeout=CLOSE_TIMEOUT_S)
        for end in ends:
            end.transport.abort()
        await asyncio.gather(*closing, return_exceptions=True)

    async def run(self) -> None:
        """Forward messages until either side closes its connection. Raises OSError, EOFError, MalformedMessage, and an
        exception that a gate raised."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                packet = await start_packet(self._reader, self._writer, self._door.tls, self._notice)
            if packet and packet.code == CANCEL_CODE:
                await self._door.cancel(packet)
            elif packet and await self._connect(packet):
                await self._relay()
                if self._login.waits and self._inbox.ended.is_set():
                    self._notice(NO_BINDING_TEXT)
        finally:
            await self._close()

    async def _connect(self, packet: StartPacket) -> bool:
        """Connect to the server of the copy that the agent's first packet names. Return whether this succeeded; otherwise the
        session was refused."""
        database = packet.parameters.get("database") or packet.parameters.get("user", "")
        names = {name: store for store in self._door.stores for name in store.server_and_names()[1]}
        if packet.parameters.get("replication", "false") not in ("false", "off", "no", "0"):
            return await self._refuse("0A000", "a connection for replication is not passed on")
        if database not in names:
            why = f"database {one_line(whole_text(database), 100)!r} is not in the box of the probe; name it as a store"
            return await self._refuse("3D000", why)
        self._store = names[database]
        self._makes_calls = self._makes_calls and self._store.is_door
        packet = replace(packet, parameters={**packet.parameters, "database": self._store.server_and_names()[1][1]})
        try:
            reader, self._server = await connect(self._door.server)
        except (OSError, TimeoutError) as error:
            return await self._refuse("08006", f"the server of the copy cannot be reached ({type(error).__name__})")
        self._login = Login()
        self._server.write(encode_start(packet))
        self._inbox = Inbox(self._reader, self._progress)
        self._server_reading = asyncio.create_task(self._read_server(reader))
        self._server_reading.add_done_callback(lambda _: self._progress.set())
        return True

    async def _refuse(self, code: str, why: str) -> bool:
        """Refuse the session with this SQLSTATE and reason. Return False, since the session is not connected."""
        self._notice(f"the agent was refused: {why}")
        self._writer.write(make_error("FATAL", code, f"bench probe: {why}").raw)
        await self._writer.drain()
        return False

    async def _relay(self) -> None:
        """Forward the agent's messages in groups, each up to a Sync."""
        group = list[WireMessage]()
        while message := await self._next(self._server_reading):
            if message.kind not in b"pX":  # p: a part of the login, X: the end of the session
                await self._await_login()
            if not self._status and message.kind == b"p" and self._login.refuses(message):
                await self._refuse("08P01", BINDING_TEXT)
                return
            if not self._status or message.kind in b"dcf":  # the server itself asks who the agent is, or ended a copy
                await self._send_to_server([message])
            elif message.kind == b"X":
                await self._send_to_server([*group, message])
                return
            else:
                group.append(self._message_to_forward(message))
                if message.kind in (b"Q", b"F", _SYNC):
                    if not await self._serve_group(group, self._statements.take_executed()):
                        return
                    group = []
                elif message.kind == _FLUSH or sum(len(each.raw) for each in group) > MAX_UNREAD_BYTES:
                    if self._statements.executed.ends:  # the gate can be asked only about a group up to a Sync
                        self._notice("a COMMIT came before a Sync; it was passed on, and is no call")
                    await self._send_to_server(group)
                    group = []

    async def _next(self, *futures: asyncio.Future[None]) -> WireMessage | None:
        """Return the agent's next message; None if the agent has disconnected, or if one of these futures is done first."""
        if message := self._inbox.messages.take():
            return message
        reading = asyncio.ensure_future(self._inbox.next())
        try:
            await asyncio.wait(set[asyncio.Future[Any]]((reading, *futures)), return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            reading.cancel()

    async def _send_to_server(self, messages: Sequence[WireMessage]) -> None:
        self._server.write(b"".join(message.raw for message in messages))
        await self._server.drain()

    async def _await_login(self) -> None:
        """Wait until the server has accepted the agent's login, or a connection has closed. Messages after the login must be
        examined, and an agent may send them early."""
        while not (self._status or self._server_reading.done() or self._inbox.ended.is_set()):
            self._progress.clear()
            await self._progress.wait()

    def _message_to_forward(self, message: WireMessage) -> WireMessage:
        """Return the message to forward: `message` itself, or, if an agent may not execute it, a statement that the server
        rejects."""
        if message.kind not in b"QP":
            self._statements.note(message)
            return message
        *names, sql = first_texts(message, 2 if message.kind == b"P" else 1)
        if not acts_beyond_database(sql):
            self._statements.note(message)
            return message
        self._notice(f"a statement of the agent was refused: {FORBIDDEN_TEXT}")
        for name in names:
            self._statements.note_refused(name)
        named = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)
        return make_message(message.kind, named + self._refused_statement + b"\0" + (b"\0\0" if names else b""))

    async def _read_server(self, reader: asyncio.StreamReader) -> None:
        """Read the server's messages until it disconnects. Messages that belong to no call are sent to the agent as they
        arrive."""
        messages = MessageReader()
        try:
            while data := await reader.read(2**16):
                self._writer.write(b"".join(map(self._handle_server_message, messages.messages(data))))
                with suppress(OSError):  # an agent that has left
                    await self._writer.drain()
        except MalformedMessage as bad:
            self._notice(f"a connection to the server was ended: {bad}")
        except OSError:
            pass

    def _handle_server_message(self, message: WireMessage) -> bytes:
        """Update the session by a message of the server. Return the bytes that are sent to the agent at once."""
        kind, message = message.kind, self._message_for_agent(message)
        self._statements.note_answer(message)
        if kind == b"K":
            self.key = message.body
        elif kind == b"C":
            self._has_written = self._has_written or is_write(first_texts(message, 1)[0])
        elif kind == COPIES_IN:
            self._copies_in.set()
            self._progress.set()
        elif kind == b"Z":
            self._status = message.body
            self._progress.set()
            if not self._ready.done():
                self._ready.set_result(None)
        if self._drops_answers:
            return b""
        if self._answer:
            return self._answer.add(message, is_struck=any(call.is_struck for call in self.calls))
        return message.raw

    def _message_for_agent(self, message: WireMessage) -> WireMessage:
        """Return the message that the agent gets for a message of the server. It differs for the error on a refused statement,
        and for an offer of channel binding."""
        if message.kind == b"E" and self._refused_statement in message.body:
            return make_error("ERROR", "42501", f"bench probe: {FORBIDDEN_TEXT}")
        return self._login.without_binding(message)

    async def _exchange(self, group: Sequence[WireMessage], executed: StatementRecord) -> ServerAnswer:
        """Send a group of messages to the server, and return the response, which is incomplete if the server disconnected."""
        self._answer = answer = ServerAnswer(executed.statements)
        try:
            await self._run_group(group)
        finally:
            self._answer = None
        return answer

    async def _execute_silently(self, group: Sequence[WireMessage]) -> None:
        """Have the server execute messages, and drop its response."""
        self._drops_answers = True
        try:
            await self._run_group(group)
        finally:
            self._drops_answers = False

    async def _run_group(self, group: Sequence[WireMessage]) -> None:
        """Send a group to the server, and wait until the server is ready for the next group, or has disconnected. Data that
        the agent copies in is forwarded meanwhile. An agent that disconnects is waited for no longer than `patience`."""
        ready = self._ready = asyncio.get_running_loop().create_future()
        self._copies_in.clear()
        await self._send_to_server(group)
        while not ready.done() and not self._server_reading.done():
            if self._copies_in.is_set():
                self._copies_in.clear()
                await self._copy_in(ready, simple=group[-1].kind == b"Q")
            elif self._inbox.ended.is_set():
                await asyncio.wait(
                    {ready, self._server_reading},
                    timeout=self._door.context.gate().patience,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not ready.done():
                    self._server.transport.abort()
                    await asyncio.wait({self._server_reading})
            else:
                self._progress.clear()
                await self._progress.wait()

    async def _copy_in(self, ready: asyncio.Future[None], *, simple: bool) -> None:
        """Forward the data that the agent copies in, and the Sync that follows unless the statement came by the `simple`
        protocol. If the agent disconnects before, abort the connection to the server."""
        has_ended = False
        while message := await self._next(ready, self._server_reading):
            await self._send_to_server([message])
            has_ended = has_ended or message.kind in b"cf"
            if has_ended and (simple or message.kind == _SYNC):
                return
        if not ready.done():  # the agent disconnected within the data
            self._server.transport.abort()

    async def _serve_group(self, group: Sequence[WireMessage], executed: StatementRecord) -> bool:
        """Serve a group of messages up to a Sync. Return whether the connection remains open."""
        if self._makes_calls:
            self._transaction.extend(executed)
        if self._makes_calls and (call := await self._call_of(executed)):
            self.calls.add(call)
            try:
                remains_open = await self._run_call(self._door.context.gate(), call, group, executed)
            finally:
                self.calls.discard(call)
        else:
            await self._run_group(group)
            remains_open = not self._server_reading.done()
        if self._status == b"I":
            self._transaction, self._has_written = StatementRecord(), False
        return remains_open

    async def _call_of(self, executed: StatementRecord) -> LiveCall | None:
        """Return the call for a group of messages: a statement outside a transaction, a COMMIT that ends a transaction with
        writes, or a read within a transaction. None for another group, which changes nothing that another session sees."""
        record = executed
        if self._status == b"I":  # outside a transaction
            if not executed.acts or (executed.begins and not executed.ends):
                return None
        elif self._status == b"T" and executed.ends:  # the call is the whole transaction
            record, writes = self._transaction, self._has_written or executed.writes
            if not writes and not await asyncio.to_thread(self._store.has_written, self._session):
                return None
        elif self._status != b"T" or not executed.acts or executed.writes:  # a write is seen only after its COMMIT
            return None
        statements, further = record.summary()
        name = " + ".join(dict.fromkeys(execution.statement.name for execution in statements))
        return self._door.context.call(
            self._store.name,
            "database",
            whole_text(name[:MAX_CALL_NAME_CHARS]),
            [*(record_of(execution, self._door.hide) for execution in statements), *further],
            reads=None if record.writes or (executed.ends and self._status == b"T") else True,
            wire_id=str(self._session),
            door_state={"ends": executed.ends},
        )

    async def _run_call(self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage], executed: StatementRecord) -> bool:
        """Ask the gate about a call, then execute, hold or refuse it. Return whether the connection remains open."""
        self._door.held_answers.end_repeated(call)
        action = await gate.arrive(call)
        if action == "drop":
            return False
        if action == "answer":
            return await self._send_earlier_answer(gate, call, group)
        if action not in ("pass", "hold"):  # "error"
            return await self._send_error(gate, call)
        if action == "hold" and not await self._hold_call(gate, call, group, executed):
            return False
        answer = await self._exchange(group, executed)
        if not answer.is_complete:
            await gate.note_end(call)
            self._writer.write(answer.raw)
            return False
        record_answer(call, answer)
        raw = answer.raw if answer.is_whole and len(answer.raw) <= MAX_ANSWER_BYTES else b""
        return await self._send_answer(gate, call, answer, await gate.answer(call, raw))

    async def _send_answer(self, gate: CallGate, call: LiveCall, answer: ServerAnswer, action: AnswerAction) -> bool:
        """Send a response, or what replaces it, to the agent. Return whether the connection remains open."""
        if action in ("silence", "late") and not await self._stay_silent(gate, call, action):
            return False
        messages = answer.messages
        if action == "drop":
            return False
        if action == "error":
            self._writer.write(TERMINATION.raw)
            await self._writer.drain()
            return False
        if action in ("stale", "empty", "garbled", "too_large"):
            if (changed := answer.damaged_messages(action, call.replacement or b"")) is None:
                self._notice(f"call {call.number}: its answer has no row that {action} could strike")
            messages = changed or messages
        elif action not in ("give", "silence", "late"):  # "break"
            self._writer.transport.abort()
            return False
        if self._inbox.ended.is_set():
            gate.note_wait_end(call, "disconnected")
            return False
        self._writer.write(b"".join(message.raw for message in messages))
        await self._writer.drain()
        await gate.note_given(call)
        return True

    async def _send_error(self, gate: CallGate, call: LiveCall) -> bool:
        """Refuse a call with a serialization error, after its transaction was rolled back or made to fail. Return True, since
        the connection remains open."""
        call.failed = True
        if self._status == b"T":  # the division by zero makes the transaction fail, and leaves it open
            await self._execute_silently([make_query("ROLLBACK" if call.door_state["ends"] else "SELECT 1 / 0")])
        self._writer.write(REFUSAL.raw + make_message(b"Z", self._status).raw)
        await self._writer.drain()
        await gate.note_given(call)
        return True

    async def _send_earlier_answer(self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage]) -> bool:
        """Send the response of an earlier call, and roll back this call's transaction. Statements that the call prepares are
        still prepared. Return whether the connection remains open."""
        earlier_answer = call.replacement or b""
        if self._status == b"T":
            await self._execute_silently([make_query("ROLLBACK")])
        if prepares := [message for message in group if message.kind in b"PC"]:  # Parse and Close
            await self._execute_silently([*prepares, make_message(_SYNC)])
        answer_kinds = [message.kind for message in MessageReader().messages(earlier_answer)]
        group_kinds = [message.kind for message in group]
        if any(answer_kinds.count(answer) != group_kinds.count(request) for request, answer in _ANSWER_KINDS.items()):
            self._notice(f"call {call.number}: its messages are others than those of the call whose answer it would get")
            return False
        self._writer.write(earlier_answer)
        await self._writer.drain()
        await gate.note_given(call)
        return True

    async def _hold_call(self, gate: CallGate, call: LiveCall, group: Sequence[WireMessage], executed: StatementRecord) -> bool:
        """Keep a call from the server while its agent waits; before a COMMIT the transaction's locks are held meanwhile.
        Return whether the agent waits longer than `patience`."""

        async def deliver() -> bytes:
            """Forward the held call without its client, and return the response."""
            answer = await self._exchange(group, executed)
            if not answer.is_complete:
                raise Undelivered("the server ended the session")
            if not call.finished.is_set():
                record_answer(call, answer)
            return answer.raw

        call.deliver, self.is_held = deliver, True
        watching = asyncio.create_task(self._watch_locks(gate, call))
        try:
            if await self._stay_silent(gate, call, "silence"):
                await gate.note_passed_on(call)
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(call.finished.wait(), 2 * gate.patience)
            return False
        finally:
            self.is_held = False
            watching.cancel()

    async def _watch_locks(self, gate: CallGate, call: LiveCall) -> None:
        """Deliver a held call as soon as another session waits for its locks."""
        has_waiter = False
        while self._status == b"T" and not has_waiter:
            await asyncio.sleep(LOCK_POLL_S)
            has_waiter = await asyncio.to_thread(self._store.blocks_another_session, self._session)
        if has_waiter:
            self._notice(f"call {call.number} is held no longer: another session waits for what it has locked")
            self._door.held_answers.end(call, "waits_longer")
            gate.note_lock_wait(call)

    async def _stay_silent(self, gate: CallGate, call: LiveCall, action: AnswerAction) -> bool:
        """Send nothing until the agent disconnects, cancels, repeats the call, or `patience` ends. Return whether a response
        is sent then."""
        how = await self._door.held_answers.wait(call, self._inbox.ended.wait())
        if how == "waits_longer" or (action == "late" and how != "disconnected"):
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._inbox.ended.wait(), gate.patience)
        self._writer.transport.abort()
        return False
