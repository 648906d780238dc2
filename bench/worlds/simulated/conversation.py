"""What an agent that knows nothing but its conversation knows of the calls that it made: each with what it was told."""

from __future__ import annotations

import ast
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.models.base import Message
from bench.worlds.environment import Call

NOTHING_TOLD = "unanswered"


@dataclass(frozen=True)
class ToolResult:
    """What came of a call: `value` is the result, bare or as the world's door wraps it; `code` says why there is none, "" where
    there is one."""

    value: Any = None
    code: str = ""


class Conversation:
    """Answers are given out in the order in which they came; `names` maps a world's tools to the names that they are offered
    under."""

    def __init__(self, messages: Iterable[Message], names: Mapping[str, str]):
        self._answers: dict[str, deque[ToolResult]] = {}
        by_offer = {offered: name for name, offered in names.items()}
        open_calls: dict[str, Call | None] = {}
        for message in messages:
            for made in message.tool_calls:
                open_calls[made.id] = _call(by_offer.get(made.name, made.name), made.arguments)
            call = open_calls.pop(message.tool_call_id, None) if message.role == "tool" else None
            if call:
                self._answers.setdefault(_key(call), deque()).append(told_in(message.content))

    def next_answer(self, call: Call) -> ToolResult | None:
        """The next answer to this call; None where it was not made again."""
        answers = self._answers.get(_key(call))
        return answers.popleft() if answers else None


def offered(tools: Sequence[Mapping[str, Any]], wanted: Iterable[str]) -> dict[str, str]:
    """Tool of a world -> the name that it is offered under: its own, or one that ends in it, as where a framework puts a
    server's name before."""
    names = [tool["function"]["name"] for tool in tools]
    values = {}
    for tool in wanted:
        ends = (name for name in names if name.endswith(tool) and not name[: -len(tool)][-1:].isalnum())
        if match := next((name for name in names if name == tool), None) or next(ends, None):
            values[tool] = match
    return values


def told_in(content: str) -> ToolResult:
    """What a tool's result says: JSON, Python's own way of writing it, or an error in whatever words."""
    value = _unpacked(_read(content))
    if value is _UNREADABLE:
        return ToolResult(code=NOTHING_TOLD)
    if isinstance(value, dict) and isinstance(error := value.get("error"), dict | str):
        code = error.get("code") if isinstance(error, dict) else ""
        return ToolResult(code=code if isinstance(code, str) and code else NOTHING_TOLD)
    return ToolResult(value)


def result_of(value: Any) -> Any:
    """Without what the world's door puts around it."""
    is_wrapped = isinstance(value, dict) and "result" in value and value.keys() <= {"result", "versions"}
    return value["result"] if is_wrapped else value


_UNREADABLE = object()


def _read(text: str) -> Any:
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


def _unpacked(value: Any) -> Any:
    """The text in a part, or in several, as MCP's results have them, read in its turn."""
    parts = value if isinstance(value, list) and value else [value]
    if all(isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in parts):
        return _read("".join(part["text"] for part in parts))
    return value


def _call(name: str, arguments: str) -> Call | None:
    given = _read(arguments) if arguments.strip() else {}
    return Call(name, given) if isinstance(given, dict) else None


def _key(call: Call) -> str:
    return f"{call.tool} {json.dumps(call.arguments, sort_keys=True, default=str)}"
