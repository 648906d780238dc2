"""Calls in the JSON-RPC messages of MCP, and how a fault changes their responses. Both transports, stdio and Streamable
HTTP, use this module."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bench.probe.points import JSON_RPC, AnswerAction
from bench.probe.run.gateway.damaged import GARBAGE
from bench.probe.run.gateway.gate import DoorContext, LiveCall
from bench.record.probe_events import GatewayCall
from bench.wire.json_rpc import Object, RpcMessage, as_object, key_of, messages_of, text_of

MAX_REMEMBERED = 10_000
"""The most tasks and requests for input, and the most tools, that are remembered of a server."""
LARGE_TEXT_BYTES = 2**20
"""The approximate size of the text in a response that is too large."""
REFUSAL_TEXT = "The service is not available."
"""The text of an error that replaces a response."""
INTERNAL_ERROR = -32603
"""A code of JSON-RPC."""
_META_VERSION = "io.modelcontextprotocol/protocolVersion"


class ListedTool(NamedTuple):
    """A tool as its server lists it: its definition as JSON, whether it says that it only reads (None if it says nothing), and
    whether it says that it is idempotent."""

    definition: str = ""
    reads: bool | None = None
    is_idempotent: bool = False


_UNLISTED = ListedTool()


class KnownServer:
    """What the gateway knows about one MCP server: its tools, and the call to which each task or request for input belongs.
    The object outlives a connection. `was_asked`: whether the server was asked for its tools."""

    def __init__(self, door: str, kind: str):
        self.door, self.kind, self.was_asked = door, kind, False
        self._tools: dict[str, ListedTool] = {}
        self.handshake: dict[str, Any] = {}
        """Method that is no call -> its last response, for a tape."""
        self._continued_calls: dict[str, int] = {}

    def call_of(self, message: RpcMessage, context: DoorContext) -> LiveCall | None:
        """Return the call that a message requests; None if it requests none. A request that polls a task, or that sends the
        input for which a server asked, continues an earlier call."""
        if not is_call(message):
            return None
        params = message.params
        if message.method == "tools/call":
            tool, arguments = params.get("name"), params.get("arguments", {})
            tool = tool if isinstance(tool, str) else ""
            reads = self._tools.get(tool, _UNLISTED).reads
            sends_input = "inputResponses" in params or "requestState" in params
            continues = self._continued_calls.get(_input_key(params)) if sends_input else None
        else:
            tool, arguments, reads = message.method, params, message.method != "tasks/cancel"
            continues = self._continued_calls.get(_task_key(params))
        return context.call(
            self.door,
            self.kind,
            tool,
            arguments,
            reads=reads,
            idempotent=message.method == "tools/call" and self._tools.get(tool, _UNLISTED).is_idempotent,
            wire_id=message.key,
            continues=continues,
            door_state={"request": message},
        )

    def with_claims(self, call: GatewayCall) -> GatewayCall:
        """Return a recorded call with the claims of its tool: whether the tool only reads, and whether it is idempotent."""
        tool = self._tools.get(call.tool, _UNLISTED)
        return replace(call, reads=tool.reads, idempotent=tool.is_idempotent)

    def answer(self, call: LiveCall, message: RpcMessage) -> None:
        """Record the server's response with the call, and which later requests will continue the call."""
        result, call_number = message.result, call.continues or call.number
        call.answer = message.body.get("result", message.body.get("error"))
        call.failed = "error" in message.body or result.get("isError") is True
        if isinstance(result.get("task"), dict):
            _remember(self._continued_calls, _task_key(result["task"]), call_number)
        if result.get("resultType") == "input_required":
            params: Object = call.door_state["request"].params
            _remember(self._continued_calls, _input_key({**params, "requestState": result.get("requestState")}), call_number)

    def learn(self, request: RpcMessage, message: RpcMessage) -> list[str]:
        """Record a response that belongs to no call, and the server's tools if it lists them. Return a line on each difference
        from the tools listed before."""
        _remember(self.handshake, request.method, message.body)
        if request.method != "tools/list":
            return []
        self.was_asked = True
        tools = [tool for tool in _list(message.result.get("tools")) if isinstance(tool, dict)]
        listed = {str(tool.get("name")): _listed_tool(tool) for tool in tools}
        known, is_whole = self._tools, "cursor" not in request.params and not message.result.get("nextCursor")
        differences = [f"its tool {name!r} has changed" for name in listed if name in known and known[name] != listed[name]]
        if known and is_whole and listed:
            differences += [f"its tool {name!r} is new" for name in listed.keys() - known.keys()]
            differences += [f"its tool {name!r} is gone" for name in known.keys() - listed.keys()]
            known.clear()
        for name, definition in listed.items():
            _remember(known, name, definition)
        return sorted(differences)


def is_call(message: RpcMessage) -> bool:
    """Return whether a message requests a call of a tool, or polls the task that a call began."""
    polls = message.method.startswith("tasks/") and "taskId" in message.params
    return message.kind == "request" and (message.method == "tools/call" or polls)


def error_answer(call: LiveCall) -> bytes:
    """Return the response to a call that is not forwarded: a prepared response, or an error in the wire form
    `call.wire_form`."""
    request: RpcMessage = call.door_state["request"]
    for earlier in messages_of(call.replacement or b""):
        return text_of({**earlier.body, "id": request.body["id"]})
    if call.wire_form == JSON_RPC:
        outcome: Object = {"error": {"code": INTERNAL_ERROR, "message": REFUSAL_TEXT}}
    else:
        outcome = {"result": {"content": [{"type": "text", "text": REFUSAL_TEXT}], "isError": True}}
        if _META_VERSION in as_object(request.params.get("_meta")):
            outcome["result"]["resultType"] = "complete"
    return text_of({"jsonrpc": "2.0", "id": request.body["id"], **outcome})


def changed_answer(call: LiveCall, message: RpcMessage, action: AnswerAction) -> bytes:
    """Return the response that replaces the server's: an `error`, or for a read `stale`, `empty`, `garbled` or `too_large`."""
    if action == "error":
        return error_answer(call)
    if action == "stale" and call.replacement is not None:
        for earlier in messages_of(call.replacement):
            return text_of({**earlier.body, "id": message.body["id"]})
    make_change, result = _CHANGE_FACTORIES.get(action), message.result
    if not make_change or not result:
        return text_of(message.body)  # there is nothing to change, or no earlier response
    change = make_change()
    content = [_with_text(part, change) for part in _list(result.get("content"))] if action != "empty" else []
    result = {**result, "content": content}
    if "structuredContent" in result:
        result["structuredContent"] = _with_texts(result["structuredContent"], make_change(), action == "empty")
    return text_of({**message.body, "result": result})


def second_delivery(call: LiveCall, key: str) -> bytes:
    """Return the request that delivers a call a second time, with another id and another progress token."""
    body: Object = call.door_state["request"].body
    params = as_object(body.get("params"))
    if "progressToken" in as_object(params.get("_meta")):
        params = {**params, "_meta": {**params["_meta"], "progressToken": key}}
    return text_of({**body, "id": key, "params": params})


def join_messages(bodies: Sequence[bytes], batch: bool) -> bytes:
    """Return messages as one line, as a JSON list if they came in a batch."""
    return b"[" + b",".join(bodies) + b"]" if batch else b"".join(bodies)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _listed_tool(tool: Object) -> ListedTool:
    """Return a tool as its server lists it."""
    claims = _claim(tool, "readOnlyHint"), _claim(tool, "idempotentHint") is True
    return ListedTool(json.dumps(tool, sort_keys=True), *claims)


def _claim(tool: Object, hint: str) -> bool | None:
    """Return the value of a tool's annotation `hint`; None if the tool does not have it."""
    claim = as_object(tool.get("annotations")).get(hint)
    return claim if isinstance(claim, bool) else None


def _task_key(params: Object) -> str:
    """Return the key under which the call that began a task is remembered."""
    return f"task {key_of(params.get('taskId'))}"


def _input_key(params: Object) -> str:
    """Return the key under which a call is remembered whose server asked for input: the state that the server sent with its
    question, or without a state the tool and its arguments."""
    state = params.get("requestState")
    return f"state {key_of(state)}" if state is not None else f"call {key_of([params.get('name'), params.get('arguments')])}"


def _remember(table: dict[str, Any], key: str, value: Any) -> None:
    """Add an entry to a table, and remove the oldest beyond a bound."""
    table[key] = value
    if len(table) > MAX_REMEMBERED:
        del table[next(iter(table))]


TextChange = Callable[[str], str]


def _enlarge_first_text() -> TextChange:
    """Return a change that makes the first text too large and leaves later texts as they are, since the number of texts is not
    bounded."""
    extra_bytes = iter([LARGE_TEXT_BYTES])
    return lambda text: (text or " ") * (next(extra_bytes, 0) // len((text or " ").encode()) + 1)


_CHANGE_FACTORIES: dict[AnswerAction, Callable[[], TextChange]] = {
    "empty": lambda: lambda _: "",
    "garbled": lambda: lambda text: text[: len(text) // 2] + GARBAGE,
    "too_large": _enlarge_first_text,
}


def _with_text(part: Any, change: TextChange) -> Any:
    """Return a part of a result with its text changed."""
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {**part, "text": change(part["text"])}
    return part


def _with_texts(value: Any, change: TextChange, empties_lists: bool) -> Any:
    """Return a value, whose depth is bounded, with all its texts changed. If `empties_lists`, lists become empty too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [] if empties_lists else [_with_texts(item, change, empties_lists) for item in value]
    if isinstance(value, dict):
        return {key: _with_texts(item, change, empties_lists) for key, item in value.items()}
    return value
