"""The tool calls of a conversation with their answers: the only knowledge of an agent without other memory."""

from __future__ import annotations

import ast
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.record.messages import Message
from bench.worlds.run.environment import Call

NOTHING_TOLD = "unanswered"


@dataclass(frozen=True)
class ToolResult:
    """The result of a call. `value` is the bare result or the result as the world's server wraps it. `code` says why there is
    none; "" if there is one."""

    value: Any = None
    code: str = ""


class Conversation:
    """Returns the answers in a conversation in the order in which they came. `names` maps a world's tools to the names under
    which they are offered."""

    def __init__(self, messages: Iterable[Message], names: Mapping[str, str]):
        self._answers: dict[str, deque[ToolResult]] = {}
        by_offer = {offered: name for name, offered in names.items()}
        open_calls: dict[str, Call | None] = {}
        for message in messages:
            for made in message.tool_calls:
                open_calls[made.id] = _call(by_offer.get(made.name, made.name), made.arguments)
            call = open_calls.pop(message.tool_call_id, None) if message.role == "tool" else None
            if call:
                self._answers.setdefault(_key(call), deque()).append(parse_result(message.content))

    def next_answer(self, call: Call) -> ToolResult | None:
        """Return the next answer to this call; None if the call was not made again."""
        answers = self._answers.get(_key(call))
        return answers.popleft() if answers else None


def names_offered(tools: Sequence[Mapping[str, Any]], wanted: Iterable[str]) -> dict[str, str]:
    """Return the name under which each tool of a world is offered. A framework can put a server's name before a tool's name."""
    names = [tool["function"]["name"] for tool in tools]
    values = {}
    for tool in wanted:
        ends = (name for name in names if name.endswith(tool) and not name[: -len(tool)][-1:].isalnum())
        if match := next((name for name in names if name == tool), None) or next(ends, None):
            values[tool] = match
    return values


def parse_result(content: str) -> ToolResult:
    """Parse a tool's result: JSON, a Python literal, or an error text."""
    value = _unpack(_read(content))
    if value is _UNREADABLE:
        return ToolResult(code=NOTHING_TOLD)
    if isinstance(value, dict) and isinstance(error := value.get("error"), dict | str):
        code = error.get("code") if isinstance(error, dict) else ""
        return ToolResult(code=code if isinstance(code, str) and code else NOTHING_TOLD)
    return ToolResult(value)


def result_of(value: Any) -> Any:
    """Return the result without the object in which the world's server wraps it."""
    is_wrapped = isinstance(value, dict) and "result" in value and value.keys() <= {"result", "versions"}
    return value["result"] if is_wrapped else value


_UNREADABLE = object()


def _read(text: str) -> Any:
    """Parse a result as JSON or as a Python literal; None if it is empty."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _UNREADABLE


def _unpack(value: Any) -> Any:
    """Parse the text of one or several parts, as MCP's results have them."""
    parts = value if isinstance(value, list) and value else [value]
    if all(isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in parts):
        return _read("".join(part["text"] for part in parts))
    return value


def _call(name: str, arguments: str) -> Call | None:
    given = _read(arguments) if arguments.strip() else {}
    return Call(name, given) if isinstance(given, dict) else None


def _key(call: Call) -> str:
    return f"{call.tool} {json.dumps(call.arguments, sort_keys=True, default=str)}"
