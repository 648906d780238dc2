"""The tool calls of a model, and the JSON text in which they are stored, compared and counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.record.extra_fields import extra_in, extra_text, meaningful_fields

OF_A_CALL = ("id", "type", "function", "index")
OF_A_FUNCTION = ("name", "arguments")


@dataclass(frozen=True)
class ToolCall:
    """One tool call. `arguments` is the text that the model wrote, which need not be JSON. `extra` has the call's other fields
    (`bench.record.extra_fields`), and under `function` the other fields of its function."""

    id: str
    name: str
    arguments: str
    extra: str = ""

    @property
    def plain(self) -> dict[str, Any]:
        """The call in the form of a chat completion."""
        extra = extra_in(self.extra)
        function = {"name": self.name, **extra.pop("function", {}), "arguments": self.arguments}
        return {"id": self.id, "type": "function", **extra, "function": function}


def call_extra(call: Mapping[str, Any], function: Mapping[str, Any], clean: Callable[[str], str] = str) -> str:
    """Return the extra fields of a call and of its function as JSON text."""
    return extra_text(
        _other_fields(call, OF_A_CALL) | {"function": meaningful_fields(_other_fields(function, OF_A_FUNCTION))}, clean
    )


def _other_fields(fields: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in known}


def text_of(calls: Collection[ToolCall]) -> str:
    """Return the calls as one JSON text, as in a chat completion; "" for no calls."""
    return json.dumps([call.plain for call in calls], ensure_ascii=False) if calls else ""


def counted_text_of(calls: Collection[ToolCall]) -> str:
    """Return the text whose tokens are counted, without the fields that a provider only wants back."""
    return text_of([replace(call, extra="") for call in calls]) if calls else ""


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """Return the calls in a text that `text_of` made. Raises ValueError for any other text."""
    try:
        calls = tuple(map(_call, json.loads(text) if text else []))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("is no list of tool calls") from error
    if not all(isinstance(word, str) for call in calls for word in (call.id, call.name, call.arguments)):
        raise ValueError("is no list of tool calls")
    return calls


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    return ToolCall(call["id"], function["name"], function["arguments"], call_extra(call, function))
