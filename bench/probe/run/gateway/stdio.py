"""The relay between an agent and one process of an MCP server that speaks over stdio.

Bytes are forwarded unchanged. The messages in them are also parsed: the gate is asked about each call, and the relay does
what it decides. Memory is bounded: a side that writes faster than the other reads has to wait, as on a pipe without a
gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from secrets import token_hex
from time import monotonic
from typing import Any

from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import DoorContext, LiveCall, Undelivered, WaitEnd
from bench.probe.run.gateway.held_answers import HeldAnswers
from bench.probe.run.gateway.mcp import KnownServer, changed_answer, error_answer, is_call, join_messages, second_delivery
from bench.wire.json_rpc import Pipe, PipeClosed, RpcMessage, is_batch, key_of, messages_of, text_of, waiting_key

FRAME_HEADER = b"content-length:"
"""The beginning of a message in the format of language servers, in lower case."""
FRAME_TEXT = "the frame of a language server, which MCP has not: let it write each message in a line"
UNKNOWN_LINE_TEXT = "a line that is no message of MCP, or is beyond the bounds; it is passed on as it came"
ORDER_TIMEOUT_S = 0.05
"""How long later messages wait behind a call at the gate. Then they overtake the call, since the gate may be waiting for a
later message."""
MAX_REQUESTS = 1_000
"""The most requests of an agent that are tracked at a time. Further requests are forwarded, and the gate is not asked."""


class StdioRelay:
    """Forwards messages between an agent and a server, until the server closes its output or the connection is broken.

    Args:
        known: What is known about the server.
        agent: The pipes from and to the agent, which the relay owns.
        server: The pipes from and to the server, which the relay owns.
        context: What all doors share.
    """

    def __init__(self, known: KnownServer, agent: tuple[Pipe, Pipe], server: tuple[Pipe, Pipe], context: DoorContext):
        self._known, self._context, self._gate = known, context, context.gate
        self._from_agent, self._to_agent = agent
        self._from_server, self._to_server = server
        self._calls: dict[str, LiveCall] = {}
        """Calls that the server has not answered."""
        self._requests: dict[str, RpcMessage] = {}
        """Requests that are no calls and that the server has not answered."""
        self._held_answers = HeldAnswers(context.gate)
        self._at_gate: dict[str, LiveCall] = {}
        """Calls about which the gate is being asked."""
        self._second_deliveries: dict[str, asyncio.Future[RpcMessage | None]] = {}
        """Ids of second and late deliveries -> the server's response, or None if the server ends without it."""
        self._held_calls = set[LiveCall]()
        """Held calls that may still be forwarded to the server."""
        self._cancelled: set[str] = set()
        self._start_times: dict[str, float] = {}
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._noticed: set[str] = set()
        self.is_stopped = self.has_agent_left = self._is_disconnected = False
        """Whether the gate broke the connection or killed the agent; whether the agent closed it; whether either has happened,
        or the server has closed it."""

    async def run(self) -> None:
        """Relay until the server closes its output. No task of the relay is left when this returns, or raises an exception
        of the gate."""
        try:
            async with self._group:
                to_server = self._group.create_task(self._relay_agent())
                await self._group.create_task(self._relay_server())
                for task in (to_server, *self._tasks):
                    task.cancel()
        finally:
            self._disconnect()
            for pipe in (self._from_agent, self._to_agent, self._from_server, self._to_server):
                pipe.close()

    def stop(self) -> bool:
        """Close all pipes, and cancel the relay's tasks except the calling task, since a gate kills an agent in the middle of
        a call. Return whether the calling task is one of the relay's."""
        self.is_stopped = True
        current = asyncio.current_task()
        self._held_calls.clear()
        for task in self._tasks - {current}:
            task.cancel()
        self._disconnect()
        for pipe in (self._to_agent, self._from_agent, self._from_server, self._to_server):
            pipe.close()
        return current in self._tasks

    @property
    def is_busy(self) -> bool:
        """Whether a held call may still be delivered to the server."""
        return bool(self._held_calls)

    async def finish(self) -> None:
        """Note that the agent has disconnected, and wait until no call is held any more."""
        self._disconnect()
        await asyncio.gather(*(call.finished.wait() for call in self._held_calls))

    def calls_unanswered(self, seconds: float = 0.0) -> list[LiveCall]:
        """Return the calls that the server has not answered for at least this many seconds."""
        latest_start = monotonic() - seconds
        return [call for key, call in self._calls.items() if self._start_times[key] <= latest_start]

    async def _relay_agent(self) -> None:
        """Forward the agent's lines to the server."""
        with suppress(PipeClosed):
            async for piece, is_whole in self._from_agent.lines():
                messages = self._messages(piece, is_whole, "the agent")
                if any(self._is_followed_call(message) for message in messages):
                    await self._run_in_order(self._forward_calls(piece, messages))
                else:
                    for message in messages:
                        self._note_agent_message(message)
                    await self._to_server.write(piece, is_whole)
        self.has_agent_left = True
        self._to_server.end_line()
        self._disconnect()
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._to_server.close()

    async def _relay_server(self) -> None:
        """Forward the server's lines to the agent."""
        with suppress(PipeClosed):
            async for piece, is_whole in self._from_server.lines():
                messages = self._messages(piece, is_whole, "the server")
                if any(self._is_awaited(message) for message in messages):
                    await self._run_in_order(self._give_answers(piece, messages))
                else:
                    for message in messages:
                        self._note_server_message(message)
                    # while a held call may still be delivered, the relay goes on without the agent
                    with suppress(*([PipeClosed] if self.is_busy else [])):
                        await self._to_agent.write(piece, is_whole)
        self._to_agent.end_line()
        self._disconnect()
        for response in self._second_deliveries.values():
            if not response.done():
                response.set_result(None)
        self._second_deliveries.clear()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _messages(self, piece: bytes, is_whole: bool, sender: str) -> tuple[RpcMessage, ...]:
        """Return the messages in a line; () for a piece of a long line. Record a line that has none."""
        messages = messages_of(piece) if is_whole else ()
        if not messages and piece.strip():
            is_frame = piece[: len(FRAME_HEADER)].lower() == FRAME_HEADER
            problem = FRAME_TEXT if is_frame else UNKNOWN_LINE_TEXT
            self._notice(f"{sender} wrote {problem}")
        return messages

    def _notice(self, message: str) -> None:
        """Record something that belongs to no call, once for each text."""
        if message not in self._noticed and len(self._noticed) < MAX_REQUESTS:
            self._noticed.add(message)
            self._gate().notice(self._known.door, message)

    async def _run_in_order(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work, and wait for it no longer than `ORDER_TIMEOUT_S`."""
        await asyncio.wait({self._start(work)}, timeout=ORDER_TIMEOUT_S)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work as a task of the relay, which ends quietly if a pipe is closed."""
        task = self._group.create_task(_until_pipe_closed(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _is_followed_call(self, message: RpcMessage) -> bool:
        """Return whether a message is a call that the gate is asked about; calls beyond `MAX_REQUESTS` are not."""
        if not is_call(message):
            return False
        if len(self._calls) + len(self._held_answers) < MAX_REQUESTS:
            return True
        self._notice(f"more than {MAX_REQUESTS:,} calls wait at a time; further ones are not followed")
        return False

    def _note_agent_message(self, message: RpcMessage) -> None:
        """Note a message of the agent that is no call: a request, or the end of a wait."""
        if message.kind == "request" and len(self._requests) < MAX_REQUESTS:
            self._requests[message.key] = message
        if message.method == "notifications/cancelled":
            key = key_of(message.params.get("requestId"))
            if held_call := next((call for call in self._held_answers if call.wire_id == key), None):
                self._held_answers.end(held_call, "cancelled")
                return
            if key in self._at_gate:
                self._gate().note_wait_end(self._at_gate[key], "cancelled")
            if len(self._cancelled) < MAX_REQUESTS:
                self._cancelled.add(key)

    async def _forward_calls(self, piece: bytes, messages: tuple[RpcMessage, ...]) -> None:
        """Ask the gate about the calls in a line, and forward the messages that it lets pass. A call from a tape is
        answered."""
        remaining = []
        for message in messages:
            call = self._known.call_of(message, self._context)
            if call is None:
                self._note_agent_message(message)
                remaining.append(message)
            elif await self._arrive(call):
                if not call.taped_answer:
                    remaining.append(message)
                for answer in messages_of(call.taped_answer):
                    text = text_of({**answer.body, "id": message.body["id"]})
                    self._start(self._give_answers(text + b"\n", messages_of(text)))
        await _write_remaining(self._to_server, piece, messages, remaining)

    async def _arrive(self, call: LiveCall) -> bool:
        """Ask the gate about a call. Return whether it is forwarded; otherwise answer it as the gate says."""
        self._held_answers.end_repeated(call)
        self._at_gate[call.wire_id] = call
        try:
            action = await self._gate().arrive(call)
        finally:
            del self._at_gate[call.wire_id]
        if action == "hold" and not await self._hold_call(call):
            return False
        if action in ("pass", "twice", "hold"):
            call.door_state["twice"] = action == "twice"
            self._calls[call.wire_id], self._start_times[call.wire_id] = call, monotonic()
            return True
        if action != "drop":
            call.failed = action != "answer"
            await self._to_agent.write(error_answer(call) + b"\n")
            await self._gate().note_given(call)
        return False

    async def _hold_call(self, call: LiveCall) -> bool:
        """Keep a call from the server while its agent waits. Return True as soon as the agent has waited longer than
        `patience`, and otherwise False once the call was delivered late, or never will be."""
        call.deliver = partial(self._deliver_late, call)
        self._held_calls.add(call)
        try:
            if await self._stay_silent(call) == "waits_longer":
                await self._gate().note_passed_on(call)
                return True
            await call.finished.wait()
            return False
        finally:
            self._held_calls.discard(call)

    async def _deliver_late(self, call: LiveCall) -> bytes:
        """Deliver a held call that its agent gave up, and return the response. Raises Undelivered."""
        try:
            message = await self._deliver(call)
        except PipeClosed:
            message = None
        if message is None:
            raise Undelivered("the server has ended")
        self._known.answer(call, message)
        return text_of({**message.body, "id": call.door_state["request"].body["id"]})

    async def _deliver(self, call: LiveCall) -> RpcMessage | None:
        """Deliver a call under another id. Return the response; None if the server ended without one. Raises PipeClosed."""
        key = key_of(token := f"again-{token_hex(8)}")
        response: asyncio.Future[RpcMessage | None] = asyncio.get_running_loop().create_future()
        self._second_deliveries[key] = response
        await self._to_server.write(second_delivery(call, token) + b"\n")
        return await response

    def _is_awaited(self, message: RpcMessage) -> bool:
        """Return whether a server's message answers a call, or belongs to a second or late delivery."""
        if message.method == "notifications/progress":
            return key_of(message.params.get("progressToken")) in self._second_deliveries
        return message.kind == "answer" and (
            waiting_key(self._calls, message.key) in self._calls or message.key in self._second_deliveries
        )

    def _note_server_message(self, message: RpcMessage) -> None:
        """Note a message of the server that answers no call: the list of its tools."""
        if message.kind == "answer" and (request := self._requests.pop(waiting_key(self._requests, message.key), None)):
            for line in self._known.learn(request, message):
                self._notice(line)
        if message.method == "notifications/tools/list_changed":
            self._notice("it says that its tools have changed")

    async def _give_answers(self, piece: bytes, messages: tuple[RpcMessage, ...]) -> None:
        """Show the gate the responses in a line, and send the agent what the gate lets pass, and the messages that answer no
        call. Messages about second and late deliveries are not sent."""
        remaining: list[RpcMessage] = []
        changed: dict[str, bytes] = {}
        answered_calls = []
        for message in messages:
            if message.key in self._second_deliveries and message.kind == "answer":
                if not (response := self._second_deliveries.pop(message.key)).done():
                    response.set_result(message)
            elif message.kind == "answer" and (call := self._calls.pop(waiting_key(self._calls, message.key), None)):
                raw = text_of(message.body) if len(messages) > 1 else piece.strip()
                if (answer := await self._answer(call, message, raw)) is not None:
                    remaining.append(message)
                    answered_calls.append(call)
                    if answer != raw:
                        changed[message.key] = answer
            elif not self._is_awaited(message):
                self._note_server_message(message)
                remaining.append(message)
        await _write_remaining(self._to_agent, piece, messages, remaining, changed)
        for call in answered_calls:
            await self._gate().note_given(call)

    async def _answer(self, call: LiveCall, message: RpcMessage, raw: bytes) -> bytes | None:
        """Show the gate the response to a call. Return the message that the agent gets at once; None if it gets none, or
        later."""
        if call.door_state["twice"]:
            await self._deliver_again(call)
        self._known.answer(call, message)
        self._at_gate[call.wire_id] = call
        try:
            action = await self._gate().answer(call, raw)
        finally:
            del self._at_gate[call.wire_id]
        match action:
            case "give":
                return raw
            case "error" | "stale" | "empty" | "garbled" | "too_large":
                return changed_answer(call, message, action)
            case "silence" | "late":
                self._start(self._hold_answer(call, raw, action == "late"))
            case "break" | "cut_off" | "half":
                self.stop()
        return None

    async def _deliver_again(self, call: LiveCall) -> None:
        """Deliver a call a second time after its first response, and wait for the second response."""
        try:
            await asyncio.wait_for(self._deliver(call), self._gate().patience)
        except TimeoutError:
            self._notice(f"it did not answer the second delivery of call {call.number} within {self._gate().patience:g} s")

    async def _hold_answer(self, call: LiveCall, answer: bytes, gives_late: bool) -> None:
        """Hold a response until the agent stops waiting. Send it then if the agent waits longer than `patience`, or if
        `gives_late` and the agent is still connected."""
        how = await self._stay_silent(call)
        if how == "waits_longer" or (gives_late and how != "disconnected"):
            await self._to_agent.write(answer + b"\n")
            await self._gate().note_given(call)

    async def _stay_silent(self, call: LiveCall) -> WaitEnd:
        """Send no response until the agent stops waiting, or `patience` ends. Return how the wait ended."""
        known_end: WaitEnd | None = "cancelled" if call.wire_id in self._cancelled else None
        return await self._held_answers.wait(call, known_end="disconnected" if self._is_disconnected else known_end)

    def _disconnect(self) -> None:
        """Note that the connection is closed, which ends all waits."""
        self._is_disconnected = True
        for call in self._held_answers:
            self._held_answers.end(call, "disconnected")


async def _until_pipe_closed(work: Coroutine[Any, Any, None]) -> None:
    """Run work, and return without an error if a pipe is closed, since the relay also notices that when it reads."""
    with suppress(PipeClosed):
        await work


async def _write_remaining(
    pipe: Pipe,
    piece: bytes,
    messages: tuple[RpcMessage, ...],
    remaining: list[RpcMessage],
    changed: dict[str, bytes] | None = None,
) -> None:
    """Write a line unchanged, or only its `remaining` messages. `changed` has the new text of messages, by their keys."""
    if len(remaining) == len(messages) and not changed:
        await pipe.write(piece)
    elif remaining:
        bodies = [(changed or {}).get(message.key) or text_of(message.body) for message in remaining]
        await pipe.write(join_messages(bodies, is_batch(piece)) + b"\n")


KIND = DoorKind("mcp_stdio", can=frozenset(("hold", "mcp_error")))
