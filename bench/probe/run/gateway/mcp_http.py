"""A proxy before an MCP server that speaks Streamable HTTP, with a session or without one (as in the protocol of 2026).

The bytes of requests and answers are relayed as those of any service. Beside them JSON-RPC is read: an answer is known by the
id of its request, whether it comes as JSON, among the events of its own stream, or on a stream that the client resumed with
`Last-Event-ID`. Where a session's call will be struck its events are put into chunks anew.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Literal

from bench.probe.run.gateway.agent_config import SSE
from bench.probe.run.gateway.bodies import Body, BodyTooLarge, Unpacking
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, Desk, LiveCall, Undelivered
from bench.probe.run.gateway.http import (
    Broken,
    ClientGone,
    HttpDoor,
    Incoming,
    ServiceAnswer,
    ServiceRequest,
    leave,
)
from bench.probe.run.gateway.http_wire import LAST_CHUNK, chunk, made_head
from bench.probe.run.gateway.mcp import KnownServer, changed_answer, error_answer, join_messages, second_delivery
from bench.probe.run.gateway.server_sent import EventCutter, data_of, with_data
from bench.wire.json_rpc import LONGEST, RpcMessage, is_batch, key_of, known_key, messages_of, text_of

EVENT_STREAM = "text/event-stream"
MOST_OPEN = 1_000
"""The most requests of all sessions whose answers are awaited, or can be given again on a resumed stream."""
UNAUTHORIZED = 401
LOGIN = (
    "an agent's login for that address does not hold for the gateway's, which the agent sees; write a token for the server "
    "into the `headers` of its entry in the MCP config"
)
ANSWERS = ("error", "stale", "empty", "garbled", "too_large")

Key = tuple[str, str]
"""A session's id, "" without one, and a request's id."""


@dataclass(eq=False)
class _ToolExchange:
    """A POST from the agent, or the stream of a GET. `calls` are the calls in it."""

    gate: CallGate
    request: ServiceRequest
    session: str
    calls: dict[str, LiveCall] = field(default_factory=dict)
    listings: dict[str, RpcMessage] = field(default_factory=dict)


class McpDoor(HttpDoor):
    """Stands before one MCP server."""

    kind = "mcp_http"
    longest = LONGEST

    def __init__(self, name: str, url: str, desk: Desk):
        super().__init__(name, url, desk)
        self._server = KnownServer(name, "mcp_http")
        self._told_login = False
        self._open = dict[Key, LiveCall]()
        """Calls of sessions, from their arrival. Those that were answered can be given again on a resumed stream."""

    async def _serve(self, request: ServiceRequest) -> bool:
        exchange = _ToolExchange(self._gate, request, request.head.get("mcp-session-id"))
        text = self._text(request) if request.head.method == "POST" else b""
        messages = messages_of(text)
        if text and not messages:
            self._notice("the agent sent a body that is no message of MCP; it was passed on as it came")
        left, made = list[RpcMessage](), dict[LiveCall, bytes]()
        for message in messages:
            match await self._arrive(exchange, message, made):
                case "drop":
                    request.client.close()
                    return False
                case "pass":
                    left.append(message)
        if made and not left:
            return await self._answer(exchange, made, join_messages(list(made.values()), is_batch(text)))
        body = Body(LONGEST)
        if made:
            exchange.request = _with_body(request, join_messages([text_of(message.body) for message in left], is_batch(text)))
        try:
            return await self._pass(exchange, body, made)
        except (ClientGone, Broken, BodyTooLarge, OSError) as error:
            for call in exchange.calls.values():
                await leave(exchange.gate, call, isinstance(error, ClientGone))
            raise
        finally:
            body.close()
            exchange.request.body.close()

    async def _arrive(
        self, exchange: _ToolExchange, message: RpcMessage, made: dict[LiveCall, bytes]
    ) -> Literal["pass", "drop", "made"]:
        """Show a message to the gate if it is a call. Answers that the gateway gives itself are added to `made`."""
        call = self._server.call_of(message, self._desk)
        if call is None:
            self._watch(exchange, message)
            return "pass"
        self._silent.end_repeated(call)
        before = await exchange.gate.arrive(call)
        if before in ("again", "hold"):
            call.deliver = self._late_call(exchange, call)
        if before == "drop" or (before == "hold" and not await self._holds_out(exchange, call)):
            return "drop"
        if before in ("pass", "twice", "again", "hold"):
            call.kept["twice"] = before == "twice"
            self._await(exchange, call)
            return "pass"
        call.failed, made[call] = before != "answer", error_answer(call)
        return "made"

    async def _holds_out(self, exchange: _ToolExchange, call: LiveCall) -> bool:
        """Keep a call from the server while its agent waits. Return whether the agent waits longer than `patience`."""
        self._open[exchange.session, call.wire] = call
        try:
            return await self._hold(exchange.gate, call, exchange.request)
        except ClientGone:
            await leave(exchange.gate, call, has_left=True)
            raise

    def _text(self, request: ServiceRequest) -> bytes:
        return request.body.plain(request.head.get("content-encoding")) or b""

    def _await(self, exchange: _ToolExchange, call: LiveCall) -> None:
        exchange.calls[call.wire] = call
        self._open[exchange.session, call.wire] = call
        if len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]

    def _watch(self, exchange: _ToolExchange, message: RpcMessage) -> None:
        """Record a message from the agent that is no call."""
        if message.method == "tools/list":
            exchange.listings[message.key] = message
        if message.method == "notifications/cancelled":
            call = self._open.get((exchange.session, key_of(message.params.get("requestId"))))
            if call:
                self._silent.end(call, "cancelled")

    async def _pass(self, exchange: _ToolExchange, body: Body, made: Mapping[LiveCall, bytes]) -> bool:
        """Pass a request on, and its answer back. `made` are answers that the gateway gives itself."""
        request = exchange.request
        struck = any(call.struck for call in self._calls_awaited(exchange))
        async with self._passed_on(request, struck) as incoming:
            if incoming.head.status == UNAUTHORIZED:
                self._tell_login(incoming.head.get("www-authenticate"))
            if incoming.kind == EVENT_STREAM:
                return await self._pass_events(exchange, incoming, struck, made)
            answer = await incoming.whole(body)
        text, changed = answer.plain or b"", dict[str, bytes]()
        messages, waiting = messages_of(text), dict(exchange.calls)
        for message in messages:
            if message.kind != "answer" or not (call := waiting.pop(known_key(waiting, message.key), None)):
                self._watch_server(exchange, message)
                continue
            raw = text_of(message.body) if len(messages) > 1 else text
            if (stands := await self._decide(exchange, call, message, raw)) is None:
                return False
            if stands != raw:
                changed[message.key] = stands
        for call in waiting.values():
            if not await self._fail(exchange, call, answer):
                return False
        if changed or made:
            bodies = [changed.get(message.key) or text_of(message.body) for message in messages]
            await request.client.send(answer.with_content(join_messages([*bodies, *made.values()], is_batch(text))))
        else:
            await self._send(request, answer.head, answer.body)
        await self._note_given(exchange, *exchange.calls.values(), *made)
        return answer.stays

    def _tell_login(self, asks: str) -> None:
        """Record that the server wants a login, which an agent makes for the server's own address."""
        login = re.search(r'resource_metadata="?([^",\s]{1,500})', asks)
        where = f"asks for a login (OAuth) at {login[1]}" if login else "asks for a key"
        if not self._told_login:
            self._notice(f"it answered 401 and {where}: {LOGIN}")
        self._told_login = True

    def _calls_awaited(self, exchange: _ToolExchange) -> Iterator[LiveCall]:
        """Yield the calls that an answer to this request can hold: a resumed stream, those of its session."""
        yield from exchange.calls.values()
        if exchange.request.head.method == "GET":
            yield from (call for (session, _), call in self._open.items() if session == exchange.session)

    async def _pass_events(
        self, exchange: _ToolExchange, incoming: Incoming, struck: bool, made: Mapping[LiveCall, bytes]
    ) -> bool:
        """Pass the events of a stream on as they arrive. An event that answers a call is shown to the gate first."""
        client, events, head = exchange.request.client, EventCutter(), self._given_head(incoming.head)
        unpacking = Unpacking(head.get("content-encoding"))
        rewrites = (struck or bool(made)) and not unpacking.is_packed
        if rewrites:
            head = head.without("content-length", "transfer-encoding").having({"transfer-encoding": "chunked"})
        await client.send(head.raw)
        for call, answer in made.items():
            await client.send(chunk(with_data(b"event: message\n", answer)))
            await self._note_given(exchange, call)
        async for raw, data in incoming.pieces():
            held = list[LiveCall]()
            for event in events.add(unpacking.add(data)):
                stands, calls = await self._event(exchange, event, rewrites)
                if stands is None:
                    return False
                if rewrites:
                    await client.send(chunk(stands))
                    await self._note_given(exchange, *calls)
                else:
                    held += calls
            if not rewrites:
                await client.send(raw)
                await self._note_given(exchange, *held)
        if rewrites:
            await client.send(chunk(events.rest()) + LAST_CHUNK)
        return incoming.head.stays and (rewrites or not incoming.framing.ends_with_connection)

    async def _event(self, exchange: _ToolExchange, event: bytes, rewrites: bool) -> tuple[bytes | None, list[LiveCall]]:
        """Return what is given for an event, or None if the connection has ended; and the calls that it answers."""
        data, given = data_of(event), list[LiveCall]()
        if exchange.request.head.method == "GET" and event.startswith((b"event: endpoint", b"event:endpoint")):
            self._notice(SSE)
        stands = data
        for message in messages_of(data):
            call = self._call_answered(exchange, message)
            if call is None:
                self._watch_server(exchange, message)
                continue
            given.append(call)
            if "answered" in call.kept:  # it comes once more, on a stream that was resumed
                continue
            decided = await self._decide(exchange, call, message, data, can_change=rewrites)
            if decided is None:
                return None, given
            stands = decided
        return event if stands == data else with_data(event, stands), given

    def _call_answered(self, exchange: _ToolExchange, message: RpcMessage) -> LiveCall | None:
        if message.kind != "answer":
            return None
        if exchange.request.head.method == "GET":
            waiting = [key for session, key in self._open if session == exchange.session]
            return self._open.get((exchange.session, known_key(waiting, message.key)))
        return exchange.calls.get(known_key(exchange.calls, message.key))

    def _watch_server(self, exchange: _ToolExchange, message: RpcMessage) -> None:
        """Record a message from the server that answers no call."""
        if message.kind == "answer" and (listing := exchange.listings.pop(known_key(exchange.listings, message.key), None)):
            for line in self._server.learn(listing, message):
                self._notice(line)
        if message.method == "notifications/tools/list_changed":
            self._notice("it says that its tools have changed")

    async def _decide(
        self, exchange: _ToolExchange, call: LiveCall, message: RpcMessage, raw: bytes, *, can_change: bool = True
    ) -> bytes | None:
        """Show a call's answer to the gate. Return the message for the agent, or None if the connection has ended."""
        if call.kept.get("twice"):
            await self._deliver_again(exchange, call)
        call.kept["answered"] = True
        self._server.answer(call, message)
        after = await exchange.gate.answer(call, raw)
        if after in ANSWERS:
            if can_change:
                return changed_answer(call, message, after)
            self._notice(f"call {call.number}: its answer is packed, so it was given as it came")
        return raw if await self._lets_pass(exchange, call, after) else None

    async def _lets_pass(self, exchange: _ToolExchange, call: LiveCall, after: str) -> bool:
        """Do what is done to a connection. Return whether the answer is given."""
        if after in ("silence", "late"):
            return await self._wait(call, exchange.request, "late" if after == "late" else "silence")
        if after in ("break", "half", "cut_off"):
            exchange.request.client.reset()
        elif after == "drop":
            exchange.request.client.close()
        return after not in ("break", "half", "cut_off", "drop")

    async def _fail(self, exchange: _ToolExchange, call: LiveCall, answer: ServiceAnswer) -> bool:
        """Handle an HTTP answer that contains no answer to a call. Return whether it is given to the agent."""
        call.answer, call.failed = {"status": answer.head.status, "body": answer.value}, True
        call.kept["answered"] = True
        return await self._lets_pass(exchange, call, await exchange.gate.answer(call, b""))

    async def _note_given(self, exchange: _ToolExchange, *calls: LiveCall) -> None:
        for call in calls:
            call.kept["given"] = True
            await exchange.gate.note_given(call)

    async def _answer(self, exchange: _ToolExchange, made: Mapping[LiveCall, bytes], text: bytes) -> bool:
        """Answer calls if none of them is passed on."""
        fields = {"Content-Type": "application/json", "Content-Length": str(len(text))}
        await exchange.request.client.send(made_head("HTTP/1.1 200 OK", fields).raw + text)
        await self._note_given(exchange, *made)
        return True

    async def _deliver_again(self, exchange: _ToolExchange, call: LiveCall) -> None:
        """Deliver a call a second time, and drop the answer."""
        call.kept["twice"] = False
        try:
            await asyncio.wait_for(self._late_call(exchange, call)(), exchange.gate.patience)
        except (Undelivered, TimeoutError):
            self._notice(f"it did not answer the second delivery of call {call.number}")

    def _late_call(self, exchange: _ToolExchange, call: LiveCall) -> Callable[[], Awaitable[bytes]]:
        """Return what delivers a call without its client, under another id."""

        async def deliver() -> bytes:
            token = f"again-{token_hex(8)}"
            request = _with_body(exchange.request, second_delivery(call, token))
            async with self._delivered_late(request) as (incoming, body):
                async for message in self._messages(incoming, body):
                    if message.kind == "answer" and message.key == key_of(token):
                        break
                else:
                    raise Undelivered("its answer is none")
            if not call.over.is_set():
                self._server.answer(call, message)
            return text_of({**message.body, "id": call.kept["request"].body["id"]})

        return deliver

    async def _messages(self, incoming: Incoming, body: Body) -> AsyncIterator[RpcMessage]:
        """Yield the messages of an answer as they come."""
        if incoming.kind != EVENT_STREAM:
            for message in messages_of((await incoming.whole(body)).plain or b""):
                yield message
            return
        events = EventCutter()
        async for _, data in incoming.pieces():
            for event in events.add(data):
                for message in messages_of(data_of(event)):
                    yield message


def _with_body(request: ServiceRequest, text: bytes) -> ServiceRequest:
    """Return the request with another body. The caller closes that body."""
    body = Body(LONGEST)
    body.add(text, text)
    head = request.head.without("content-encoding", "transfer-encoding", "content-length")
    return replace(request, head=head.having({"content-length": str(len(text))}), body=body)


KIND = DoorKind("mcp_http", can=frozenset(("hold", "twice", "mcp_error")))
