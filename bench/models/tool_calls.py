"""Tool calls as a model writes them, and the one JSON text that they are kept, compared and counted as."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.models.extra_fields import extra_in, extra_text, saying

OF_A_CALL = ("id", "type", "function", "index")
OF_A_FUNCTION = ("name", "arguments")


@dataclass(frozen=True)
class ToolCall:
    """`arguments` are the text that the model wrote, which need be no JSON. `extra` is what else the call has
    (`bench.models.extra_fields`), with that of its function in `function`."""

    id: str
    name: str
    arguments: str
    extra: str = ""

    @property
    def plain(self) -> dict[str, Any]:
        """As chat completions write it."""
        extra = extra_in(self.extra)
        function = {"name": self.name, **extra.pop("function", {}), "arguments": self.arguments}
        return {"id": self.id, "type": "function", **extra, "function": function}


def call_extra(call: Mapping[str, Any], function: Mapping[str, Any], clean: Callable[[str], str] = str) -> str:
    """What a call, and the function in it, have beside what each call has."""
    return extra_text(_beside(call, OF_A_CALL) | {"function": saying(_beside(function, OF_A_FUNCTION))}, clean)


def _beside(fields: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in known}


def text_of(calls: Collection[ToolCall]) -> str:
    """The calls as one JSON text, as they stand in a chat completion; "" for none."""
    return json.dumps([call.plain for call in calls], ensure_ascii=False) if calls else ""


def counted_text_of(calls: Collection[ToolCall]) -> str:
    """The text by which their tokens are counted: without what a provider only wants back."""
    return text_of([replace(call, extra="") for call in calls]) if calls else ""


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """The calls that such a text holds. Raises ValueError for a text that `text_of` does not write."""
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
