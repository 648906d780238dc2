"""The way from an agent to the copy of a database: the agent finds the copy where it finds its owner's database.

A session begins with a message that names the database. The relay reads this message alone, puts the copy's name into it, and
passes all else on as it comes. https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from contextlib import suppress

from bench.probe.run.witness.store import DatabaseServer

VERSION, CANCEL, TLS, GSS = 3, 80877102, 80877103, 80877104
"""The protocol's version, and the codes that stand in its place where a connection begins with another message."""
LARGEST = 10_000
"""Bytes of a first message, as PostgreSQL itself bounds it."""
AT_A_TIME = 2**16
"""Bytes that are passed on at a time."""


class DatabaseRelay:
    """Leads sessions with a server to the copies of its databases, and to nothing else on it.

    Args:
        server: Where the server listens.
        copies: The names of the owner's databases -> the names of their copies.
    """

    def __init__(self, server: DatabaseServer, copies: Mapping[str, str]) -> None:
        self.server = server
        self._copies = {name.encode(): copy.encode() for name, copy in copies.items()}
        self._copies |= {copy: copy for copy in list(self._copies.values())}

    async def serve(self, agent: asyncio.StreamReader, to_agent: asyncio.StreamWriter) -> None:
        """Relay a session of the agent's from its beginning to its end."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                if first := await self._first_message(agent, to_agent):
                    await self._relay(first, agent, to_agent)
        finally:
            to_agent.close()

    async def _first_message(self, agent: asyncio.StreamReader, to_agent: asyncio.StreamWriter) -> bytes:
        """Return the message with which a session begins at the server, or b"" after a refusal."""
        while True:
            size, code = struct.unpack("!II", head := await agent.readexactly(8))
            if not 8 <= size <= LARGEST:
                return b""
            body = await agent.readexactly(size - 8)
            if code not in (TLS, GSS):
                break
            to_agent.write(b"N")  # the way is on this machine, and not encrypted
        if code == CANCEL:
            return head + body
        if code >> 16 == VERSION and (first := self._leading(body)):
            return struct.pack("!II", len(first) + 8, code) + first
        name = _database(_values(body)).decode(errors="replace")
        to_agent.write(_refusal(f'database "{name}" is not in the box of the probe; name it as a store'))
        await to_agent.drain()
        return b""

    def _leading(self, body: bytes) -> bytes:
        """Return what follows the version in a first message, with the copy's name; b"" if no copy is meant."""
        values = _values(body)
        copy = self._copies.get(_database(values))
        if copy is None or b"replication" in values:
            return b""
        return b"".join(b"%s\0%s\0" % item for item in {**values, b"database": copy}.items()) + b"\0"

    async def _relay(self, first: bytes, agent: asyncio.StreamReader, to_agent: asyncio.StreamWriter) -> None:
        server, to_server = await self._connected()
        try:
            to_server.write(first)
            ways = [asyncio.ensure_future(_pass_on(*way)) for way in ((agent, to_server), (server, to_agent))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            to_server.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if path := self.server.socket:
            return await asyncio.open_unix_connection(path)
        return await asyncio.open_connection(self.server.host, self.server.port)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while some := await reader.read(AT_A_TIME):
        writer.write(some)
        await writer.drain()


def _values(body: bytes) -> dict[bytes, bytes]:
    words = body.split(b"\0")
    return {name: value for name, value in zip(words[::2], words[1::2], strict=False) if name}


def _database(values: Mapping[bytes, bytes]) -> bytes:
    return values.get(b"database") or values.get(b"user", b"")


def _refusal(line: str) -> bytes:
    """Return the error with which a server refuses a session, since it has no such database."""
    fields = (b"SFATAL", b"VFATAL", b"C3D000", b"M" + line.encode(), b"")
    text = b"".join(b"%s\0" % field for field in fields)
    return b"E" + struct.pack("!I", len(text) + 4) + text
