"""A proxy before an HTTP service. It relays the bytes that it received, and strikes a call when the gate says so.

What the service gets is what the agent sent, but for `Host`, an upgrade of the connection, and the first part of the path,
which holds the token. What the agent gets is what the service sent, but for a `Location` that names the service: it names
the gateway, or the agent would go around it. Of a call whose answer will be struck `Accept-Encoding` is left out as well.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from ssl import create_default_context
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import JsonValue

from bench.common.errors import ConfigError
from bench.probe.points import AnswerFate, CallFate
from bench.probe.run.gateway.bodies import IN_MEMORY, LARGEST_PARSED, Body, BodyTooLarge, fields_of, json_of, value_of
from bench.probe.run.gateway.damaged import empty, enlarge, garble
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, Desk, HeldAnswers, LiveCall, Undelivered
from bench.probe.run.gateway.http_wire import BadMessage, Head, Wire, chunk, framing_of, head_of, made_head
from bench.probe.run.gateway.server_sent import events_of

STREAMS = frozenset({"text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json"})
"""Types of content whose pieces are passed on as they come."""
SECONDS_TO_CONNECT = 30.0
UPGRADES = ("upgrade", "http2-settings")
CONTENT = ("content-length", "content-encoding", "transfer-encoding", "trailer", "etag", "content-md5", "digest", "repr-digest")
"""Fields that are true of the content as it was."""
READS = {"GET": True, "HEAD": True, "OPTIONS": True, "PUT": False, "PATCH": False, "DELETE": False}
Done = TypeVar("Done")


Reach = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""(host, port, ssl=...) -> a connection with a server."""


class ClientGone(Exception):
    """The agent closed its connection before it had its answer."""


class Broken(Exception):
    """The server could not be reached, or its answer was not complete. The text gives the reason."""


class Origin:
    """The address at which a server listens.

    place    its host and port, as `Host` names them
    target   its path and query: with them begins what the agent asks for
    login    the name and password before its host, with their `@`, or ""
    tls      how its certificate is verified; None without TLS
    """

    def __init__(self, url: str, name: str):
        try:
            parts = urlsplit(url)
            self.host, port = parts.hostname or "", parts.port
        except ValueError:
            self.host, port, parts = "", None, urlsplit("")
        if parts.scheme not in ("http", "https") or not self.host:
            raise ConfigError(
                f"{name}: its address is no http:// or https:// address; write one, such as http://127.0.0.1:8000"
            )
        self.login, _, self.place = f"@{parts.netloc}".rpartition("@")
        self.login = f"{self.login[1:]}@" if self.login[1:] else ""
        self.target = parts.path + (f"?{parts.query}" if parts.query else "")
        self.path = parts.path
        self.tls = create_default_context() if parts.scheme == "https" else None
        self.port = port or (443 if self.tls else 80)
        self.root, self.url = f"{parts.scheme}://{self.place}", url
        self.reach: Reach = asyncio.open_connection
        """Connects to the server. It can be in another network."""

    async def connect(self) -> Wire:
        """Raises Broken."""
        try:
            async with asyncio.timeout(SECONDS_TO_CONNECT):
                return Wire(*await self.reach(self.host, self.port, ssl=self.tls))
        except (OSError, TimeoutError) as error:
            raise Broken(f"cannot be reached: {type(error).__name__}") from None


class AgentWire(Wire):
    """A connection from the agent, with the connections that were opened for it. They end with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        super().__init__(reader, writer)
        self.upstream = dict[Origin, Wire]()
        self._gone: asyncio.Task[None] | None = None

    async def unless_gone(self, work: Coroutine[Any, Any, Done]) -> Done:
        """Return the result of `work`. If the agent closes the connection first, cancel `work` and raise ClientGone. From the
        first of these calls until `unwatch`, nothing else reads from the connection. Do not ask the gate inside `work`, since
        the gate's actions must not be cancelled."""
        self._gone = self._gone or asyncio.ensure_future(self.gone())
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait({working, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise ClientGone
        finally:
            await _end(working)

    def beside(self, taped: bytes) -> Wire:
        """Return a wire that delivers an answer from a tape."""
        reader = asyncio.StreamReader()
        reader.feed_data(taped)
        reader.feed_eof()
        return Wire(reader, self._writer)

    async def unwatch(self) -> None:
        if self._gone:
            await _end(self._gone)
            self._gone = None

    def close(self) -> None:
        for wire in self.upstream.values():
            wire.close()
        super().close()


class LeftWire(AgentWire):
    """Stands for the connection of an agent that has left it: a held call is delivered all the same."""

    def __init__(self) -> None:
        self.upstream = dict[Origin, Wire]()

    async def unless_gone(self, work: Coroutine[Any, Any, Done]) -> Done:
        return await work


async def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@dataclass(frozen=True, eq=False)
class ServiceRequest:
    """A request from the agent. `head` is the head that the server gets. `taped` is the answer if a tape has it."""

    client: AgentWire
    head: Head
    body: Body
    taped: bytes = b""

    @property
    def path(self) -> str:
        return self.head.target.partition(b"?")[0].decode("latin-1")

    @property
    def query(self) -> str:
        return self.head.target.partition(b"?")[2].decode("latin-1")

    @property
    def value(self) -> JsonValue:
        """The content of the body."""
        return value_of(self.body, self.head.get("content-type"), self.head.get("content-encoding"))


class Incoming:
    """An answer from a server while it arrives, as long as the agent waits for it."""

    def __init__(self, wire: Wire, head: Head, request: ServiceRequest):
        self._wire, self.head, self._client = wire, head, request.client
        self.framing = framing_of(head, request.head.method)

    @property
    def kind(self) -> str:
        return self.head.get("content-type").partition(";")[0].strip().lower()

    async def pieces(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the body's bytes on the wire, and the data that they carry. Raises Broken, ClientGone."""
        while not self.framing.is_whole and (piece := await self._client.unless_gone(self._piece())):
            yield piece

    async def _piece(self) -> tuple[bytes, bytes] | None:
        try:
            return await self._wire.piece(self.framing)
        except (BadMessage, OSError) as error:
            raise Broken(f"its answer broke off: {error}") from None

    async def whole(self, body: Body) -> ServiceAnswer:
        """Return the answer once it is whole. Raises Broken and ClientGone; what came until then is in `body`."""
        await self._client.unless_gone(self._put_into(body))
        return ServiceAnswer(self.head, body, self.head.stays and not self.framing.ends_with_connection)

    async def _put_into(self, body: Body) -> None:
        while piece := await self._piece():
            body.add(*piece)


@dataclass(frozen=True, eq=False)
class ServiceAnswer:
    """A complete answer. `stays` says whether the connection stays open after it."""

    head: Head
    body: Body
    stays: bool

    @property
    def value(self) -> JsonValue:
        return value_of(self.body, self.head.get("content-type"), self.head.get("content-encoding"))

    @property
    def plain(self) -> bytes | None:
        """The unpacked content; None if it cannot be unpacked."""
        return self.body.plain(self.head.get("content-encoding"))

    @property
    def is_stream(self) -> bool:
        return self.head.get("content-type").partition(";")[0].strip().lower() in STREAMS

    @property
    def raw(self) -> bytes:
        """The answer with its head; b"" if it is too long."""
        return self.head.raw + b"".join(self.body.pieces()) if self.body.size <= IN_MEMORY else b""

    def with_content(self, content: bytes) -> bytes:
        """Return the bytes of this answer with different content."""
        return self.head.without(*CONTENT).having({"content-length": str(len(content))}).raw + content


class HttpDoor:
    """A proxy before one service. `root` is the gateway's address for the service, and `prefix` is the path in this address."""

    kind = "http"
    longest = LARGEST_PARSED

    def __init__(self, name: str, url: str, desk: Desk):
        self.name, self._desk = name, desk
        self.origin = Origin(url, name)
        self._silent = HeldAnswers(desk.gate)
        self.root, self.prefix = "", ""
        self.places = [(self.origin.host, self.origin.port, self.origin.tls is not None)]
        """The hosts and ports at which the agent finds it in a box, and whether with TLS."""

    def listens(self, root: str, prefix: str) -> str:
        """Store the address at which the gateway listens, and return the address for the agent."""
        self.root, self.prefix = root, prefix
        scheme, _, place = root.partition("://")
        return f"{scheme}://{self.origin.login}{place}{prefix}{self.origin.target}"

    def stands_in(self) -> str:
        """Have the agent find this door at the server's own address, and return that."""
        self.root, self.prefix = self.origin.root, ""
        return self.origin.url

    def _target(self, asked: bytes) -> bytes:
        """Return the path that the server is asked for: the path at the gateway without the prefix of this proxy."""
        return asked if asked.startswith(b"/") else b"/" + asked

    async def serve(self, client: AgentWire, head: Head) -> bool:
        """Answer one request. Return whether the connection stays open. Raises BadMessage, ConnectionError."""
        framing = framing_of(head)
        if head.get("expect").lower() == "100-continue" and not framing.is_whole:
            await client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = Body(self.longest)
        try:
            while piece := await client.piece(framing):
                body.add(*piece)
            method, asked, version = head.first.split(b" ", 2)
            target = self._target(asked[len(self.prefix) :])
            passed_on = replace(head, first=b" ".join([method, target, version])).without(*UPGRADES)
            if any(head.values(name) for name in UPGRADES):
                self._notice("the agent asked for another protocol on its connection; it was not passed on")
            request = ServiceRequest(client, passed_on.having({"host": self.origin.place}), body)
            return await self._serve(request) and head.stays
        except Broken as broken:
            self._notice(str(broken))
        except BodyTooLarge:
            self._notice("a message is longer than any that is kept")
        except OSError as error:
            if isinstance(error, ConnectionError):
                raise
            self._notice(f"a message cannot be kept: {error.strerror}")
        except ClientGone:
            return False
        finally:
            body.close()
            await client.unwatch()
        client.reset()
        return False

    @property
    def _gate(self) -> CallGate:
        return self._desk.gate()

    def _notice(self, what: str) -> None:
        self._gate.notice(self.name, what)

    def call_of(self, request: ServiceRequest) -> LiveCall:
        """Return the call that a request is: its tool, its arguments, and whether it reads. A kind of door for a protocol over
        HTTP names its calls here."""
        method = request.head.method
        arguments: JsonValue = {"query": fields_of(request.query), "body": request.value}
        return self._desk.call(
            self.name,
            self.kind,
            f"{method} {request.path}",
            arguments,
            reads=READS.get(method),
            idempotent=method in ("PUT", "DELETE"),
            key=request.head.get("idempotency-key"),
        )

    async def _serve(self, request: ServiceRequest) -> bool:
        gate, call = self._gate, self.call_of(request)
        self._silent.end_repeated(call)
        before = await gate.arrive(call)
        if before == "drop":
            return _hang_up(request)
        if before not in ("pass", "twice", "again", "hold"):
            return await self._give(gate, call, request, call.instead or self._refusal(call, before))
        body = Body(self.longest)
        try:
            if before in ("again", "hold"):
                call.deliver = self._late(call, request)
            if before == "hold" and not await self._hold(gate, call, request):
                return False
            return await self._relay(gate, call, replace(request, taped=call.taped), before, body)
        except (ClientGone, Broken, BodyTooLarge, OSError) as error:
            await leave(gate, call, isinstance(error, ClientGone))
            raise
        finally:
            body.close()

    def _late(self, call: LiveCall, request: ServiceRequest) -> Callable[[], Awaitable[bytes]]:
        """Return what delivers a call without its client."""
        pieces = list(request.body.pieces())  # the body is closed when the agent leaves

        async def deliver() -> bytes:
            sent = Body(self.longest)
            for piece in pieces:
                sent.add(piece, b"")
            async with self._delivered_late(replace(request, body=sent)) as (incoming, body):
                answer = await incoming.whole(body)
                if not call.over.is_set():
                    self._read(call, request, answer)
                return answer.raw

        return deliver

    @asynccontextmanager
    async def _delivered_late(self, request: ServiceRequest) -> AsyncIterator[tuple[Incoming, Body]]:
        """Pass a request on without its client, and close its body. Opens with its answer. Raises Undelivered."""
        body = Body(self.longest)
        try:
            async with self._passed_on(replace(request, client=LeftWire()), True) as incoming:
                yield incoming, body
        except (Broken, BodyTooLarge, OSError) as error:
            raise Undelivered(str(error)) from None
        finally:
            body.close()
            request.body.close()

    async def _hold(self, gate: CallGate, call: LiveCall, request: ServiceRequest) -> bool:
        """Keep a call from the service while its agent waits. Return whether the agent waits longer than `patience`."""
        if not await self._wait(call, request, "silence"):
            return False
        await gate.passes(call)
        return True

    async def _relay(self, gate: CallGate, call: LiveCall, request: ServiceRequest, before: CallFate, body: Body) -> bool:
        """Pass a call on, and pass its answer back."""
        async with self._passed_on(request, call.struck) as incoming:
            if incoming.kind in STREAMS and not call.struck:
                return await self._pass_stream(gate, call, request, incoming, body)
            try:
                answer = await incoming.whole(body)
            except Broken:
                await self._send(request, incoming.head, body)
                raise
        if before == "twice":
            await self._ask_again(request, call)
        self._read(call, request, answer)
        call.kept["answered"] = True
        after = await gate.answer(call, answer.raw)
        if after in ("silence", "late") and not await self._wait(call, request, after):
            return False
        if after in ("break", "half"):
            return await self._break_off(call, request, answer, after)
        if after == "drop":
            return _hang_up(request)
        if after not in ("give", "silence", "late") and (changed := self._damage(after, call, request, answer)) is not None:
            return await self._give(gate, call, request, changed)
        await self._send(request, answer.head, answer.body)
        await gate.note_given(call)
        return answer.stays

    @asynccontextmanager
    async def _passed_on(self, request: ServiceRequest, struck: bool) -> AsyncIterator[Incoming]:
        """Pass a request on. Opens with its answer, whose head has come; the connection is kept if the answer was read to its
        end. Raises Broken."""
        client, origin = request.client, self.origin
        if request.taped:
            taped = client.beside(request.taped)
            yield Incoming(taped, await self._answer_head(taped, request, struck), request)
            return
        wire = client.upstream.pop(origin, None)
        if wire is None or not wire.is_open:
            wire = await client.unless_gone(origin.connect())
        sending = asyncio.ensure_future(self._pass_request(wire, request, struck))
        stays = False
        try:
            incoming = Incoming(wire, await client.unless_gone(self._answer_head(wire, request, struck)), request)
            yield incoming
            stays = sending.done() and incoming.framing.is_whole and incoming.head.stays and request.head.stays
            stays = stays and not isinstance(client, LeftWire)
        finally:
            sending.cancel()
            if stays and not incoming.framing.ends_with_connection:
                client.upstream[origin] = wire
            else:
                wire.close()

    async def _pass_request(self, wire: Wire, request: ServiceRequest, struck: bool) -> None:
        head = request.head.without("accept-encoding") if struck else request.head
        pieces = request.body.pieces()
        with suppress(ConnectionError):  # it can have answered before, and what it said is read
            await wire.send(head.raw + next(pieces, b""))
            for piece in pieces:
                await wire.send(piece)

    async def _answer_head(self, wire: Wire, request: ServiceRequest, struck: bool) -> Head:
        while True:
            try:
                head = await wire.head()
            except (BadMessage, OSError) as error:
                raise Broken(f"its answer is none: {error}") from None
            if head is None:
                raise Broken("it closed the connection without an answer")
            if head.status == 101:
                raise Broken("it changed the protocol unasked")
            if head.status >= 200:
                return head
            if head.status != 100 and not struck:
                await request.client.send(head.raw)

    async def _ask_again(self, request: ServiceRequest, call: LiveCall) -> None:
        """Send the request a second time and drop the answer."""
        body = Body()
        try:
            async with self._passed_on(request, call.struck) as incoming:
                await incoming.whole(body)
        except Broken as broken:
            self._notice(f"the second of two equal requests failed: {broken}")
        finally:
            body.close()

    async def _pass_stream(
        self, gate: CallGate, call: LiveCall, request: ServiceRequest, incoming: Incoming, body: Body
    ) -> bool:
        """Pass a stream on as it comes. `answer` is awaited before its last piece, or before the event that ends it."""
        client = request.client
        await client.send(self._given_head(incoming.head).raw)
        answer = ServiceAnswer(incoming.head, body, incoming.head.stays and not incoming.framing.ends_with_connection)
        async for raw, data in incoming.pieces():
            body.add(b"", data)
            if "answered" not in call.kept and (incoming.framing.is_whole or self._is_end(call, body, data)):
                self._read(call, request, answer)
                if not await self._lets_end(gate, call, answer):
                    return _hang_up(request)
            await client.send(raw)
            if "answered" in call.kept and "given" not in call.kept:
                call.kept["given"] = True
                await gate.note_given(call)
        if "answered" not in call.kept:
            self._read(call, request, answer)
            if not await self._lets_end(gate, call, answer):
                return _hang_up(request)
            await gate.note_given(call)
        return answer.stays

    async def _lets_end(self, gate: CallGate, call: LiveCall, answer: ServiceAnswer) -> bool:
        call.kept["answered"] = True
        plain = answer.plain if answer.body.length <= IN_MEMORY else None
        return await gate.answer(call, answer.with_content(plain) if plain else b"") != "drop"

    def _is_end(self, call: LiveCall, body: Body, data: bytes) -> bool:
        """Return whether the last bytes of a stream hold the event that ends its answer."""
        del call, body, data
        return False

    def _read(self, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer) -> None:
        """Record how the call was answered."""
        del request
        call.answer = {"status": answer.head.status, "body": answer.value}
        call.failed = answer.head.status >= 400

    async def _wait(self, call: LiveCall, request: ServiceRequest, after: AnswerFate) -> bool:
        """Be silent until the agent disconnects (which ends this), asks again, cancels, or `patience` ends. Return whether the
        answer is given then."""
        if await request.client.unless_gone(self._silent.wait(call)) == "waits_longer" or after == "late":
            return True
        with suppress(TimeoutError):
            await request.client.unless_gone(asyncio.wait_for(asyncio.Event().wait(), self._gate.patience))
        return _hang_up(request)

    def _refusal(self, call: LiveCall, before: CallFate) -> bytes:
        """Return the answer to a call that is not passed on."""
        del before
        body = b"" if call.tool.startswith("HEAD ") else json.dumps({"error": "Service Unavailable"}).encode()
        fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return made_head("HTTP/1.1 503 Service Unavailable", fields).raw + body

    async def _break_off(self, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer, after: AnswerFate) -> bool:
        """Break the connection: before the answer, and in a stream before its first event, or after half of the answer."""
        plain = answer.plain or b""
        if answer.is_stream and (after == "half" or not call.form):
            events = events_of(plain) if after == "half" else []
            head = self._given_head(answer.head).without(*CONTENT).having({"transfer-encoding": "chunked"})
            await request.client.send(head.raw + chunk(b"".join(events[: len(events) // 2])))
            return _hang_up(request)
        if after == "half":
            await request.client.send(answer.with_content(plain)[: -(len(plain) // 2) or None])
            return _hang_up(request)
        request.client.reset()
        return False

    def _damage(self, after: AnswerFate, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer) -> bytes | None:
        """Return the bytes that replace an answer; None if the answer has nothing to change."""
        if after == "stale" and call.instead:
            return call.instead
        if after == "error":
            return made_head("HTTP/1.1 504 Gateway Timeout", {"Content-Length": "0"}).raw
        if request.head.method == "HEAD" or not answer.body.length or (plain := answer.plain) is None:
            self._notice(f"call {call.number}: its answer has no content that {after} could strike")
            return None
        value = json_of(plain)
        match after:
            case "empty":
                return answer.with_content(b"" if value is None else as_json(empty(value)))
            case "too_large":
                return answer.with_content(plain * (1 + 2**21 // len(plain)) if value is None else as_json(enlarge(value)))
            case _:
                return answer.with_content(garble(plain))

    async def _give(self, gate: CallGate, call: LiveCall, request: ServiceRequest, raw: bytes) -> bool:
        """Send these bytes to the agent as the answer."""
        head = head_of(raw[: raw.index(b"\r\n\r\n") + 4])
        await request.client.send(raw)
        await gate.note_given(call)
        return head.stays and not framing_of(head, request.head.method).ends_with_connection

    def _given_head(self, head: Head) -> Head:
        """Return the head for the agent. A `Location` that points to the service is changed to the gateway's address."""
        if not (place := head.get("location")):
            return head
        here = place.removeprefix(self.origin.root)
        if not here.startswith("/") or here.startswith("//"):
            return head
        return head.having({"location": f"{self.root}{self.prefix}{here}" if here != place else f"{self.prefix}{here}"})

    async def _send(self, request: ServiceRequest, head: Head, body: Body) -> None:
        pieces = body.pieces()
        await request.client.send(self._given_head(head).raw + next(pieces, b""))
        for piece in pieces:
            await request.client.send(piece)


async def leave(gate: CallGate, call: LiveCall, has_left: bool) -> None:
    """Tell the gate that a call ends here, unless it was given."""
    if has_left and call.kept.keys().isdisjoint(("went", "given")):
        gate.went(call, "disconnected")
    if "answered" not in call.kept:
        await gate.note_end(call)


def _hang_up(request: ServiceRequest) -> bool:
    request.client.close()
    return False


def as_json(value: JsonValue) -> bytes:
    """Return a value as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode()


KIND = DoorKind("http", can=frozenset(("hold", "twice")), opens=HttpDoor)
