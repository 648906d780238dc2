"""The door of functions: tools in the agent's own process. A loader in that process asks here before and after each call.

The loader (`loader/`) is found by the agent's Python, and by those that it starts, through PYTHONPATH. What it sends is JSON, a
line each: `arrived` with a tool and its arguments, `answered` with what the function gave, `given` when the agent has that,
`ended` when the function ended without an answer, `left` when its caller waits no more. Values have the form that
`loader/agent_door/values` gives them.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Self

from pydantic import JsonValue

from bench.probe.run.box.closed_network import ClosedNetwork
from bench.probe.run.gateway.damaged import damage
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import Desk, HeldAnswers, LiveCall
from bench.probe.run.gateway.mcp import REFUSED
from bench.wire.access_guard import MOST_CONNECTIONS

LOADER = Path(__file__).with_name("loader")
VARIABLE = "BENCH_FUNCTION_DOOR"
FUNCTION = "function"
"""The name of this door."""
LOOPBACK = "127.0.0.1"
LONGEST, LARGEST = 2**26, 2**20
"""Bytes of a line, and of an answer that can be given again."""
WITHOUT_CALL = frozenset(("hello", "notice", "refused", "seen"))
MOST_TOLD, LONGEST_TOLD = 1000, 10_000
"""The most facts of a kind that an agent's processes tell and that are kept, and the characters of each."""
LONGEST_TOKEN = 256
"""Bytes of the first line, which shows that a process is the agent's."""
NO_MESSAGE = "a process of the agent sent a line that is no message of this door; its connection was ended"
LATE = "The call timed out."
WHAT_TO_DO = 'write what acts as functions = ["MODULE:FUNCTION"], or give it to the agent over MCP or HTTP'


class FunctionDoor:
    """Listens while its context lasts.

    desk        the objects that all doors share
    functions   `MODULE:FUNCTION` of what the owner names
    watched     whether the agent's processes tell which MCP servers they start
    refused     why a function that the owner names cannot be wrapped, a line each
    seen        what these processes told: its kind (`framework` that is loaded, server that was `served`), and what it was
    """

    _failed: Exception | None

    def __init__(self, desk: Desk, functions: tuple[str, ...], *, watched: bool = False):
        self._desk, self._token, self._watched = desk, token_urlsafe(24), watched
        self.seen = dict[tuple[str, str], None]()
        self._tools = tools_of(functions)
        self._links = dict[asyncio.Task[None], asyncio.StreamWriter]()
        self._pythons, self._failed = set[str](), None
        self.refused: list[str] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0, limit=LONGEST)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.end()

    async def stand_in(self, network: ClosedNetwork) -> None:
        """Have an agent in a box find this door there. Raises ConfigError."""
        await network.lead(LOOPBACK, self._port, self._serve, FUNCTION, LONGEST)

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which the agent's Python finds the door."""
        settings = {"port": self._port, "token": self._token, "functions": self._tools, "watched": self._watched}
        path = os.pathsep.join(filter(None, (str(LOADER), environment.get("PYTHONPATH", ""))))
        return {VARIABLE: json.dumps(settings), "PYTHONPATH": path}

    def why_unentered(self) -> str:
        """Return what to do if no call came."""
        if not self._pythons:
            why = "no Python that the agent started opened it: -I, -E and -S keep it out, and so does a PYTHONPATH of its own"
        else:
            why = f"the agent's {' and '.join(sorted(self._pythons))} opened it, and executed no tool that the probe knows"
        return f"no function was called through the door of functions: {why}; {WHAT_TO_DO}"

    async def end(self) -> None:
        """End all connections, as they end with the agent. What a gate is at is done first, but for what calls this. Raises
        what a gate has raised."""
        links = {task: writer for task, writer in self._links.items() if task is not asyncio.current_task()}
        for writer in links.values():
            writer.close()
        if links:
            await asyncio.wait(links)
        if failed := self._failed:
            self._failed = None
            raise failed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        if len(self._links) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._links[task] = writer
        link = AgentLink(self._desk, writer)
        try:
            given = await _token(reader)
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
                self._desk.gate().notice(FUNCTION, "a process without the door's token connected; it was refused")
                return
            while message := await self._next(reader):
                if isinstance(message.get("call"), int):
                    await link.take(message)
                else:
                    self._keep({name: str(told)[:LONGEST_TOLD] for name, told in message.items()})
            await link.leave()
        except Exception as error:  # what a gate raised
            self._failed = self._failed or error
        finally:
            writer.close()
            del self._links[task]

    async def _next(self, reader: asyncio.StreamReader) -> dict[str, Any]:
        """Return the next message; {} at the end, which a line that is no message is too."""
        try:
            return await _message(reader)
        except (ValueError, RecursionError):
            self._desk.gate().notice(FUNCTION, NO_MESSAGE)
            return {}

    def _keep(self, told: Mapping[str, str]) -> None:
        """Keep what a process tells of itself."""
        if "hello" in told and len(self._pythons) < MOST_TOLD:
            self._pythons.add(told["hello"])
        if "refused" in told and len(self.refused) < MOST_TOLD:
            self.refused.append(told["refused"])
        if "seen" in told and len(self.seen) < MOST_TOLD:
            self.seen[told["seen"], told.get("what", "")] = None
        if "notice" in told:
            self._desk.gate().notice(FUNCTION, told["notice"])


class AgentLink:
    """The calls of one process of the agent."""

    def __init__(self, desk: Desk, writer: asyncio.StreamWriter):
        self._desk, self._writer = desk, writer
        self._calls = dict[int, LiveCall]()
        self._silent = HeldAnswers(desk.gate)
        self._left = set[LiveCall]()
        """The calls whose caller waits no more."""
        self._tasks = set[asyncio.Task[None]]()

    async def take(self, message: dict[str, Any]) -> None:
        """Begin what a message asks for, and do what later messages depend on."""
        number = message["call"]
        if "arrived" in message:
            tool, arguments = str(message["arrived"]), message.get("arguments")
            self._calls[number] = call = self._desk.call(FUNCTION, "function", tool, arguments, wire=str(number))
            self._start(self._arrive(call))
        elif number in self._calls:
            if "answered" in message:
                self._start(self._answer(self._calls[number], message))
            elif "left" in message:
                self._cancel(self._calls[number])
            elif "given" in message:
                await self._desk.gate().note_given(self._calls.pop(number))
            else:
                await self._desk.gate().note_end(self._calls.pop(number))

    async def leave(self) -> None:
        """Note that the process has left, and wait for what a gate is at."""
        for call in self._silent:
            self._silent.end(call, "disconnected")
        await asyncio.gather(*self._tasks)
        for call in self._calls.values():
            if call.kept.get("passed"):
                await self._desk.gate().note_end(call)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _cancel(self, call: LiveCall) -> None:
        if call in self._silent:
            self._silent.end(call, "cancelled")
        else:
            self._left.add(call)
            self._desk.gate().went(call, "cancelled")

    def _send(self, call: LiveCall, do: str, **more: JsonValue) -> None:
        with suppress(OSError):
            self._writer.write(json.dumps({"call": int(call.wire), "do": do, **more}).encode() + b"\n")

    async def _arrive(self, call: LiveCall) -> None:
        self._silent.end_repeated(call)
        before = await self._desk.gate().arrive(call)
        if before == "pass" and call in self._left:
            await self._desk.gate().note_end(call)
        elif before == "pass" and call.taped:
            await self._answer(call, json.loads(call.taped))
        elif before == "pass":
            call.kept["passed"] = True
            self._send(call, "pass")
        elif before == "answer":
            self._give(call, json.loads(call.instead or b"{}"))
        elif before != "drop":
            call.failed = True
            self._send(call, "raise", kind="ConnectionError", text=REFUSED)

    async def _answer(self, call: LiveCall, outcome: dict[str, Any]) -> None:
        """Show the gate what a function gave, and tell the agent's side what to give."""
        call.kept["passed"] = False
        call.answer, call.failed = outcome.get("answered"), bool(outcome.get("failed"))
        kept = {key: outcome.get(key) for key in ("answered", "failed")}
        raw = json.dumps(kept).encode() if call.failed or outcome.get("whole", True) else b""
        after = await self._desk.gate().answer(call, raw if len(raw) <= LARGEST else b"")
        if call in self._left or after == "drop":
            return
        if after == "silence" and await self._silent.wait(call) != "waits_longer":
            return
        if after in ("give", "silence"):
            self._give(call, outcome) if call.taped else self._send(call, "give")
        elif after == "stale":
            self._give(call, json.loads(call.instead or b"{}"))
        elif after in ("break", "error"):
            self._send(call, "raise", kind="TimeoutError" if after == "break" else "ConnectionError", text=LATE)
        else:
            self._send(call, "value", value=damage(call.answer, after))

    def _give(self, call: LiveCall, outcome: Mapping[str, Any]) -> None:
        """Give an outcome that was recorded."""
        value = outcome.get("answered")
        if outcome.get("failed") and isinstance(value, dict):
            self._send(call, "raise", kind=str(value.get("error")), text=value.get("text"))
        else:
            self._send(call, "value", value=value)


def tools_of(functions: tuple[str, ...]) -> dict[str, str]:
    """Return the name of the tool for each `MODULE:FUNCTION`: the function's, if no other is called so."""
    names = Counter(function.partition(":")[2] for function in functions)
    return {each: each if names[each.partition(":")[2]] > 1 else each.partition(":")[2] for each in functions}


async def _token(reader: asyncio.StreamReader) -> str:
    """Return the token in the first line; "" if there is none, or a line that is too long for it."""
    line = bytearray()
    try:
        while not line.endswith(b"\n") and len(line) < LONGEST_TOKEN and (byte := await reader.read(1)):
            line += byte
        message = json.loads(line)
    except (OSError, ValueError, RecursionError):
        return ""
    return str(message.get("token")) if isinstance(message, dict) else ""


async def _message(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Return the next message; {} at the end, also in the midst of a line. Raises ValueError, RecursionError for no message."""
    try:
        line = await reader.readline()
    except OSError:
        return {}
    if not line.endswith(b"\n"):
        return {}
    message = json.loads(line)
    if not isinstance(message, dict) or not (isinstance(message.get("call"), int) or WITHOUT_CALL & message.keys()):
        raise ValueError
    return message


KIND = DoorKind("function")
