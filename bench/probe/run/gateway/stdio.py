"""The relay between an agent and one process of an MCP server that speaks over stdio.

Bytes are passed on as they came. Messages are read beside them: each call is brought before the gate, and what the gate decides
is done. Memory is bounded: who writes faster than the other side reads has to wait, as on a pipe without a gateway.
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
from bench.probe.run.gateway.gate import Desk, HeldAnswers, LiveCall, Undelivered, WaitEnd
from bench.probe.run.gateway.mcp import KnownServer, changed_answer, error_answer, is_call, join_messages, second_delivery
from bench.wire.json_rpc import Pipe, PipeClosed, RpcMessage, is_batch, key_of, known_key, messages_of, text_of

FRAME = b"content-length:"
ODD_LINE = "a line that is no message of MCP, or is beyond the bounds; it is passed on as it came"
ORDERLY = 0.05
"""Seconds for which later messages wait behind a call at the gate. Then they pass it: the gate may wait for what they bring."""
MOST_WAITING = 1_000
"""The most requests of an agent that are followed at a time. Further ones are passed on and not followed."""


class StdioRelay:
    """Passes messages between an agent and a server, until the server closes its output or the connection is broken.

    agent, server   for each side the pipe that is read and the pipe that is written; the relay owns them
    """

    def __init__(self, known: KnownServer, agent: tuple[Pipe, Pipe], server: tuple[Pipe, Pipe], desk: Desk):
        self._known, self._desk, self._gate = known, desk, desk.gate
        self._from_agent, self._to_agent = agent
        self._from_server, self._to_server = server
        self._calls: dict[str, LiveCall] = {}
        """Calls that the server has not answered."""
        self._asked: dict[str, RpcMessage] = {}
        """Requests that are no calls and that the server has not answered."""
        self._silent = HeldAnswers(desk.gate)
        self._at_gate: dict[str, LiveCall] = {}
        """Calls that wait for what the gate decides."""
        self._again: dict[str, asyncio.Future[RpcMessage | None]] = {}
        """Second and late deliveries that the server has not answered."""
        self._late = set[LiveCall]()
        """Held calls that were not passed on, and may still be."""
        self._cancelled: set[str] = set()
        self._began: dict[str, float] = {}
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._noticed: set[str] = set()
        self.is_stopped = self.is_left = self._has_ended = False
        """Whether the gate broke the connection or killed the agent; whether the agent closed it; whether it stands no more."""

    async def run(self) -> None:
        """Relay until the server's side has ended. Nothing of the relay runs once this has ended, or has raised what the gate
        raised."""
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
        """Close all pipes, and end what is under way but for the task that calls this: a gate kills an agent in the middle of a
        call. Return whether a task of the relay calls this."""
        self.is_stopped = True
        current = asyncio.current_task()
        self._late.clear()
        for task in self._tasks - {current}:
            task.cancel()
        self._disconnect()
        for pipe in (self._to_agent, self._from_agent, self._from_server, self._to_server):
            pipe.close()
        return current in self._tasks

    @property
    def is_busy(self) -> bool:
        """Whether the server may still get a call that is held: a process that works on a request lives on."""
        return bool(self._late)

    async def finish(self) -> None:
        """Return once no call is held any more whose agent has left."""
        self._disconnect()
        await asyncio.gather(*(call.over.wait() for call in self._late))

    def calls_unanswered(self, longer: float = 0.0) -> list[LiveCall]:
        """Return the calls that the server left unanswered for at least so many seconds."""
        until = monotonic() - longer
        return [call for key, call in self._calls.items() if self._began[key] <= until]

    async def _relay_agent(self) -> None:
        with suppress(PipeClosed):
            async for piece, is_whole in self._from_agent.lines():
                messages = self._messages(piece, is_whole, "the agent")
                if any(self._follows(message) for message in messages):
                    await self._in_order(self._pass_on(piece, messages))
                else:
                    for message in messages:
                        self._watch_agent(message)
                    await self._to_server.write(piece, is_whole)
        self.is_left = True
        self._to_server.end_line()
        self._disconnect()
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._to_server.close()

    async def _relay_server(self) -> None:
        with suppress(PipeClosed):
            async for piece, is_whole in self._from_server.lines():
                messages = self._messages(piece, is_whole, "the server")
                if any(self._concerns(message) for message in messages):
                    await self._in_order(self._give(piece, messages))
                else:
                    for message in messages:
                        self._watch_server(message)
                    with suppress(*([PipeClosed] if self.is_busy else [])):
                        await self._to_agent.write(piece, is_whole)
        self._to_agent.end_line()
        self._disconnect()
        for answered in self._again.values():
            if not answered.done():
                answered.set_result(None)
        self._again.clear()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _messages(self, piece: bytes, is_whole: bool, whose: str) -> tuple[RpcMessage, ...]:
        messages = messages_of(piece) if is_whole else ()
        if not messages and piece.strip():
            framed = piece[: len(FRAME)].lower() == FRAME
            what = (
                "the frame of a language server, which MCP has not: let it write each message in a line" if framed else ODD_LINE
            )
            self._notice(f"{whose} wrote {what}")
        return messages

    def _notice(self, what: str) -> None:
        """Tell the gate, once for each line that is told."""
        if what not in self._noticed and len(self._noticed) < MOST_WAITING:
            self._noticed.add(what)
            self._gate().notice(self._known.door, what)

    async def _in_order(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wait({self._start(work)}, timeout=ORDERLY)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(_unbroken(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _follows(self, message: RpcMessage) -> bool:
        if not is_call(message):
            return False
        if len(self._calls) + len(self._silent) < MOST_WAITING:
            return True
        self._notice(f"more than {MOST_WAITING:,} calls wait at a time; further ones are not followed")
        return False

    def _watch_agent(self, message: RpcMessage) -> None:
        if message.kind == "request" and len(self._asked) < MOST_WAITING:
            self._asked[message.key] = message
        if message.method == "notifications/cancelled":
            key = key_of(message.params.get("requestId"))
            if held := next((call for call in self._silent if call.wire == key), None):
                self._silent.end(held, "cancelled")
                return
            if key in self._at_gate:
                self._gate().went(self._at_gate[key], "cancelled")
            if len(self._cancelled) < MOST_WAITING:
                self._cancelled.add(key)

    async def _pass_on(self, piece: bytes, messages: tuple[RpcMessage, ...]) -> None:
        """Show the calls in a line to the gate, and pass on what is left of the line."""
        passed = []
        for message in messages:
            call = self._known.call_of(message, self._desk)
            if call is None:
                self._watch_agent(message)
                passed.append(message)
            elif await self._arrive(call):
                if not call.taped:
                    passed.append(message)
                for answer in messages_of(call.taped):
                    text = text_of({**answer.body, "id": message.body["id"]})
                    self._start(self._give(text + b"\n", messages_of(text)))
        await _write_left(self._to_server, piece, messages, passed)

    async def _arrive(self, call: LiveCall) -> bool:
        """Return whether the gate lets a call pass. If it does not, answer the call as the gate says."""
        self._silent.end_repeated(call)
        self._at_gate[call.wire] = call
        try:
            before = await self._gate().arrive(call)
        finally:
            del self._at_gate[call.wire]
        if before == "hold" and not await self._holds_out(call):
            return False
        if before in ("pass", "twice", "hold"):
            call.kept["twice"] = before == "twice"
            self._calls[call.wire], self._began[call.wire] = call, monotonic()
            return True
        if before != "drop":
            call.failed = before != "answer"
            await self._to_agent.write(error_answer(call) + b"\n")
            await self._gate().note_given(call)
        return False

    async def _holds_out(self, call: LiveCall) -> bool:
        """Keep a call from the server while its agent waits. Return whether the agent waits longer than `patience`. If it does
        not, this lasts until the call was delivered late, or never will be."""
        call.deliver = partial(self._deliver_late, call)
        self._late.add(call)
        try:
            if await self._silence(call) == "waits_longer":
                await self._gate().passes(call)
                return True
            await call.over.wait()
            return False
        finally:
            self._late.discard(call)

    async def _deliver_late(self, call: LiveCall) -> bytes:
        """Deliver a call that the agent does not wait for any more, and return its answer. Raises Undelivered."""
        try:
            message = await self._deliver(call)
        except PipeClosed:
            message = None
        if message is None:
            raise Undelivered("the server has ended")
        self._known.answer(call, message)
        return text_of({**message.body, "id": call.kept["request"].body["id"]})

    async def _deliver(self, call: LiveCall) -> RpcMessage | None:
        """Deliver a call under another id. Return the answer; None if the server ended without one. Raises PipeClosed."""
        key = key_of(token := f"again-{token_hex(8)}")
        answered: asyncio.Future[RpcMessage | None] = asyncio.get_running_loop().create_future()
        self._again[key] = answered
        await self._to_server.write(second_delivery(call, token) + b"\n")
        return await answered

    def _concerns(self, message: RpcMessage) -> bool:
        """Return whether a server's message is an answer to a call, or belongs to a second delivery."""
        if message.method == "notifications/progress":
            return key_of(message.params.get("progressToken")) in self._again
        return message.kind == "answer" and (known_key(self._calls, message.key) in self._calls or message.key in self._again)

    def _watch_server(self, message: RpcMessage) -> None:
        if message.kind == "answer" and (request := self._asked.pop(known_key(self._asked, message.key), None)):
            for line in self._known.learn(request, message):
                self._notice(line)
        if message.method == "notifications/tools/list_changed":
            self._notice("it says that its tools have changed")

    async def _give(self, piece: bytes, messages: tuple[RpcMessage, ...]) -> None:
        """Show the answers in a line to the gate, and give the agent what is left of the line."""
        left: list[RpcMessage] = []
        changed: dict[str, bytes] = {}
        given = []
        for message in messages:
            if message.key in self._again and message.kind == "answer":
                if not (answered := self._again.pop(message.key)).done():
                    answered.set_result(message)
            elif message.kind == "answer" and (call := self._calls.pop(known_key(self._calls, message.key), None)):
                raw = text_of(message.body) if len(messages) > 1 else piece.strip()
                if (answer := await self._answer(call, message, raw)) is not None:
                    left.append(message)
                    given.append(call)
                    if answer != raw:
                        changed[message.key] = answer
            elif not self._concerns(message):
                self._watch_server(message)
                left.append(message)
        await _write_left(self._to_agent, piece, messages, left, changed)
        for call in given:
            await self._gate().note_given(call)

    async def _answer(self, call: LiveCall, message: RpcMessage, raw: bytes) -> bytes | None:
        """Return the message to give for an answer now, or None."""
        if call.kept["twice"]:
            await self._deliver_again(call)
        self._known.answer(call, message)
        self._at_gate[call.wire] = call
        try:
            after = await self._gate().answer(call, raw)
        finally:
            del self._at_gate[call.wire]
        match after:
            case "give":
                return raw
            case "error" | "stale" | "empty" | "garbled" | "too_large":
                return changed_answer(call, message, after)
            case "silence" | "late":
                self._start(self._hold(call, raw, after == "late"))
            case "break" | "cut_off" | "half":
                self.stop()
        return None

    async def _deliver_again(self, call: LiveCall) -> None:
        """Deliver a call a second time after its first answer, and wait for the server's second answer."""
        try:
            await asyncio.wait_for(self._deliver(call), self._gate().patience)
        except TimeoutError:
            self._notice(f"it did not answer the second delivery of call {call.number} within {self._gate().patience:g} s")

    async def _hold(self, call: LiveCall, answer: bytes, gives_late: bool) -> None:
        """Hold an answer until the agent's wait ends, and then give it if it is late or the agent waits on."""
        how = await self._silence(call)
        if how == "waits_longer" or (gives_late and how != "disconnected"):
            await self._to_agent.write(answer + b"\n")
            await self._gate().note_given(call)

    async def _silence(self, call: LiveCall) -> WaitEnd:
        """Give no answer to a call until its agent's wait ends, or `patience` does."""
        ended: WaitEnd | None = "disconnected" if self._has_ended else "cancelled" if call.wire in self._cancelled else None
        return await self._silent.wait(call, ended=ended)

    def _disconnect(self) -> None:
        self._has_ended = True
        for call in self._silent:
            self._silent.end(call, "disconnected")


async def _unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and end quietly if a pipe is closed: the relay that reads from the other end notices this too."""
    with suppress(PipeClosed):
        await work


async def _write_left(
    pipe: Pipe,
    piece: bytes,
    messages: tuple[RpcMessage, ...],
    left: list[RpcMessage],
    changed: dict[str, bytes] | None = None,
) -> None:
    """Write a line unchanged, or the messages of it that are left."""
    if len(left) == len(messages) and not changed:
        await pipe.write(piece)
    elif left:
        bodies = [(changed or {}).get(message.key) or text_of(message.body) for message in left]
        await pipe.write(join_messages(bodies, is_batch(piece)) + b"\n")


KIND = DoorKind("mcp_stdio", can=frozenset(("hold", "mcp_error")))
