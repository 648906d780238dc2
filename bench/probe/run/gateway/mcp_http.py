"""The door of an MCP server that speaks Streamable HTTP, with a session or without one (as in the protocol of 2026).

Requests and responses are forwarded as for any HTTP service. The JSON-RPC in them is also parsed: a response is matched by
the id of its request, whether it comes as JSON, among the events of its own stream, or on a stream that the client resumed
with `Last-Event-ID`. If a call of a session will be changed, its events are sent in new chunks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Literal

from bench.probe.run.gateway.agent_config import SSE_ADVICE
from bench.probe.run.gateway.bodies import Body, BodyTooLarge, ContentDecoder
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, DoorContext, LiveCall, Undelivered
from bench.probe.run.gateway.http import HttpDoor, note_unanswered
from bench.probe.run.gateway.http_exchange import (
    ClientDisconnected,
    IncomingAnswer,
    ServerUnavailable,
    ServiceAnswer,
    ServiceRequest,
)
from bench.probe.run.gateway.http_wire import LAST_CHUNK, chunk, make_head
from bench.probe.run.gateway.mcp import KnownServer, changed_answer, error_answer, join_messages, second_delivery
from bench.probe.run.gateway.server_sent import EventSplitter, data_of, with_data
from bench.wire.json_rpc import MAX_MESSAGE_BYTES, RpcMessage, is_batch, key_of, messages_of, text_of, waiting_key

EVENT_STREAM = "text/event-stream"
MAX_SESSION_CALLS = 1_000
"""The most calls of all sessions whose responses are awaited, or can be sent again on a resumed stream."""
UNAUTHORIZED = 401
LOGIN_ADVICE = (
    "an agent's login for that address does not hold for the gateway's, which the agent sees; write a token for the server "
    "into the `headers` of its entry in the MCP config"
)
CHANGING_ACTIONS = ("error", "stale", "empty", "garbled", "too_large")

Key = tuple[str, str]
"""A session's id, "" without one, and a request's id."""


@dataclass(eq=False)
class _ToolExchange:
    """A request of the agent, with what its response can answer: a POST, or a GET that opens a stream.

    session   the id of its session; "" without one
    calls     its calls, by their ids
    listings  its requests for the server's tools, by their ids
    """

    gate: CallGate
    request: ServiceRequest
    session: str
    calls: dict[str, LiveCall] = field(default_factory=dict)
    listings: dict[str, RpcMessage] = field(default_factory=dict)


class McpDoor(HttpDoor):
    """A proxy before one MCP server."""

    kind = "mcp_http"
    max_parsed_bytes = MAX_MESSAGE_BYTES

    def __init__(self, name: str, url: str, context: DoorContext):
        super().__init__(name, url, context)
        self._server = KnownServer(name, "mcp_http")
        self._has_noted_login = False
        self._session_calls = dict[Key, LiveCall]()
        """Calls of sessions, also calls that were answered: their responses can be sent again on a resumed stream."""

    async def _serve(self, request: ServiceRequest) -> bool:
        """Ask the gate about each call in a request, then forward the request. Return whether the connection remains open."""
        exchange = _ToolExchange(self._gate, request, request.head.get("mcp-session-id"))
        text = self._text(request) if request.head.method == "POST" else b""
        messages = messages_of(text)
        if text and not messages:
            self._notice("the agent sent a body that is no message of MCP; it was passed on as it came")
        forwarded, own_answers = list[RpcMessage](), dict[LiveCall, bytes]()
        for message in messages:
            match await self._arrive(exchange, message, own_answers):
                case "drop":
                    request.client.close()
                    return False
                case "pass":
                    forwarded.append(message)
        if own_answers and not forwarded:
            return await self._answer_all(exchange, own_answers, join_messages(list(own_answers.values()), is_batch(text)))
        body = Body(MAX_MESSAGE_BYTES)
        if own_answers:
            exchange.request = _with_body(
                request, join_messages([text_of(message.body) for message in forwarded], is_batch(text))
            )
        try:
            return await self._exchange_messages(exchange, body, own_answers)
        except (ClientDisconnected, ServerUnavailable, BodyTooLarge, OSError) as error:
            for call in exchange.calls.values():
                await note_unanswered(exchange.gate, call, isinstance(error, ClientDisconnected))
            raise
        finally:
            body.close()
            exchange.request.body.close()

    async def _arrive(
        self, exchange: _ToolExchange, message: RpcMessage, own_answers: dict[LiveCall, bytes]
    ) -> Literal["pass", "drop", "answered"]:
        """Ask the gate about a message if it is a call. Return whether the message is forwarded ("pass"), the connection is to
        be closed ("drop"), or the gateway answers the call itself, by an entry in `own_answers` ("answered")."""
        call = self._server.call_of(message, self._context)
        if call is None:
            self._note_agent_message(exchange, message)
            return "pass"
        self._held_answers.end_repeated(call)
        action = await exchange.gate.arrive(call)
        if action in ("again", "hold"):
            call.deliver = self._delivery_under_new_id(exchange, call)
        if action == "drop" or (action == "hold" and not await self._hold_session_call(exchange, call)):
            return "drop"
        if action in ("pass", "twice", "again", "hold"):
            call.door_state["twice"] = action == "twice"
            self._expect_answer(exchange, call)
            return "pass"
        call.failed, own_answers[call] = action != "answer", error_answer(call)
        return "answered"

    async def _hold_session_call(self, exchange: _ToolExchange, call: LiveCall) -> bool:
        """Keep a call from the server while its agent waits. Return whether the agent waits longer than `patience`."""
        self._session_calls[exchange.session, call.wire_id] = call
        try:
            return await self._hold(exchange.gate, call, exchange.request)
        except ClientDisconnected:
            await note_unanswered(exchange.gate, call, has_disconnected=True)
            raise

    def _text(self, request: ServiceRequest) -> bytes:
        """Return the decoded body of a request; b"" if it cannot be decoded."""
        return request.body.plain(request.head.get("content-encoding")) or b""

    def _expect_answer(self, exchange: _ToolExchange, call: LiveCall) -> None:
        """Remember a call whose response is awaited, and forget the oldest call of a session beyond a bound."""
        exchange.calls[call.wire_id] = call
        self._session_calls[exchange.session, call.wire_id] = call
        if len(self._session_calls) > MAX_SESSION_CALLS:
            del self._session_calls[next(iter(self._session_calls))]

    def _note_agent_message(self, exchange: _ToolExchange, message: RpcMessage) -> None:
        """Note a message of the agent that is no call: a request for the tools, or the end of a wait."""
        if message.method == "tools/list":
            exchange.listings[message.key] = message
        if message.method == "notifications/cancelled":
            call = self._session_calls.get((exchange.session, key_of(message.params.get("requestId"))))
            if call:
                self._held_answers.end(call, "cancelled")

    async def _exchange_messages(self, exchange: _ToolExchange, body: Body, own_answers: Mapping[LiveCall, bytes]) -> bool:
        """Forward a request, and send its response to the agent, together with the answers that the gateway gives itself.
        Return whether the connection remains open."""
        request = exchange.request
        is_struck = any(call.is_struck for call in self._calls_awaited(exchange))
        async with self._forward_request(request, is_struck) as incoming:
            if incoming.head.status == UNAUTHORIZED:
                self._note_login(incoming.head.get("www-authenticate"))
            if incoming.kind == EVENT_STREAM:
                return await self._relay_events(exchange, incoming, is_struck, own_answers)
            answer = await incoming.whole(body)
        text, changed = answer.plain or b"", dict[str, bytes]()
        messages, waiting = messages_of(text), dict(exchange.calls)
        for message in messages:
            if message.kind != "answer" or not (call := waiting.pop(waiting_key(waiting, message.key), None)):
                self._note_server_message(exchange, message)
                continue
            raw = text_of(message.body) if len(messages) > 1 else text
            if (new_text := await self._decide(exchange, call, message, raw)) is None:
                return False
            if new_text != raw:
                changed[message.key] = new_text
        for call in waiting.values():
            if not await self._handle_no_answer(exchange, call, answer):
                return False
        if changed or own_answers:
            bodies = [changed.get(message.key) or text_of(message.body) for message in messages]
            await request.client.send(answer.with_content(join_messages([*bodies, *own_answers.values()], is_batch(text))))
        else:
            await self._send_answer(request, answer.head, answer.body)
        await self._note_given(exchange, *exchange.calls.values(), *own_answers)
        return answer.keeps_open

    def _note_login(self, challenge: str) -> None:
        """Record that the server requires a login, which an agent does only at the server's own address."""
        login = re.search(r'resource_metadata="?([^",\s]{1,500})', challenge)
        requirement = f"asks for a login (OAuth) at {login[1]}" if login else "asks for a key"
        if not self._has_noted_login:
            self._notice(f"it answered 401 and {requirement}: {LOGIN_ADVICE}")
        self._has_noted_login = True

    def _calls_awaited(self, exchange: _ToolExchange) -> Iterator[LiveCall]:
        """Yield the calls that the response to this request can answer: on a resumed stream, the calls of its session."""
        yield from exchange.calls.values()
        if exchange.request.head.method == "GET":
            yield from (call for (session, _), call in self._session_calls.items() if session == exchange.session)

    async def _relay_events(
        self, exchange: _ToolExchange, incoming: IncomingAnswer, is_struck: bool, own_answers: Mapping[LiveCall, bytes]
    ) -> bool:
        """Forward the events of a stream as they arrive. The gate is asked about an event that answers a call. Return whether
        the connection remains open."""
        client, events, head = exchange.request.client, EventSplitter(), self._head_for_agent(incoming.head)
        decoder = ContentDecoder(head.get("content-encoding"))
        rewrites = (is_struck or bool(own_answers)) and not decoder.is_encoded
        if rewrites:
            head = head.without("content-length", "transfer-encoding").with_fields({"transfer-encoding": "chunked"})
        await client.send(head.raw)
        for call, answer in own_answers.items():
            await client.send(chunk(with_data(b"event: message\n", answer)))
            await self._note_given(exchange, call)
        async for raw, data in incoming.pieces():
            answered_calls = list[LiveCall]()
            for event in events.add(decoder.add(data)):
                content, calls = await self._answered_event(exchange, event, rewrites)
                if content is None:
                    return False
                if rewrites:
                    await client.send(chunk(content))
                    await self._note_given(exchange, *calls)
                else:
                    answered_calls += calls
            if not rewrites:
                await client.send(raw)
                await self._note_given(exchange, *answered_calls)
        if rewrites:
            await client.send(chunk(events.rest()) + LAST_CHUNK)
        return incoming.head.keeps_open and (rewrites or not incoming.framing.ends_with_connection)

    async def _answered_event(
        self, exchange: _ToolExchange, event: bytes, rewrites: bool
    ) -> tuple[bytes | None, list[LiveCall]]:
        """Return the bytes that the agent gets for an event, or None if the connection is to be closed, and the calls that the
        event answers. A changed event counts only if the stream `rewrites` its events."""
        data, answered_calls = data_of(event), list[LiveCall]()
        if exchange.request.head.method == "GET" and event.startswith((b"event: endpoint", b"event:endpoint")):
            self._notice(SSE_ADVICE)
        data_for_agent = data
        for message in messages_of(data):
            call = self._call_answered(exchange, message)
            if call is None:
                self._note_server_message(exchange, message)
                continue
            answered_calls.append(call)
            if "answered" in call.door_state:  # a resumed stream repeats the response
                continue
            new_data = await self._decide(exchange, call, message, data, can_change=rewrites)
            if new_data is None:
                return None, answered_calls
            data_for_agent = new_data
        return event if data_for_agent == data else with_data(event, data_for_agent), answered_calls

    def _call_answered(self, exchange: _ToolExchange, message: RpcMessage) -> LiveCall | None:
        """Return the call that a message answers; None if the message answers no call."""
        if message.kind != "answer":
            return None
        if exchange.request.head.method == "GET":
            waiting = [key for session, key in self._session_calls if session == exchange.session]
            return self._session_calls.get((exchange.session, waiting_key(waiting, message.key)))
        return exchange.calls.get(waiting_key(exchange.calls, message.key))

    def _note_server_message(self, exchange: _ToolExchange, message: RpcMessage) -> None:
        """Note a message of the server that answers no call: the list of its tools."""
        if message.kind == "answer" and (listing := exchange.listings.pop(waiting_key(exchange.listings, message.key), None)):
            for line in self._server.learn(listing, message):
                self._notice(line)
        if message.method == "notifications/tools/list_changed":
            self._notice("it says that its tools have changed")

    async def _decide(
        self, exchange: _ToolExchange, call: LiveCall, message: RpcMessage, raw: bytes, *, can_change: bool = True
    ) -> bytes | None:
        """Show a call's response to the gate. Return the message for the agent; None if no response is sent."""
        if call.door_state.get("twice"):
            await self._deliver_again(exchange, call)
        call.door_state["answered"] = True
        self._server.answer(call, message)
        action = await exchange.gate.answer(call, raw)
        if action in CHANGING_ACTIONS:
            if can_change:
                return changed_answer(call, message, action)
            self._notice(f"call {call.number}: its answer is packed, so it was given as it came")
        return raw if await self._apply_to_connection(exchange, call, action) else None

    async def _apply_to_connection(self, exchange: _ToolExchange, call: LiveCall, action: str) -> bool:
        """Stay silent, break or close the connection as the gate says. Return whether the response is sent."""
        if action in ("silence", "late"):
            return await self._stay_silent(call, exchange.request, "late" if action == "late" else "silence")
        if action in ("break", "half", "cut_off"):
            exchange.request.client.reset()
        elif action == "drop":
            exchange.request.client.close()
        return action not in ("break", "half", "cut_off", "drop")

    async def _handle_no_answer(self, exchange: _ToolExchange, call: LiveCall, answer: ServiceAnswer) -> bool:
        """Handle an HTTP response that holds no response to a call. Return whether it is sent to the agent."""
        call.answer, call.failed = {"status": answer.head.status, "body": answer.value}, True
        call.door_state["answered"] = True
        return await self._apply_to_connection(exchange, call, await exchange.gate.answer(call, b""))

    async def _note_given(self, exchange: _ToolExchange, *calls: LiveCall) -> None:
        """Tell the gate that calls have their responses."""
        for call in calls:
            call.door_state["given"] = True
            await exchange.gate.note_given(call)

    async def _answer_all(self, exchange: _ToolExchange, own_answers: Mapping[LiveCall, bytes], text: bytes) -> bool:
        """Answer a request of which no message is forwarded. Return True, since the connection remains open."""
        fields = {"Content-Type": "application/json", "Content-Length": str(len(text))}
        await exchange.request.client.send(make_head("HTTP/1.1 200 OK", fields).raw + text)
        await self._note_given(exchange, *own_answers)
        return True

    async def _deliver_again(self, exchange: _ToolExchange, call: LiveCall) -> None:
        """Deliver a call a second time, and drop the response."""
        call.door_state["twice"] = False
        try:
            await asyncio.wait_for(self._delivery_under_new_id(exchange, call)(), exchange.gate.patience)
        except (Undelivered, TimeoutError):
            self._notice(f"it did not answer the second delivery of call {call.number}")

    def _delivery_under_new_id(self, exchange: _ToolExchange, call: LiveCall) -> Callable[[], Awaitable[bytes]]:
        """Return a function that delivers a call under another id, without its client, and returns the response."""

        async def deliver() -> bytes:
            """Forward the call under a new id, record the response unless the call has one, and return it under the first
            id."""
            token = f"again-{token_hex(8)}"
            request = _with_body(exchange.request, second_delivery(call, token))
            async with self._deliver_without_client(request) as (incoming, body):
                async for message in self._messages(incoming, body):
                    if message.kind == "answer" and message.key == key_of(token):
                        break
                else:
                    raise Undelivered("its answer is none")
            if not call.finished.is_set():
                self._server.answer(call, message)
            return text_of({**message.body, "id": call.door_state["request"].body["id"]})

        return deliver

    async def _messages(self, incoming: IncomingAnswer, body: Body) -> AsyncIterator[RpcMessage]:
        """Yield the messages of a response as they arrive."""
        if incoming.kind != EVENT_STREAM:
            for message in messages_of((await incoming.whole(body)).plain or b""):
                yield message
            return
        events = EventSplitter()
        async for _, data in incoming.pieces():
            for event in events.add(data):
                for message in messages_of(data_of(event)):
                    yield message


def _with_body(request: ServiceRequest, text: bytes) -> ServiceRequest:
    """Return a request with another body, which the caller closes."""
    body = Body(MAX_MESSAGE_BYTES)
    body.add(text, text)
    head = request.head.without("content-encoding", "transfer-encoding", "content-length")
    return replace(request, head=head.with_fields({"content-length": str(len(text))}), body=body)


KIND = DoorKind("mcp_http", can=frozenset(("hold", "twice", "mcp_error")))
