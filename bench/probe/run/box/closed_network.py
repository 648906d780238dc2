"""Serves a network of the box: the doors of the gateway answer at the declared addresses, and the addresses that processes
tried to reach are recorded.

A process in the network reaches the gateway at each declared host and port, as if the gateway were the server. The kernel
refuses every other connection at once, as a machine does where no program listens. Only the doors query a real resolver, or
send to a real server.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from ssl import SSLContext, SSLError
from time import monotonic
from typing import Self

from bench.common.errors import ConfigError
from bench.probe.run.box.authority import offer_in
from bench.probe.run.box.box import Box
from bench.probe.run.box.inside import NetworkName
from bench.probe.run.box.loopback import SocketPlace
from bench.probe.run.box.names import LOOPBACK, MAX_NAMES, NameTable, has_failed, is_name
from bench.probe.run.box.refusals import refused_address

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]
"""A function that serves one connection."""
DNS_PORT = 53
PROXY_VARIABLES = frozenset(("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy"))
"""Variables that send a client to a proxy."""
MAX_PACKET_BYTES, READ_BYTES = 256, 2**16
"""The most bytes of a packet that are examined, and the most bytes that are forwarded at a time."""
MAX_QUERY_BYTES, OUTGOING_PACKET = 4096, 4
"""The most bytes of a DNS query, and the kernel's type of a packet that was sent (PACKET_OUTGOING)."""
MAX_REACHED_PLACES, MAX_READS_PER_TURN, MAX_OPEN_CONNECTIONS = 1000, 1024, 256
"""The most places that are recorded, the most packets or connections that are read or accepted before other tasks run, and the
most connections that are open in a network."""
TLS_PORT, TLS_HANDSHAKE = 443, b"\x16"
NO_MORE_FILES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
"""The kernel's errors if a process can open no more files."""
ACCEPT_PAUSE_S = 1.0
"""Seconds until connections are accepted again."""
TOO_MANY_CONNECTIONS = f"{MAX_OPEN_CONNECTIONS} connections are open at a time, and no more are taken"
TOO_MANY_NAMES = f"it asked for more than {MAX_NAMES:,} names, and no more are answered"
UNREADABLE_HELLO = "its first message of TLS cannot be read as a whole, so nobody can tell for which host it asks"
NOT_FOR_REAL = frozenset((TOO_MANY_CONNECTIONS, TOO_MANY_NAMES, UNREADABLE_HELLO))
"""The reasons for refusals that would also happen if the server were declared as real."""
UNTRUSTED_CERTIFICATE = "its client trusts fixed certificates alone: a pin, or roots that are compiled in"
CONNECT_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class ReachedPlace:
    """An address in a network that a process tried to reach.

    name     the host name that was resolved; the address if no name was resolved
    address  the IP address
    port     of TCP or UDP
    kind     the protocol, if it is known: "http", "tls", "tcp"; "" if the connection was refused
    why      why the connection was refused; "" if no server is declared there
    """

    name: str
    address: str
    port: int
    kind: str = ""
    why: str = ""

    @property
    def place(self) -> str:
        """The host and the port as `HOST:PORT`."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


class ClosedNetwork:
    """Serves a network of the box while its context lasts.

    reached  the addresses that processes tried to reach since the last `forget_reached`, each with the time of the monotonic
             clock
    """

    def __init__(self, box: Box, side: NetworkName, names: NameTable, waits_for: Iterable[int] = ()):
        """Prepare the network.

        Args:
            box: The open box.
            side: Which of the box's two networks is served.
            names: The host names and their addresses, which both networks share.
            waits_for: Ports at which the probe starts servers: a refusal there before the server listens is not recorded.
        """
        self._box, self._side, self._names, self._waits_for = box, side, names, frozenset(waits_for)
        self._exits = AsyncExitStack()
        self._served = set[tuple[str, int]]()
        self._open_sockets = list[socket.socket]()
        self._relays = set[asyncio.Task[None]]()
        self.reached = dict[ReachedPlace, float]()

    async def __aenter__(self) -> Self:
        self._exits.push_async_callback(self._end_relays)
        packets, questions = self._sockets(("refusals", "", 0), ("datagrams", "0.0.0.0", DNS_PORT))
        self._packets = packets
        for opened, read in ((packets, self.read_refusals), (questions, lambda: self._answer(questions))):
            opened.setblocking(False)
            self._exits.callback(opened.close)
            asyncio.get_running_loop().add_reader(opened, read)
            self._exits.callback(asyncio.get_running_loop().remove_reader, opened)
        await self._listen("0.0.0.0", DNS_PORT, self._answer_stream)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    def forget_reached(self) -> None:
        """Forget which addresses were reached, and close the connections to real servers."""
        for relay in self._relays:
            relay.cancel()
        self.read_refusals()
        self.reached.clear()

    def serves(self, host: str, port: int) -> bool:
        """Return whether a door or a relay answers at a host and port."""
        return (self.addresses_of(host)[0], port) in self._served

    async def serve_at(
        self, host: str, port: int, serve: Serve, kind: str = "tcp", limit: int = READ_BYTES, tls: SSLContext | None = None
    ) -> None:
        """Serve connections to this host and port, after a TLS handshake if there is a context. Raises ConfigError.

        Args:
            host: A host name or an IP address.
            port: A TCP port.
            serve: Serves a connection.
            kind: The protocol, for the record.
            limit: The buffer limit of a reader.
            tls: The TLS context; None without TLS.
        """

        def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
            """Record the address that a process reached, and serve the connection."""
            self._record(ReachedPlace(host, str(writer.get_extra_info("sockname")[0]), port, kind))
            return serve(reader, writer)

        for address in self.addresses_of(host):
            try:
                if tls:
                    self._listen_to_tls(host, address, port, answer, tls)
                else:
                    await self._listen(address, port, answer, limit)
            except ConfigError:
                if address != "::1":  # there can be no IPv6
                    raise
            self._served.add((address, port))

    async def relay(self, host: str, port: int, to: tuple[str, int] | None = None) -> None:
        """Forward all bytes of connections to this host and port to the real server, and back, until `forget_reached`.

        A connection whose TLS requests another host is refused, since many hosts can share one address.

        Args:
            host: A host name, or an IP address at which any host may be requested.
            port: A TCP port.
            to: The address of the real server, if it is not this host and port.

        Raises:
            ConfigError: No program can listen there.
        """

        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Start a task that relays a new connection."""

            def end(relay: asyncio.Task[None]) -> None:
                """Close the client's connection when its relay has ended; abort it if the relay was cancelled."""
                self._relays.discard(relay)
                if relay.cancelled():
                    writer.transport.abort()
                else:
                    writer.close()

            place = ReachedPlace(host, str(writer.get_extra_info("sockname")[0]), port)
            relay = asyncio.get_running_loop().create_task(self._relay(place, reader, writer, *(to or (host, port))))
            self._relays.add(relay)
            relay.add_done_callback(end)

        await self.serve_at(host, port, serve)

    async def _relay(
        self, place: ReachedPlace, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        """Forward bytes between a client's connection and the real server at `host` and `port`, until both directions have
        ended. An error of the network ends it quietly."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                server_reader, server_writer = await asyncio.open_connection(host, port)
            directions = [
                asyncio.ensure_future(direction)
                for direction in (self._send_to_server(place, reader, server_writer), _forward(server_reader, writer))
            ]
            try:
                await asyncio.gather(*directions)
            except asyncio.CancelledError:
                server_writer.transport.abort()
                raise
            finally:
                for task in directions:
                    task.cancel()
                await asyncio.gather(*directions, return_exceptions=True)
                server_writer.close()

    async def _send_to_server(self, place: ReachedPlace, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward what a client sends to a real server. Raises ConnectionRefusedError if its TLS requests another host."""
        first = await reader.read(READ_BYTES)
        if first[:1] == TLS_HANDSHAKE and (place.port == TLS_PORT or first[1:2] in (b"", b"\3")):
            # read on until the first record is whole: 5 bytes of header, of which the last two hold the length, and the content
            while len(first) < 5 + int.from_bytes(first[3:5]) and (data := await reader.read(READ_BYTES)):
                first += data
            if refused := _other_host(place, first[: 5 + int.from_bytes(first[3:5])]):
                self._record(refused)
                raise ConnectionRefusedError
        writer.write(first)
        await _forward(reader, writer)

    async def _end_relays(self) -> None:
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def connect(
        self, host: str, port: int, *, ssl: SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to a server in this network. Raises OSError."""
        connected = await asyncio.to_thread(self._box.connect, self._side, host, port, CONNECT_TIMEOUT_S)
        return await asyncio.open_connection(sock=connected, ssl=ssl, server_hostname=host if ssl else None)

    def read_refusals(self) -> None:
        """Record the connections that the kernel has refused until now."""
        with suppress(BlockingIOError):
            for _ in range(MAX_READS_PER_TURN):
                packet, (_, _, packet_type, *_) = self._packets.recvfrom(MAX_PACKET_BYTES)
                if packet_type != OUTGOING_PACKET and (refused := refused_address(packet)):
                    address, port = refused
                    is_expected = address in (LOOPBACK, "::1") and port in self._waits_for
                    if not is_expected:
                        self._record(ReachedPlace(self._names.name_of(address) or address, address, port))

    def _record(self, place: ReachedPlace) -> None:
        """Record an address that a process tried to reach, within a bound."""
        if len(self.reached) < MAX_REACHED_PLACES:
            self.reached.setdefault(place, monotonic())

    def addresses_of(self, host: str) -> tuple[str, ...]:
        """Return the IP addresses of a host in this network."""
        try:
            address = ip_address(host.strip("[]"))
        except ValueError:
            name_address = self._names.address_of(host)
            return (name_address, "::1") if name_address == LOOPBACK else (name_address,)
        return (LOOPBACK, "::1") if address.is_unspecified or str(address) in (LOOPBACK, "::1") else (str(address),)

    def _sockets(self, *places: SocketPlace) -> list[socket.socket]:
        return self._box.sockets(self._side, places)

    async def _listen(self, address: str, port: int, serve: Serve, limit: int = READ_BYTES) -> None:
        """Serve connections to an address and port, within the bound on open connections. Raises ConfigError."""

        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
            """Serve a new connection, or abort it if too many are open."""
            place = ReachedPlace(self._names.name_of(address) or address, address, port)
            if self._accepts_connection(writer.get_extra_info("socket"), place):
                return serve(reader, writer)
            writer.transport.abort()
            return None

        [listening] = self._sockets(("listener", address, port))
        server = await asyncio.start_server(take, sock=listening, limit=limit)
        self._exits.callback(server.close)

    def _accepts_connection(self, opened: socket.socket, place: ReachedPlace) -> bool:
        """Return whether a connection is served, and count it as open. Beyond `MAX_OPEN_CONNECTIONS` it is refused, and
        recorded."""
        self._open_sockets = [connection for connection in self._open_sockets if connection.fileno() >= 0]
        if len(self._open_sockets) >= MAX_OPEN_CONNECTIONS:
            self._record(replace(place, why=TOO_MANY_CONNECTIONS))
            return False
        self._open_sockets.append(opened)
        return True

    def _listen_to_tls(self, host: str, address: str, port: int, serve: Serve, tls: SSLContext) -> None:
        """Serve TLS connections to an address and port, within the bound on open connections. This does not use asyncio's
        server, which cannot read the ClientHello first. Raises ConfigError."""
        [listening] = self._sockets(("listener", address, port))
        loop, handshakes = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        place, paused = ReachedPlace(host, address, port), list[asyncio.TimerHandle]()

        def accept() -> None:
            """Accept the connections that wait, and begin their handshakes. If no more files can be opened, pause."""
            try:
                for _ in range(MAX_READS_PER_TURN):
                    accepted = listening.accept()[0]
                    if not self._accepts_connection(accepted, place):
                        accepted.close()
                        continue
                    handshake = loop.create_task(self._handshake(accepted, place, serve, tls))
                    handshakes.add(handshake)
                    handshake.add_done_callback(handshakes.discard)
            except OSError as error:
                if error.errno in NO_MORE_FILES:  # the listener stays readable; otherwise nobody waits any more
                    loop.remove_reader(listening)
                    paused[:] = [loop.call_later(ACCEPT_PAUSE_S, loop.add_reader, listening, accept)]

        async def end() -> None:
            """Close the listener, and cancel the pause and the handshakes."""
            for pause in paused:
                pause.cancel()
            loop.remove_reader(listening)
            listening.close()
            for handshake in handshakes:
                handshake.cancel()
            await asyncio.gather(*handshakes, return_exceptions=True)

        listening.setblocking(False)
        loop.add_reader(listening, accept)
        self._exits.push_async_callback(end)

    async def _handshake(self, accepted: socket.socket, place: ReachedPlace, serve: Serve, tls: SSLContext) -> None:
        """Do the TLS handshake and serve the connection, or record why this client cannot be served."""
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(READ_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            accepted.setblocking(False)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                hello = await _first_bytes(accepted)
                if (offer := offer_in(hello)) and offer[1] and "http/1.1" not in offer[1]:
                    self._record(replace(place, why=f"its client speaks {' and '.join(offer[1])} alone, as gRPC does"))
                    accepted.close()
                    return
                transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=tls)
        except SSLError as error:
            accepted.close()
            why = UNTRUSTED_CERTIFICATE if hello and offer else f"what it said is no TLS ({error.reason})"
            self._record(replace(place, why=why))
        except (OSError, TimeoutError):
            accepted.close()
        else:
            served = serve(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
            if served:
                await served

    def _answer(self, questions: socket.socket) -> None:
        """Answer the DNS queries that have arrived. Each answer comes from the address to which the query was sent."""
        with suppress(OSError):
            for _ in range(MAX_READS_PER_TURN):
                query, metadata, _, client = questions.recvmsg(MAX_QUERY_BYTES, socket.CMSG_SPACE(12))
                # in_pktinfo: the interface (0 for any), the source of the answer, and the address to which the query was sent
                source_address = [(level, kind, b"\0\0\0\0" + data[8:12] + data[8:12]) for level, kind, data in metadata]
                if answer := self._resolve(query):
                    questions.sendmsg([answer], source_address, 0, client)

    async def _answer_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer DNS queries on a TCP connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while answer := self._resolve(await reader.readexactly(int.from_bytes(await reader.readexactly(2)))):
                writer.write(len(answer).to_bytes(2) + answer)
                await writer.drain()
        writer.close()

    def _resolve(self, query: bytes) -> bytes:
        """Return the response to a DNS query."""
        answer = self._names.answer(query)
        if has_failed(answer):
            self._record(ReachedPlace(LOOPBACK, LOOPBACK, DNS_PORT, why=TOO_MANY_NAMES))
        return answer


async def _first_bytes(accepted: socket.socket) -> bytes:
    """Return the first bytes from a client, without consuming them."""
    readable, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(accepted, readable.set)
    try:
        await readable.wait()
        return accepted.recv(READ_BYTES, socket.MSG_PEEK)
    finally:
        loop.remove_reader(accepted)


def _other_host(place: ReachedPlace, hello: bytes) -> ReachedPlace | None:
    """Return the place that a TLS ClientHello requests, with the reason why it is refused; None if it requests this place, or
    if any host may be requested at its address."""
    try:
        ip_address(place.name)
    except ValueError:
        # the lengths of the TLS record, and of the handshake message in it, both end where the bytes end
        is_whole = len(hello) > 9 and len(hello) == 5 + int.from_bytes(hello[3:5]) == 9 + int.from_bytes(hello[6:9])
        if not is_whole or (offer := offer_in(hello)) is None:
            return replace(place, why=UNREADABLE_HELLO)
        requested_host = offer[0].rstrip(".").lower()
        if requested_host in ("", place.name.rstrip(".").lower()):
            return None
        if not is_name(requested_host):
            return replace(place, why=UNREADABLE_HELLO)
        return replace(place, name=requested_host, why=f"its client asked for it at the address of {place.name}")
    return None


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes until the reader ends."""
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def without_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables without those that name a proxy, which a box could not reach."""
    return {name: value for name, value in environment.items() if name.lower() not in PROXY_VARIABLES}
