"""The door of functions, for tools in the agent's own process. A loader in that process asks this door before and after each
call.

The agent's Python, and each Python that it starts, finds the loader (`loader/`) through PYTHONPATH. The loader sends JSON,
one message a line: `arrived` with a tool and its arguments, `answered` with the function's result, `given` when the agent
has the result, `ended` when the function ended without a result, `left` when its caller no longer waits. Values have the
form of `loader/agent_door/values`.
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
from bench.probe.run.gateway.gate import DoorContext, LiveCall
from bench.probe.run.gateway.held_answers import HeldAnswers
from bench.probe.run.gateway.mcp import REFUSAL_TEXT
from bench.wire.access_guard import MAX_CONNECTIONS

LOADER_FOLDER = Path(__file__).with_name("loader")
DOOR_VARIABLE = "BENCH_FUNCTION_DOOR"
FUNCTION_DOOR = "function"
LOOPBACK = "127.0.0.1"
MAX_LINE_BYTES, MAX_ANSWER_BYTES = 2**26, 2**20
"""The longest line of a process, and the longest result that can be given again."""
REPORT_KEYS = frozenset(("hello", "notice", "refused", "seen"))
MAX_REPORTS, MAX_REPORT_CHARS = 1000, 10_000
"""The most reports of each kind that are kept, and the characters of each."""
MAX_TOKEN_BYTES = 256
"""The longest first line of a connection, which has the token."""
NO_MESSAGE = "a process of the agent sent a line that is no message of this door; its connection was ended"
TIMEOUT_TEXT = "The call timed out."
ADVICE = 'write what acts as functions = ["MODULE:FUNCTION"], or give it to the agent over MCP or HTTP'


class FunctionDoor:
    """Listens for the loaders of the agent's processes while its context lasts.

    Args:
        context: What all doors share.
        functions: `MODULE:FUNCTION` of each tool that the owner names.
        watched: Whether the agent's processes report which MCP servers they start.

    unwrappable  why a function that the owner names cannot be wrapped, a line each
    facts        what the processes reported, as keys: the kind of a fact (`framework` that was imported, server that was
                 `served`, function that `acted`), and its text
    """

    _gate_error: Exception | None

    def __init__(self, context: DoorContext, functions: tuple[str, ...], *, watched: bool = False):
        self._context, self._token, self._watched = context, token_urlsafe(24), watched
        self.facts = dict[tuple[str, str], None]()
        self._tools = tool_names(functions)
        self._connections = dict[asyncio.Task[None], asyncio.StreamWriter]()
        self._python_versions, self._gate_error = set[str](), None
        self.unwrappable: list[str] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0, limit=MAX_LINE_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.end()

    async def serve_in_box(self, network: ClosedNetwork) -> None:
        """Make the door reachable from an agent in a box. Raises ConfigError."""
        await network.serve_at(LOOPBACK, self._port, self._serve, FUNCTION_DOOR, MAX_LINE_BYTES)

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which the agent's Python finds the loader and the door."""
        settings = {"port": self._port, "token": self._token, "functions": self._tools, "watched": self._watched}
        path = os.pathsep.join(filter(None, (str(LOADER_FOLDER), environment.get("PYTHONPATH", ""))))
        return {DOOR_VARIABLE: json.dumps(settings), "PYTHONPATH": path}

    def why_no_call(self) -> str:
        """Return why no function may have been called, and what the owner can do, as one line."""
        if not self._python_versions:
            why = "no Python that the agent started opened it: -I, -E and -S keep it out, and so does a PYTHONPATH of its own"
        else:
            versions = " and ".join(sorted(self._python_versions))
            why = f"the agent's {versions} opened it, and executed no tool that the probe knows"
        return f"no function was called through the door of functions: {why}; {ADVICE}"

    async def end(self) -> None:
        """Close all connections, since the agent has ended. Calls at the gate are finished first, except the caller's.
        Raises an exception that a gate has raised."""
        open_connections = {task: writer for task, writer in self._connections.items() if task is not asyncio.current_task()}
        for writer in open_connections.values():
            writer.close()
        if open_connections:
            await asyncio.wait(open_connections)
        if gate_error := self._gate_error:
            self._gate_error = None
            raise gate_error

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one process of the agent until it disconnects."""
        task = asyncio.current_task()
        assert task
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._connections[task] = writer
        connection = AgentConnection(self._context, writer)
        try:
            token = await _receive_token(reader)
            if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
                self._context.gate().notice(FUNCTION_DOOR, "a process without the door's token connected; it was refused")
                return
            while message := await self._next_message(reader):
                if isinstance(message.get("call"), int):
                    await connection.handle(message)
                else:
                    self._record_report({name: str(text)[:MAX_REPORT_CHARS] for name, text in message.items()})
            await connection.close()
        except Exception as error:  # what a gate raised
            self._gate_error = self._gate_error or error
        finally:
            writer.close()
            del self._connections[task]

    async def _next_message(self, reader: asyncio.StreamReader) -> dict[str, Any]:
        """Return the next message; {} at the end, or after a line that is no message."""
        try:
            return await _receive_message(reader)
        except (ValueError, RecursionError):
            self._context.gate().notice(FUNCTION_DOOR, NO_MESSAGE)
            return {}

    def _record_report(self, report: Mapping[str, str]) -> None:
        """Record a report of a process, which belongs to no call."""
        if "hello" in report and len(self._python_versions) < MAX_REPORTS:
            self._python_versions.add(report["hello"])
        if "refused" in report and len(self.unwrappable) < MAX_REPORTS:
            self.unwrappable.append(report["refused"])
        if "seen" in report and len(self.facts) < MAX_REPORTS:
            self.facts[report["seen"], report.get("what", "")] = None
        if "notice" in report:
            self._context.gate().notice(FUNCTION_DOOR, report["notice"])


class AgentConnection:
    """The calls of one process of the agent."""

    def __init__(self, context: DoorContext, writer: asyncio.StreamWriter):
        self._context, self._writer = context, writer
        self._calls = dict[int, LiveCall]()
        self._held_answers = HeldAnswers(context.gate)
        self._abandoned_calls = set[LiveCall]()
        """The calls whose caller waits no longer."""
        self._tasks = set[asyncio.Task[None]]()

    async def handle(self, message: dict[str, Any]) -> None:
        """Handle one message of the process."""
        number = message["call"]
        if "arrived" in message:
            tool, arguments = str(message["arrived"]), message.get("arguments")
            self._calls[number] = call = self._context.call(FUNCTION_DOOR, "function", tool, arguments, wire_id=str(number))
            self._start(self._arrive(call))
        elif number in self._calls:
            if "answered" in message:
                self._start(self._pass_answer(self._calls[number], message))
            elif "left" in message:
                self._cancel(self._calls[number])
            elif "given" in message:
                await self._context.gate().note_given(self._calls.pop(number))
            else:
                await self._context.gate().note_end(self._calls.pop(number))

    async def close(self) -> None:
        """Note that the process has disconnected, and wait until the gate has handled its calls."""
        for call in self._held_answers:
            self._held_answers.end(call, "disconnected")
        await asyncio.gather(*self._tasks)
        for call in self._calls.values():
            if call.door_state.get("passed"):
                await self._context.gate().note_end(call)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work as a task for which `close` waits."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _cancel(self, call: LiveCall) -> None:
        """Note that a call's caller no longer waits."""
        if call in self._held_answers:
            self._held_answers.end(call, "cancelled")
        else:
            self._abandoned_calls.add(call)
            self._context.gate().note_wait_end(call, "cancelled")

    def _send(self, call: LiveCall, action: str, **fields: JsonValue) -> None:
        """Tell the process what to do with a call: the action, and the fields that it needs."""
        with suppress(OSError):
            self._writer.write(json.dumps({"call": int(call.wire_id), "do": action, **fields}).encode() + b"\n")

    async def _arrive(self, call: LiveCall) -> None:
        """Ask the gate what happens to a call (pass, answer, refuse or drop), and tell the process."""
        self._held_answers.end_repeated(call)
        action = await self._context.gate().arrive(call)
        if action == "pass" and call in self._abandoned_calls:
            await self._context.gate().note_end(call)
        elif action == "pass" and call.taped_answer:
            await self._pass_answer(call, json.loads(call.taped_answer))
        elif action == "pass":
            call.door_state["passed"] = True
            self._send(call, "pass")
        elif action == "answer":
            self._end_with(call, json.loads(call.replacement or b"{}"))
        elif action != "drop":  # "refuse"
            call.failed = True
            self._send(call, "raise", kind="ConnectionError", text=REFUSAL_TEXT)

    async def _pass_answer(self, call: LiveCall, outcome: dict[str, Any]) -> None:
        """Show the gate a function's result. If the gate lets the result pass, tell the process to return or raise it."""
        call.door_state["passed"] = False
        call.answer, call.failed = outcome.get("answered"), bool(outcome.get("failed"))
        recorded = {key: outcome.get(key) for key in ("answered", "failed")}
        raw = json.dumps(recorded).encode() if call.failed or outcome.get("whole", True) else b""
        action = await self._context.gate().answer(call, raw if len(raw) <= MAX_ANSWER_BYTES else b"")
        if call in self._abandoned_calls or action == "drop":
            return
        if action == "silence" and await self._held_answers.wait(call) != "waits_longer":
            return
        if action in ("give", "silence"):
            self._end_with(call, outcome) if call.taped_answer else self._send(call, "give")
        elif action == "stale":
            self._end_with(call, json.loads(call.replacement or b"{}"))
        elif action in ("break", "error"):
            self._send(call, "raise", kind="TimeoutError" if action == "break" else "ConnectionError", text=TIMEOUT_TEXT)
        else:  # "empty", "garbled", "too_large"
            self._send(call, "value", value=damage(call.answer, action))

    def _end_with(self, call: LiveCall, outcome: Mapping[str, Any]) -> None:
        """Tell the process to return or raise this result in place of the function's."""
        value = outcome.get("answered")
        if outcome.get("failed") and isinstance(value, dict):
            self._send(call, "raise", kind=str(value.get("error")), text=value.get("text"))
        else:
            self._send(call, "value", value=value)


def tool_names(functions: tuple[str, ...]) -> dict[str, str]:
    """Return `MODULE:FUNCTION` -> the name of its tool: the function's name, or the whole text if two functions have the same
    name."""
    counts = Counter(name.partition(":")[2] for name in functions)
    return {path: path if counts[path.partition(":")[2]] > 1 else path.partition(":")[2] for path in functions}


async def _receive_token(reader: asyncio.StreamReader) -> str:
    """Return the token in a connection's first line; "" if it has none, or is too long."""
    line = bytearray()
    try:
        while not line.endswith(b"\n") and len(line) < MAX_TOKEN_BYTES and (byte := await reader.read(1)):
            line += byte
        message = json.loads(line)
    except (OSError, ValueError, RecursionError):
        return ""
    return str(message.get("token")) if isinstance(message, dict) else ""


async def _receive_message(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Return the next message; {} at the end, also within a line. Raises ValueError or RecursionError for a line that is no
    message."""
    try:
        line = await reader.readline()
    except OSError:
        return {}
    if not line.endswith(b"\n"):
        return {}
    message = json.loads(line)
    if not isinstance(message, dict) or not (isinstance(message.get("call"), int) or REPORT_KEYS & message.keys()):
        raise ValueError
    return message


KIND = DoorKind("function")
