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

NO_CODE = "unanswered"


@dataclass(frozen=True)
class ToolResult:
    """The result of a call. `value` is the result, perhaps in the object in which the world's server wraps results. `code` says
    why there is no result; "" if there is one."""

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
            for tool_call in message.tool_calls:
                tool = by_offer.get(tool_call.name, tool_call.name)
                open_calls[tool_call.id] = _parse_call(tool, tool_call.arguments)
            call = open_calls.pop(message.tool_call_id, None) if message.role == "tool" else None
            if call:
                self._answers.setdefault(_key_of(call), deque()).append(parse_result(message.content))

    def next_answer(self, call: Call) -> ToolResult | None:
        """Return the next answer to this call; None if the call was not made again."""
        answers = self._answers.get(_key_of(call))
        return answers.popleft() if answers else None


def offered_names(tools: Sequence[Mapping[str, Any]], wanted: Iterable[str]) -> dict[str, str]:
    """Return the name under which each tool of a world is offered. A framework can put a server's name before a tool's name."""
    names = [tool["function"]["name"] for tool in tools]
    offered = {}
    for tool in wanted:
        with_prefix = (name for name in names if name.endswith(tool) and not name[: -len(tool)][-1:].isalnum())
        if match := tool if tool in names else next(with_prefix, None):
            offered[tool] = match
    return offered


def parse_result(content: str) -> ToolResult:
    """Parse a tool's result: JSON, a Python literal, or an error text."""
    value = _unpack(_parse(content))
    if value is _UNREADABLE:
        return ToolResult(code=NO_CODE)
    if isinstance(value, dict) and isinstance(error := value.get("error"), dict | str):
        code = error.get("code") if isinstance(error, dict) else ""
        return ToolResult(code=code if isinstance(code, str) and code else NO_CODE)
    return ToolResult(value)


def result_of(value: Any) -> Any:
    """Return the result without the object in which the world's server wraps it."""
    is_wrapped = isinstance(value, dict) and "result" in value and value.keys() <= {"result", "versions"}
    return value["result"] if is_wrapped else value


_UNREADABLE = object()


def _parse(text: str) -> Any:
    """Parse a result as JSON or as a Python literal. Return None for an empty text, and _UNREADABLE for a text that is
    neither."""
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
    """Return the parsed text of an MCP result, which consists of one or several text parts. Any other value is returned
    unchanged."""
    parts = value if isinstance(value, list) and value else [value]
    if all(isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in parts):
        return _parse("".join(part["text"] for part in parts))
    return value


def _parse_call(name: str, arguments: str) -> Call | None:
    """Return a call with its parsed arguments; None if they are no object."""
    given = _parse(arguments) if arguments.strip() else {}
    return Call(name, given) if isinstance(given, dict) else None


def _key_of(call: Call) -> str:
    """Return a call in a form in which two calls can be compared."""
    return f"{call.tool} {json.dumps(call.arguments, sort_keys=True, default=str)}"
