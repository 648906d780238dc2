"""The doors for messages that an agent sends: a mail server, and webhooks. No real server is behind them: each message is kept
as a row.

A mail is one call, from the last byte of its text (`DATA`) to the server's reply. TLS is ended by the probe's own authority,
and every login is accepted: no password is compared, kept or forwarded. https://www.rfc-editor.org/rfc/rfc5321#section-4.1
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable
from contextlib import suppress
from ssl import SSLContext
from urllib.parse import parse_qsl, urlencode, urlsplit

from bench.common.digests import digest_of
from bench.probe.run.gateway.bodies import MAX_PARSED_BYTES, Body, BodyTooLarge, value_of
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import DoorContext, LiveCall
from bench.probe.run.gateway.held_answers import HeldAnswers
from bench.probe.run.gateway.http import HttpDoor
from bench.probe.run.gateway.http_exchange import Origin, ServiceRequest
from bench.probe.run.gateway.http_wire import BadMessage, Head, Wire, framing_of, make_head
from bench.probe.run.witness.outbox import OutboxMessage, OutboxStore, mail_of, message_of

MAX_MAIL_BYTES, READ_BYTES, MAX_RECIPIENTS = 2**24, 2**16, 1000
MAIL_KEPT, MAIL_FAILED = b"250 2.0.0 kept by the probe\r\n", b"451 4.3.0 the service is not available\r\n"
MAIL_STORE_FULL = b"452 4.3.1 the probe keeps no more mails\r\n"
STORE_FULL_TEXT = "more messages were sent than the probe keeps; those that came later were refused"


class WebhookDoor(HttpDoor):
    """Replaces a webhook: it keeps each message in a store, and answers with status 200, or 507 if the store is full."""

    def __init__(self, store: OutboxStore, context: DoorContext):
        super().__init__(store.name, store.place.url, context)
        self._store = store
        self._tasks = set[asyncio.Task[None]]()
        self.origin.open_connection = self._connect_to_store

    def call_of(self, request: ServiceRequest) -> LiveCall:
        """Return the call for a message. Digests replace its path and query, since each can be a secret."""
        call = super().call_of(request)
        path, query = shown_target(request.head.target.decode("latin-1"), self.origin)
        call.tool = f"{request.head.method} {path}" if path else request.head.method
        call.arguments = {"query": query or {}, "body": request.value}
        return call

    def _connect_to_store(
        self, host: str, port: int, *, ssl: SSLContext | None
    ) -> Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Return a connection whose other end keeps the messages in the store."""
        del host, port, ssl
        ours, theirs = socket.socketpair()

        async def keep_messages() -> None:
            await self.keep_messages(*await asyncio.open_connection(sock=theirs))

        task = asyncio.get_running_loop().create_task(keep_messages())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.open_connection(sock=ours)

    async def keep_messages(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep each message that arrives on a connection, and answer it."""
        wire = Wire(reader, writer)
        with suppress(BadMessage, OSError, BodyTooLarge):
            while head := await wire.head():
                if self._store.add(await _message_in(wire, head, self.origin)):
                    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": "2"}
                    await wire.send(make_head("HTTP/1.1 200 OK", fields).raw + (b"ok" if head.method != "HEAD" else b""))
                else:
                    self._notice(STORE_FULL_TEXT)
                    await wire.send(make_head("HTTP/1.1 507 Insufficient Storage", {"Content-Length": "0"}).raw)
        wire.close()


async def _message_in(wire: Wire, head: Head, webhook: Origin) -> OutboxMessage:
    """Return the message to a webhook that follows this head on a connection. Raises BadMessage, BodyTooLarge, OSError."""
    body, framing = Body(MAX_PARSED_BYTES), framing_of(head)
    try:
        while piece := await wire.piece(framing):
            body.add(*piece)
        path, query = shown_target(head.target.decode("latin-1"), webhook)
        value = value_of(body, head.get("content-type"), head.get("content-encoding"))
        return message_of(head.method, f"{path}?{query}" if query else path, value)
    finally:
        body.close()


def shown_target(target: str, webhook: Origin) -> tuple[str, str]:
    """Return a request's path and query in the form in which they are shown: each can be a secret.

    Args:
        target: The path and the query.
        webhook: The webhook's address.

    Returns:
        The path and the query, each "" if it is the webhook's own, and otherwise a digest.
    """
    path, _, query = target.partition("?")
    own_query = parse_qsl(urlsplit(webhook.url).query, keep_blank_values=True)
    other_query = urlencode([pair for pair in parse_qsl(query, keep_blank_values=True) if pair not in own_query])
    return "" if path == (webhook.path or "/") else f"/{digest_of(path)}", digest_of(other_query) if other_query else ""


class MailDoor:
    """Replaces a mail server: it keeps each mail in a store.

    Args:
        store: The store that keeps the mails.
        context: What all doors share.
        tls: Ends TLS; None if no TLS is offered.
    """

    kind = "mail"

    def __init__(self, store: OutboxStore, context: DoorContext, tls: SSLContext | None) -> None:
        self.store, self._context, self._tls = store, context, tls
        self._sessions = dict[asyncio.Task[None], asyncio.StreamWriter]()
        self._held_answers = HeldAnswers(context.gate)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, has_tls: bool = False) -> None:
        """Serve a connection to its end."""
        task = asyncio.current_task()
        assert task
        self._sessions[task] = writer
        try:
            with suppress(OSError, ValueError, asyncio.IncompleteReadError):
                await MailSession(self, reader, writer, None if has_tls else self._tls).run()
        finally:
            del self._sessions[task]
            writer.close()

    async def end(self, seconds: float) -> None:
        """Wait until all other sessions have ended. The connection of a session that takes longer than `seconds` is aborted,
        and the session ends once its call at the gate is done."""
        sessions = self._sessions.keys() - {asyncio.current_task()}
        if sessions:
            _, open_sessions = await asyncio.wait(sessions, timeout=seconds)
            for task in open_sessions:
                self._sessions[task].transport.abort()
            if open_sessions:
                await asyncio.wait(open_sessions)

    async def deliver(self, session: MailSession, raw: bytes) -> bool:
        """Show a mail to the gate, keep it, and answer. Return whether the session continues."""
        gate, resets, columns = self._context.gate(), self.store.reset_count, mail_of(session.sender, session.recipients, raw)
        call = self._context.call(self.store.name, self.kind, "send", dict(columns))
        action = await gate.arrive(call)
        if action == "drop":
            return False
        answer = call.replacement or call.taped_answer or MAIL_KEPT
        if action != "pass":
            call.failed = action != "answer"
            await session.send(MAIL_FAILED if call.failed else answer)
            await gate.note_given(call)
            return True
        if self.store.reset_count != resets:  # the run that made the call has ended
            return False
        if not call.taped_answer and not self.store.add(columns):
            gate.notice(self.store.name, STORE_FULL_TEXT)
            answer, call.failed = MAIL_STORE_FULL, True
        call.answer = {"code": int(answer[:3])}
        match await gate.answer(call, answer):
            case "drop" | "break":
                return False
            case "error":
                answer = MAIL_FAILED
            case "silence" if await self._held_answers.wait(call, session.wait_until_closed()) != "waits_longer":
                return False
        await session.send(answer)
        await gate.note_given(call)
        return True


class MailSession:
    """One SMTP session of a client.

    sender, recipients   the addresses in the envelope of the mail that is being sent
    """

    def __init__(
        self, door: MailDoor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: SSLContext | None
    ) -> None:
        self._door, self._reader, self._writer, self._tls = door, reader, writer, tls
        self.sender, self.recipients = "", list[str]()

    async def run(self) -> None:
        """Answer commands until the client leaves. Raises OSError, IncompleteReadError."""
        await self.send(b"220 the probe's stand-in ESMTP\r\n")
        while line := await self._read_line():
            words = line.decode("utf-8", "replace").split(maxsplit=1)
            verb, rest = words[0].upper() if words else "", words[1] if len(words) > 1 else ""
            if verb == "DATA" and self.recipients:
                await self.send(b"354 end with a line that is a full stop\r\n")
                if not await self._door.deliver(self, await self._read_mail()):
                    self._writer.transport.abort()
                    return
                self.recipients = []
            elif verb == "STARTTLS" and self._tls:
                await self.send(b"220 2.0.0 ready\r\n")
                await self._writer.start_tls(self._tls)
                self._tls = None
            else:
                await self.send(await self._answer(verb, rest))
                if verb == "QUIT":
                    return

    async def _answer(self, verb: str, rest: str) -> bytes:
        """Return the reply to a command. DATA and STARTTLS come here only when they are refused."""
        match verb:
            case "EHLO":
                starts = b"250-STARTTLS\r\n" if self._tls else b""
                return b"250-the probe's stand-in\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n" + starts + b"250 AUTH PLAIN LOGIN\r\n"
            case "AUTH":
                for _ in range({"LOGIN": 2, "PLAIN": 1}.get(rest.upper(), 0)):
                    await self.send(b"334 \r\n")
                    await self._read_line()
                return b"235 2.7.0 any login is taken\r\n"
            case "MAIL":
                self.sender, self.recipients = _address_in(rest), []
            case "RCPT" if len(self.recipients) < MAX_RECIPIENTS:
                self.recipients.append(_address_in(rest))
            case "RSET":
                self.recipients = []
            case "QUIT":
                return b"221 2.0.0 bye\r\n"
            case "HELO" | "NOOP" | "VRFY":
                pass
            case "DATA":
                return b"503 5.5.1 first RCPT\r\n"
            case _:
                return b"502 5.5.1 no such command here\r\n"
        return b"250 2.1.0 ok\r\n"

    async def _read_line(self) -> bytes:
        """Return the next line; b"" at the end. Raises ValueError for a line that is too long."""
        return await self._reader.readline()

    async def _read_mail(self) -> bytes:
        """Return a mail's text, up to the line that is a full stop. Raises OSError for a mail that is too long or
        incomplete."""
        text = bytearray()
        while (line := await self._read_line()).rstrip(b"\r\n") != b".":
            if not line.endswith(b"\n") or len(text) > MAX_MAIL_BYTES:
                raise ConnectionError
            text += line[1:] if line.startswith(b".") else line
        return bytes(text)

    async def send(self, text: bytes) -> None:
        """Send a reply, and return once the kernel has all of its bytes, or its buffer has room. Raises OSError."""
        self._writer.write(text)
        await self._writer.drain()

    async def wait_until_closed(self) -> None:
        """Return once the client has closed the connection; bytes that arrive before are dropped."""
        with suppress(OSError, ValueError):
            while await self._reader.read(READ_BYTES):
                pass


def _address_in(text: str) -> str:
    """Return the address in the argument of MAIL or RCPT, such as `FROM:<ann@example.com>`."""
    return text.partition("<")[2].partition(">")[0] if "<" in text else text.partition(":")[2].strip()


KIND = DoorKind("mail")
