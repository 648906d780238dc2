"""Tool calls as a model writes them, and the one JSON text that they are kept, compared and counted as."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolCall:
    """`arguments` are the text that the model wrote, which need be no JSON."""

    id: str
    name: str
    arguments: str

    @property
    def plain(self) -> dict[str, Any]:
        """As chat completions write it."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


def text_of(calls: Iterable[ToolCall]) -> str:
    """The calls as one JSON text, as they stand in a chat completion; "" for none."""
    written = [call.plain for call in calls]
    return json.dumps(written, ensure_ascii=False) if written else ""


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """The calls that such a text holds. Raises ValueError for a text that `text_of` does not write."""
    try:
        found = json.loads(text) if text else []
        calls = tuple(ToolCall(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in found)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("is no list of tool calls") from error
    if not all(isinstance(word, str) for call in calls for word in (call.id, call.name, call.arguments)):
        raise ValueError("is no list of tool calls")
    return calls
