"""The two connections of a session with PostgreSQL: from the agent to the gateway, and from the gateway to the server, each
with its own TLS.

The agent's connection is encrypted if the agent asks for TLS and the server itself offers TLS; the probe's own authority
signs its certificate. Channel binding is impossible, since TLS ends here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ssl import CERT_NONE, SSLContext, SSLError, create_default_context

from bench.probe.run.witness.store import DatabaseServer
from bench.wire.postgres import (
    GSS_CODE,
    TLS_CODE,
    MalformedMessage,
    MessageReader,
    StartPacket,
    WireMessage,
    encode_start,
    first_texts,
    make_message,
    parse_start,
    start_size,
)

MAX_UNREAD_BYTES = 2**20
"""Bytes of the agent that are read ahead, before a message of them is needed."""
CONNECT_TIMEOUT_S = 30.0
NO_TLS_TEXT = (
    "the agent asked for TLS and left without it: the server itself offers none, or the package `cryptography` is not "
    "installed (extra `probe`); let it take sslmode=prefer"
)
UNTRUSTED_TEXT = (
    "the agent's client broke off TLS ({why}): it does not trust the authority of the probe. In a box this authority stands in "
    "the machine's files of roots, and where the store's address demands a check also in its sslrootcert and in "
    "~/.postgresql/root.crt; let it take one of these, or sslmode=require"
)
NO_BINDING_TEXT = (
    "the agent left as it was asked to log in, as with channel_binding=require: TLS ends at the gateway, so no login is bound "
    "to it; let it take channel_binding=disable (who has no password leaves too)"
)
BINDING_TEXT = (
    "its client wants to know whether the server binds the login to TLS, and TLS ends at the gateway; let it take "
    "channel_binding=disable, or PGCHANNELBINDING=disable"
)
_SASL_OFFER = 10
"""The code of the authentication request in which a server lists its SASL mechanisms."""


async def connect(server: DatabaseServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to a server. The connection is encrypted if `sslmode` demands TLS, or if the server is on another
    machine and offers TLS, unless `sslmode` forbids TLS. Raises OSError."""
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        if server.socket:
            return await asyncio.open_unix_connection(server.socket)
        reader, writer = await asyncio.open_connection(server.address or server.host, server.port)
        if not server.tries_tls:
            return reader, writer
        writer.write(encode_start(StartPacket(TLS_CODE, {})))
        answer = await reader.read(2)  # a second byte was sent without TLS, and must not be read as encrypted data
        if answer == b"N" and not server.demands_tls:
            return reader, writer
        if answer != b"S":
            writer.close()
            raise ConnectionError("the server speaks no TLS, or says more before it")
        try:
            context = create_default_context(cafile=server.roots or None)
            context.check_hostname = server.mode == "verify-full"
            if not (context.check_hostname or server.roots):
                context.verify_mode = CERT_NONE
            await writer.start_tls(context, server_hostname=server.host)
        except OSError:
            writer.close()
            raise
        return reader, writer


async def offers_tls(server: DatabaseServer) -> bool:
    """Return whether a server offers TLS. Raises OSError."""
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(server.address or server.host, server.port)
        try:
            writer.write(encode_start(StartPacket(TLS_CODE, {})))
            return await reader.read(1) == b"S"
        finally:
            writer.close()


async def start_packet(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    context: Callable[[], Awaitable[SSLContext | None]],
    notice: Callable[[str], None],
) -> StartPacket | None:
    """Return the first packet of an agent, which starts a session or cancels a statement; None if the agent disconnects before.

    Args:
        reader: Reads the agent's connection.
        writer: Writes to the agent's connection, which is encrypted if the agent asks for TLS and there is a context.
        context: Returns the TLS context; None if there is none.
        notice: Records why an agent may have disconnected.

    Raises:
        OSError: The connection broke.
        EOFError: The agent disconnected within a packet.
        MalformedMessage: The bytes are no packet of PostgreSQL.
    """
    is_tls_refused = False
    while True:
        try:
            head = await reader.readexactly(4)
        except (EOFError, ConnectionError):
            if is_tls_refused:
                notice(NO_TLS_TEXT)
            return None
        if head[:2] == b"\x16\3":
            raise MalformedMessage("it begins with TLS and does not ask before; let it take sslnegotiation=postgres")
        packet = parse_start(head + await reader.readexactly(start_size(head) - 4))
        if packet.code not in (TLS_CODE, GSS_CODE):
            return packet
        tls_context = await context() if packet.code == TLS_CODE and not writer.get_extra_info("sslcontext") else None
        writer.write(b"S" if tls_context else b"N")
        is_tls_refused = packet.code == TLS_CODE and not tls_context
        if not tls_context:
            continue  # the agent may go on without TLS
        try:
            await writer.start_tls(tls_context)
        except (SSLError, ConnectionError) as error:
            notice(UNTRUSTED_TEXT.format(why=getattr(error, "reason", None) or "it closed the connection"))
            return None


class Inbox:
    """The messages of an agent. They are read ahead, so that a closed connection is noticed even if no message is awaited.

    Args:
        reader: Reads the agent's connection.
        end_event: Set when the connection is closed.
    """

    def __init__(self, reader: asyncio.StreamReader, end_event: asyncio.Event):
        self._reader, self._end_event, self.messages = reader, end_event, MessageReader()
        self._has_data, self._has_room = asyncio.Event(), asyncio.Event()
        self.ended, self._reads_to_end = asyncio.Event(), False
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Read messages until the connection is closed, and pause while more than `MAX_UNREAD_BYTES` wait for `next`."""
        try:
            while data := await self._reader.read(2**16):
                self.messages.feed(data)
                self._has_data.set()
                if self.messages.size > MAX_UNREAD_BYTES and not self._reads_to_end:
                    self._has_room.clear()
                    await self._has_room.wait()
        except OSError:
            pass
        finally:
            self.ended.set()
            self._end_event.set()
            self._has_data.set()

    def read_to_end(self) -> None:
        """Read to the end of an aborted connection without further pauses, even if nobody calls `next`."""
        self._reads_to_end = True
        self._has_room.set()

    async def next(self) -> WireMessage | None:
        """Return the next message; None at the end. Raises MalformedMessage."""
        while (message := self.messages.take()) is None:
            if self.ended.is_set():
                return None
            self._has_data.clear()
            self._has_room.set()
            await self._has_data.wait()
        return message


class Login:
    """Watches an agent's login, and removes channel binding from the server's offer.

    waits  whether the server has requested a login by SCRAM, and the agent has not answered yet
    """

    def __init__(self) -> None:
        self.waits, self._binds = False, False

    def without_binding(self, message: WireMessage) -> WireMessage:
        """Return a server's offer of SASL mechanisms without those that bind to TLS; any other message unchanged."""
        if message.kind != b"R" or int.from_bytes(message.body[:4]) != _SASL_OFFER:
            return message
        offer = [mechanism for mechanism in message.body[4:].split(b"\0") if mechanism]
        allowed = [mechanism for mechanism in offer if not mechanism.endswith(b"-PLUS")]
        self.waits, self._binds = True, allowed != offer
        if not self._binds:
            return message
        return make_message(b"R", message.body[:4] + b"".join(mechanism + b"\0" for mechanism in allowed) + b"\0")

    def refuses(self, message: WireMessage) -> bool:
        """Return whether the server will refuse this login: its client says that the server supports no channel binding,
        though the server does. Raises MalformedMessage."""
        is_first_answer, self.waits = self.waits, False
        if not (is_first_answer and self._binds):
            return False
        # after the name with its zero byte come 4 bytes of length; then "y" says: "I could bind, but the server cannot"
        mechanism = first_texts(message, 1)[0]
        return message.body[len(mechanism) + 5 :][:1] == b"y"
