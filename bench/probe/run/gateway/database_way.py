"""The two ways of a session with PostgreSQL: the agent's to the gateway and the gateway's to the server, each with its TLS.

The agent's way is encrypted where the agent asks for that and the server itself would do so, by the authority of the probe. No
channel binding passes, since TLS ends here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ssl import CERT_NONE, SSLContext, SSLError, create_default_context

from bench.probe.run.witness.store import DatabaseServer
from bench.wire.postgres import (
    GSS,
    TLS,
    MalformedMessage,
    MessageReader,
    StartPacket,
    WireMessage,
    made,
    made_start,
    start_of,
    start_size,
    texts_of,
)

AHEAD = 2**20
"""Bytes that an agent sends before it is asked for them."""
SECONDS_TO_CONNECT = 30.0
NO_TLS = (
    "the agent asked for TLS and left without it: the server itself offers none, or the package `cryptography` is not "
    "installed (extra `probe`); let it take sslmode=prefer"
)
UNTRUSTED = (
    "the agent's client broke off TLS ({why}): it does not trust the authority of the probe. In a box this authority stands in "
    "the machine's files of roots, and where the store's address demands a check also in its sslrootcert and in "
    "~/.postgresql/root.crt; let it take one of these, or sslmode=require"
)
NO_BINDING = (
    "the agent left as it was asked to log in, as with channel_binding=require: TLS ends at the gateway, so no login is bound "
    "to it; let it take channel_binding=disable (who has no password leaves too)"
)
BINDING = (
    "its client wants to know whether the server binds the login to TLS, and TLS ends at the gateway; let it take "
    "channel_binding=disable, or PGCHANNELBINDING=disable"
)
_OFFER = 10
"""The message in which a server offers ways to log in."""


async def connect(server: DatabaseServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection with a server, which is encrypted where `sslmode` demands it, and where a server that is not on this
    machine can do so, unless `sslmode` forbids it. Raises OSError."""
    async with asyncio.timeout(SECONDS_TO_CONNECT):
        if server.socket:
            return await asyncio.open_unix_connection(server.socket)
        reader, writer = await asyncio.open_connection(server.address or server.host, server.port)
        if not server.tries_tls:
            return reader, writer
        writer.write(made_start(StartPacket(TLS, {})))
        answer = await reader.read(2)  # bytes behind the answer came in the clear, and must not pass for encrypted ones
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
    """Return whether a server would encrypt a session. Raises OSError."""
    async with asyncio.timeout(SECONDS_TO_CONNECT):
        reader, writer = await asyncio.open_connection(server.address or server.host, server.port)
        try:
            writer.write(made_start(StartPacket(TLS, {})))
            return await reader.read(1) == b"S"
        finally:
            writer.close()


async def start_packet(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    context: Callable[[], Awaitable[SSLContext | None]],
    notice: Callable[[str], None],
) -> StartPacket | None:
    """Return what an agent says as it starts, or asks to be cancelled; None if it wants no session.

    Args:
        reader: Of its connection.
        writer: Of its connection, which is encrypted if the agent asks for that and there is a context.
        context: Returns what ends TLS; None if nothing does.
        notice: Tells why an agent may have left.

    Raises:
        OSError: The connection broke.
        EOFError: The agent left within a packet.
        MalformedMessage: What it says is no packet of PostgreSQL's.
    """
    asked_in_vain = False
    while True:
        try:
            head = await reader.readexactly(4)
        except (EOFError, ConnectionError):
            if asked_in_vain:
                notice(NO_TLS)
            return None
        if head[:2] == b"\x16\3":
            raise MalformedMessage("it begins with TLS and does not ask before; let it take sslnegotiation=postgres")
        packet = start_of(head + await reader.readexactly(start_size(head) - 4))
        if packet.code not in (TLS, GSS):
            return packet
        tls = await context() if packet.code == TLS and not writer.get_extra_info("sslcontext") else None
        writer.write(b"S" if tls else b"N")
        asked_in_vain = packet.code == TLS and not tls
        if not tls:
            continue
        try:
            await writer.start_tls(tls)
        except (SSLError, ConnectionError) as error:
            notice(UNTRUSTED.format(why=getattr(error, "reason", None) or "it closed the connection"))
            return None


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


class Login:
    """Watches how an agent logs in, where no channel binding can pass.

    waits  whether the server has asked for a login by SCRAM, and the agent has said nothing yet
    """

    def __init__(self) -> None:
        self.waits, self._binds = False, False

    def without_binding(self, message: WireMessage) -> WireMessage:
        """Return a server's offer of ways to log in without those that bind to TLS; another message as it is."""
        if message.kind != b"R" or int.from_bytes(message.body[:4]) != _OFFER:
            return message
        offer = [way for way in message.body[4:].split(b"\0") if way]
        ways = [way for way in offer if not way.endswith(b"-PLUS")]
        self.waits, self._binds = True, ways != offer
        return made(b"R", message.body[:4] + b"".join(way + b"\0" for way in ways) + b"\0") if self._binds else message

    def refuses(self, message: WireMessage) -> bool:
        """Return whether the server will refuse what an agent says to log in, as it thinks that the server binds nothing to
        TLS. Raises MalformedMessage."""
        first, self.waits = self.waits, False
        if not (first and self._binds):
            return False
        way = texts_of(message, 1)[0]
        return message.body[len(way) + 5 :][:1] == b"y"
