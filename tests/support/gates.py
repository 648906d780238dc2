"""A gate that does what a test tells it, and a server on loopback that keeps every byte it got."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.probe.points import AnswerAction, CallAction
from bench.probe.run.gateway.gate import CallGate, DoorContext, LiveCall, WaitEnd
from bench.probe.run.gateway.listener import AgentListener


class ScriptedGate(CallGate):
    """Strikes call n before or after as the test says, and writes down what the doors ask. A held call whose client has left,
    and one that is to be delivered again, it delivers once a later call is answered."""

    def __init__(
        self,
        before: Mapping[int, CallAction] | None = None,
        after: Mapping[int, AnswerAction] | None = None,
        patience: float = 5.0,
        form: str = "",
        instead: bytes | None = None,
    ):
        self.patience, self._form, self._instead = patience, form, instead
        self._before, self._after = before or {}, after or {}
        self.calls, self.answers = list[LiveCall](), dict[int, bytes]()
        self.course = list[tuple[str, int]]()
        self.notes = list[tuple[str, str]]()

    async def arrive(self, call: LiveCall) -> CallAction:
        self.calls.append(call)
        self.course.append(("arrived", call.number))
        call.is_struck = call.number in self._before or call.number in self._after
        if call.is_struck:
            call.wire_form, call.replacement = self._form, self._instead
        return self._before.get(call.number, "pass")

    async def note_passed_on(self, call: LiveCall) -> None:
        self.course.append(("passes", call.number))
        call.deliver = None

    async def answer(self, call: LiveCall, answer: bytes) -> AnswerAction:
        self.course.append(("answered", call.number))
        self.answers[call.number] = answer
        call.finished.set()
        for earlier in self.calls[: call.number - 1]:
            left = {("disconnected", earlier.number), ("cancelled", earlier.number), ("asked_again", earlier.number)}
            if earlier.deliver and (earlier.finished.is_set() or left & {*self.course}):
                deliver, earlier.deliver = earlier.deliver, None
                self.answers[earlier.number] = await deliver()
                self.course.append(("delivered", earlier.number))
                earlier.finished.set()
        return self._after.get(call.number, "give")

    async def note_given(self, call: LiveCall) -> None:
        self.course.append(("given", call.number))

    async def note_end(self, call: LiveCall) -> None:
        self.course.append(("ended", call.number))

    def note_wait_end(self, call: LiveCall, how: WaitEnd) -> None:
        self.course.append((how, call.number))

    def note_lock_wait(self, call: LiveCall) -> None:
        self.course.append(("blocks", call.number))
        call.finished.set()

    def notice(self, door: str, what: str) -> None:
        self.notes.append((door, what))


@asynccontextmanager
async def listening(gate: ScriptedGate, token: str = "token") -> AsyncIterator[AgentListener]:
    numbers = itertools.count(1)
    async with AgentListener(DoorContext(lambda: gate, lambda: next(numbers), lambda: 1), token) as listener:
        yield listener


Answering = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawServer:
    """What it got on each connection, and where it listens."""

    url: str = ""
    got: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def raw_server(answer: bytes | Answering, end: bytes = b"") -> AsyncIterator[RawServer]:
    """Give this answer to each request. A request ends with `end`, or with its head."""
    server, tasks = RawServer(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                if end and not request.startswith((b"GET", b"HEAD")):
                    request += await reader.readuntil(end)
                server.got.append(request)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(serve(reader, writer)))

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**26)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def exchanged(address: str, request: bytes, size: int | None = None) -> bytes:
    """Send bytes to an address, and return all that comes, or the first `size` bytes."""
    host, _, port = address.removeprefix("http://").partition("/")[0].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        return await (reader.read(-1) if size is None else reader.readexactly(size))
    finally:
        writer.close()
