"""The door of an HTTP service: a proxy that forwards each request and its response, and injects faults as the gate decides.

The service gets the bytes that the agent sent, except for `Host`, headers that upgrade the connection, and the first part of
the path, which holds the door's token. The agent gets the bytes that the service sent, except for a `Location` that names
the service: the gateway's address replaces it, so that the agent does not bypass the gateway. If the response of a call will
be changed, `Accept-Encoding` is removed from its request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from pydantic import JsonValue

from bench.probe.points import AnswerAction, CallAction
from bench.probe.run.gateway.bodies import MAX_MEMORY_BYTES, MAX_PARSED_BYTES, Body, BodyTooLarge, fields_of, json_of
from bench.probe.run.gateway.damaged import LARGE_ANSWER_BYTES, empty_of, enlarge, garble
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, DoorContext, LiveCall, Undelivered
from bench.probe.run.gateway.held_answers import HeldAnswers
from bench.probe.run.gateway.http_exchange import (
    CONTENT_FIELDS,
    STREAM_TYPES,
    AgentWire,
    ClientDisconnected,
    DisconnectedWire,
    IncomingAnswer,
    Origin,
    ServerUnavailable,
    ServiceAnswer,
    ServiceRequest,
)
from bench.probe.run.gateway.http_wire import BadMessage, Head, Wire, chunk, framing_of, head_of, make_head
from bench.probe.run.gateway.server_sent import events_of

UPGRADE_FIELDS = ("upgrade", "http2-settings")
METHOD_READS = {"GET": True, "HEAD": True, "OPTIONS": True, "PUT": False, "PATCH": False, "DELETE": False}


class HttpDoor:
    """A proxy before one service. `root` is the gateway's address without a path, and `prefix` is the path that leads to this
    door."""

    kind = "http"
    max_parsed_bytes = MAX_PARSED_BYTES

    def __init__(self, name: str, url: str, context: DoorContext):
        self.name, self._context = name, context
        self.origin = Origin(url, name)
        self._held_answers = HeldAnswers(context.gate)
        self.root, self.prefix = "", ""
        self.places = [(self.origin.host, self.origin.port, self.origin.tls is not None)]
        """The (host, port, whether with TLS) at which the agent finds the service in a box."""

    def set_address(self, root: str, prefix: str) -> str:
        """Store the address at which the gateway listens, and return the URL that the agent uses."""
        self.root, self.prefix = root, prefix
        scheme, _, place = root.partition("://")
        return f"{scheme}://{self.origin.login}{place}{prefix}{self.origin.target}"

    def use_origin_address(self) -> str:
        """Make the agent reach this door at the server's own address, and return that address."""
        self.root, self.prefix = self.origin.root, ""
        return self.origin.url

    def _target_at_server(self, target: bytes) -> bytes:
        """Return the request target for the server. `target` is the agent's request target without this door's prefix."""
        return target if target.startswith(b"/") else b"/" + target

    async def serve(self, client: AgentWire, head: Head) -> bool:
        """Answer one request. Return whether the connection remains open. Raises BadMessage, ConnectionError."""
        framing = framing_of(head)
        if head.get("expect").lower() == "100-continue" and not framing.is_whole:
            await client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = Body(self.max_parsed_bytes)
        try:
            while piece := await client.piece(framing):
                body.add(*piece)
            method, full_target, version = head.first.split(b" ", 2)
            target = self._target_at_server(full_target[len(self.prefix) :])
            head_for_server = replace(head, first=b" ".join([method, target, version])).without(*UPGRADE_FIELDS)
            if any(head.values(name) for name in UPGRADE_FIELDS):
                self._notice("the agent asked for another protocol on its connection; it was not passed on")
            request = ServiceRequest(client, head_for_server.with_fields({"host": self.origin.place}), body)
            return await self._serve(request) and head.keeps_open
        except ServerUnavailable as failure:
            self._notice(str(failure))
        except BodyTooLarge:
            self._notice("a message is longer than any that is kept")
        except OSError as error:
            if isinstance(error, ConnectionError):
                raise
            self._notice(f"a message cannot be kept: {error.strerror}")
        except ClientDisconnected:
            return False
        finally:
            body.close()
            await client.unwatch()
        client.reset()
        return False

    @property
    def _gate(self) -> CallGate:
        return self._context.gate()

    def _notice(self, message: str) -> None:
        self._gate.notice(self.name, message)

    def call_of(self, request: ServiceRequest) -> LiveCall:
        """Return the call for a request: its tool, its arguments, and whether it only reads. A door for a protocol over HTTP
        overrides this."""
        method = request.head.method
        arguments: JsonValue = {"query": fields_of(request.query), "body": request.value}
        return self._context.call(
            self.name,
            self.kind,
            f"{method} {request.path}",
            arguments,
            reads=METHOD_READS.get(method),
            idempotent=method in ("PUT", "DELETE"),
            key=request.head.get("idempotency-key"),
        )

    async def _serve(self, request: ServiceRequest) -> bool:
        """Ask the gate about a request, then forward it, hold it, or answer it as the gate says. Return whether the
        connection remains open."""
        gate, call = self._gate, self.call_of(request)
        self._held_answers.end_repeated(call)
        action = await gate.arrive(call)
        if action == "drop":
            return _hang_up(request)
        if action not in ("pass", "twice", "again", "hold"):
            return await self._send_bytes(gate, call, request, call.replacement or self._error_answer(call, action))
        body = Body(self.max_parsed_bytes)
        try:
            if action in ("again", "hold"):
                call.deliver = self._late_delivery(call, request)
            if action == "hold" and not await self._hold(gate, call, request):
                return False
            return await self._relay(gate, call, replace(request, taped_answer=call.taped_answer), action, body)
        except (ClientDisconnected, ServerUnavailable, BodyTooLarge, OSError) as error:
            await note_unanswered(gate, call, isinstance(error, ClientDisconnected))
            raise
        finally:
            body.close()

    def _late_delivery(self, call: LiveCall, request: ServiceRequest) -> Callable[[], Awaitable[bytes]]:
        """Return a function that delivers a call after its client has disconnected."""
        pieces = list(request.body.pieces())  # the body is closed when the agent leaves

        async def deliver() -> bytes:
            """Forward a copy of the request, record the response unless the call has one, and return the response's bytes."""
            copied_body = Body(self.max_parsed_bytes)
            for piece in pieces:
                copied_body.add(piece, b"")
            async with self._deliver_without_client(replace(request, body=copied_body)) as (incoming, body):
                answer = await incoming.whole(body)
                if not call.finished.is_set():
                    self._record_answer(call, request, answer)
                return answer.raw

        return deliver

    @asynccontextmanager
    async def _deliver_without_client(self, request: ServiceRequest) -> AsyncIterator[tuple[IncomingAnswer, Body]]:
        """Forward a request whose client has disconnected, give its response to the block, and close its body. Raises
        Undelivered."""
        body = Body(self.max_parsed_bytes)
        try:
            async with self._forward_request(replace(request, client=DisconnectedWire()), True) as incoming:
                yield incoming, body
        except (ServerUnavailable, BodyTooLarge, OSError) as error:
            raise Undelivered(str(error)) from None
        finally:
            body.close()
            request.body.close()

    async def _hold(self, gate: CallGate, call: LiveCall, request: ServiceRequest) -> bool:
        """Keep a call from the service while its client waits. Return whether the client waits longer than `patience`. Then
        note at the gate that the call is forwarded."""
        if not await self._stay_silent(call, request, "silence"):
            return False
        await gate.note_passed_on(call)
        return True

    async def _relay(self, gate: CallGate, call: LiveCall, request: ServiceRequest, action: CallAction, body: Body) -> bool:
        """Forward a call, and send its response, or what replaces it, to the agent. Return whether the connection remains
        open."""
        async with self._forward_request(request, call.is_struck) as incoming:
            if incoming.kind in STREAM_TYPES and not call.is_struck:  # a struck call's stream is read whole
                return await self._relay_stream(gate, call, request, incoming, body)
            try:
                answer = await incoming.whole(body)
            except ServerUnavailable:  # send the agent the part that arrived
                await self._send_answer(request, incoming.head, body)
                raise
        if action == "twice":
            await self._send_twice(request, call)
        self._record_answer(call, request, answer)
        call.door_state["answered"] = True
        answer_action = await gate.answer(call, answer.raw)
        if answer_action in ("silence", "late") and not await self._stay_silent(call, request, answer_action):
            return False
        if answer_action in ("break", "half"):
            return await self._break_off(call, request, answer, answer_action)
        if answer_action == "drop":
            return _hang_up(request)
        if (
            answer_action not in ("give", "silence", "late")
            and (changed := self._damaged_answer(answer_action, call, request, answer)) is not None
        ):
            return await self._send_bytes(gate, call, request, changed)
        await self._send_answer(request, answer.head, answer.body)
        await gate.note_given(call)
        return answer.keeps_open

    @asynccontextmanager
    async def _forward_request(self, request: ServiceRequest, is_struck: bool) -> AsyncIterator[IncomingAnswer]:
        """Forward a request, and give its response to the block once the response's head has arrived. The connection to the
        server is kept for the next request if the response was read to its end. Raises ServerUnavailable."""
        client, origin = request.client, self.origin
        if request.taped_answer:
            taped = client.wire_of_tape(request.taped_answer)
            yield IncomingAnswer(taped, await self._answer_head(taped, request, is_struck), request)
            return
        wire = client.upstream.pop(origin, None)
        if wire is None or not wire.is_open:
            wire = await client.unless_disconnected(origin.connect())
        send_task = asyncio.ensure_future(self._send_to_server(wire, request, is_struck))
        keeps_open = False
        try:
            head = await client.unless_disconnected(self._answer_head(wire, request, is_struck))
            incoming = IncomingAnswer(wire, head, request)
            yield incoming
            is_whole = send_task.done() and incoming.framing.is_whole and not isinstance(client, DisconnectedWire)
            keeps_open = is_whole and head.keeps_open and request.head.keeps_open
        finally:
            send_task.cancel()
            if keeps_open and not incoming.framing.ends_with_connection:
                client.upstream[origin] = wire
            else:
                wire.close()

    async def _send_to_server(self, wire: Wire, request: ServiceRequest, is_struck: bool) -> None:
        """Send a request to the server, without Accept-Encoding if its response will be changed."""
        head = request.head.without("accept-encoding") if is_struck else request.head
        pieces = request.body.pieces()
        with suppress(ConnectionError):  # a server may answer and close early: its answer is then read
            await wire.send(head.raw + next(pieces, b""))
            for piece in pieces:
                await wire.send(piece)

    async def _answer_head(self, wire: Wire, request: ServiceRequest, is_struck: bool) -> Head:
        """Return the head of the final response; heads with status 1xx are forwarded. Raises ServerUnavailable."""
        while True:
            try:
                head = await wire.head()
            except (BadMessage, OSError) as error:
                raise ServerUnavailable(f"its answer is none: {error}") from None
            if head is None:
                raise ServerUnavailable("it closed the connection without an answer")
            if head.status == 101:
                raise ServerUnavailable("it changed the protocol unasked")
            if head.status >= 200:
                return head
            if head.status != 100 and not is_struck:
                await request.client.send(head.raw)

    async def _send_twice(self, request: ServiceRequest, call: LiveCall) -> None:
        """Send the request a second time, and drop the response."""
        body = Body()
        try:
            async with self._forward_request(request, call.is_struck) as incoming:
                await incoming.whole(body)
        except ServerUnavailable as failure:
            self._notice(f"the second of two equal requests failed: {failure}")
        finally:
            body.close()

    async def _relay_stream(
        self, gate: CallGate, call: LiveCall, request: ServiceRequest, incoming: IncomingAnswer, body: Body
    ) -> bool:
        """Forward a streamed response as it arrives. The gate is asked before the last piece, or before the event that ends
        the stream. Return whether the connection remains open."""
        client = request.client
        await client.send(self._head_for_agent(incoming.head).raw)
        answer = ServiceAnswer(incoming.head, body, incoming.head.keeps_open and not incoming.framing.ends_with_connection)
        async for raw, data in incoming.pieces():
            body.add(b"", data)
            if "answered" not in call.door_state and (incoming.framing.is_whole or self._is_end_of_stream(call, body, data)):
                self._record_answer(call, request, answer)
                if not await self._may_end_stream(gate, call, answer):
                    return _hang_up(request)
            await client.send(raw)
            if "answered" in call.door_state and "given" not in call.door_state:
                call.door_state["given"] = True
                await gate.note_given(call)
        if "answered" not in call.door_state:
            self._record_answer(call, request, answer)
            if not await self._may_end_stream(gate, call, answer):
                return _hang_up(request)
            await gate.note_given(call)
        return answer.keeps_open

    async def _may_end_stream(self, gate: CallGate, call: LiveCall, answer: ServiceAnswer) -> bool:
        """Show the gate a streamed response, and return whether its end may be sent."""
        call.door_state["answered"] = True
        plain = answer.plain if answer.body.length <= MAX_MEMORY_BYTES else None
        return await gate.answer(call, answer.with_content(plain) if plain else b"") != "drop"

    def _is_end_of_stream(self, call: LiveCall, body: Body, data: bytes) -> bool:
        """Return whether these bytes hold the event that ends the stream."""
        del call, body, data
        return False

    def _record_answer(self, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer) -> None:
        """Record the response with the call."""
        del request
        call.answer = {"status": answer.head.status, "body": answer.value}
        call.failed = answer.head.status >= 400

    async def _stay_silent(self, call: LiveCall, request: ServiceRequest, action: AnswerAction) -> bool:
        """Send nothing until the agent repeats or cancels the request, or `patience` ends. Return whether the response is sent
        then. Raises ClientDisconnected."""
        if await request.client.unless_disconnected(self._held_answers.wait(call)) == "waits_longer" or action == "late":
            return True
        with suppress(TimeoutError):  # wait for `patience`, since nobody sets the event
            await request.client.unless_disconnected(asyncio.wait_for(asyncio.Event().wait(), self._gate.patience))
        return _hang_up(request)

    def _error_answer(self, call: LiveCall, action: CallAction) -> bytes:
        """Return the response to a call that is not forwarded."""
        del action
        body = b"" if call.tool.startswith("HEAD ") else json.dumps({"error": "Service Unavailable"}).encode()
        fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return make_head("HTTP/1.1 503 Service Unavailable", fields).raw + body

    async def _break_off(self, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer, action: AnswerAction) -> bool:
        """Break the connection: before the response, or after half of it; a stream before its first event, or after half of
        its events. Return False, since the connection is not open."""
        content = answer.plain or b""
        if answer.is_stream and (action == "half" or not call.wire_form):
            events = events_of(content) if action == "half" else []
            head = self._head_for_agent(answer.head).without(*CONTENT_FIELDS).with_fields({"transfer-encoding": "chunked"})
            await request.client.send(head.raw + chunk(b"".join(events[: len(events) // 2])))
            return _hang_up(request)
        if action == "half":
            # without the second half of the content; content of one byte or none is sent whole
            await request.client.send(answer.with_content(content)[: -(len(content) // 2) or None])
            return _hang_up(request)
        request.client.reset()
        return False

    def _damaged_answer(
        self, action: AnswerAction, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer
    ) -> bytes | None:
        """Return the bytes that replace a response; None if the response has no content that could be changed."""
        if action == "stale" and call.replacement:
            return call.replacement
        if action == "error":
            return make_head("HTTP/1.1 504 Gateway Timeout", {"Content-Length": "0"}).raw
        if request.head.method == "HEAD" or not answer.body.length or (content := answer.plain) is None:
            self._notice(f"call {call.number}: its answer has no content that {action} could strike")
            return None
        value = json_of(content)
        match action:
            case "empty":
                return answer.with_content(b"" if value is None else to_json_bytes(empty_of(value)))
            case "too_large":
                repeated = content * (1 + LARGE_ANSWER_BYTES // len(content))
                return answer.with_content(repeated if value is None else to_json_bytes(enlarge(value)))
            case _:
                return answer.with_content(garble(content))

    async def _send_bytes(self, gate: CallGate, call: LiveCall, request: ServiceRequest, raw: bytes) -> bool:
        """Send these bytes to the agent as the response. Return whether the connection remains open."""
        head = head_of(raw[: raw.index(b"\r\n\r\n") + 4])
        await request.client.send(raw)
        await gate.note_given(call)
        return head.keeps_open and not framing_of(head, request.head.method).ends_with_connection

    def _head_for_agent(self, head: Head) -> Head:
        """Return the head for the agent. A `Location` that points to the service is changed to the gateway's address."""
        if not (location := head.get("location")):
            return head
        path = location.removeprefix(self.origin.root)
        if not path.startswith("/") or path.startswith("//"):
            return head  # it points elsewhere
        gateway_root = "" if path == location else self.root  # a location without a host stays without one
        return head.with_fields({"location": f"{gateway_root}{self.prefix}{path}"})

    async def _send_answer(self, request: ServiceRequest, head: Head, body: Body) -> None:
        """Send a response of the server to the agent."""
        pieces = body.pieces()
        await request.client.send(self._head_for_agent(head).raw + next(pieces, b""))
        for piece in pieces:
            await request.client.send(piece)


async def note_unanswered(gate: CallGate, call: LiveCall, has_disconnected: bool) -> None:
    """Tell the gate how a call ended whose client got no complete response."""
    if has_disconnected and call.door_state.keys().isdisjoint(("went", "given")):
        gate.note_wait_end(call, "disconnected")
    if "answered" not in call.door_state:
        await gate.note_end(call)


def _hang_up(request: ServiceRequest) -> bool:
    """Close the agent's connection, and return False, since it is not open."""
    request.client.close()
    return False


def to_json_bytes(value: JsonValue) -> bytes:
    """Return a value as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode()


KIND = DoorKind("http", can=frozenset(("hold", "twice")), opens=HttpDoor)
