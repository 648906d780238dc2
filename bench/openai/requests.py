"""What a request says in a chat completion's own fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bench.models.base import Message
from bench.models.extra_fields import extra_in
from bench.models.options import LENGTHS
from bench.openai.settings import OpenAISettings


def sent(message: Message, omitted: Collection[str] = ()) -> dict[str, Any]:
    """A message, without the fields that are to be left out of it and of its tool calls. One that calls tools and says nothing
    beside has no text, rather than an empty one, which some refuse."""
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["content"] = message.content or None
        fields["tool_calls"] = [without(call.plain, omitted) for call in message.tool_calls]
    if message.tool_call_id:
        fields["tool_call_id"] = message.tool_call_id
    return without(fields | extra_in(message.extra), omitted)


def without(fields: Mapping[str, Any], omitted: Collection[str]) -> dict[str, Any]:
    """The fields but those that are left out, also of the function in them."""
    kept = {name: value for name, value in fields.items() if name not in omitted}
    return kept | {"function": without(kept["function"], omitted)} if isinstance(kept.get("function"), dict) else kept


def within(options: Mapping[str, Any], settings: OpenAISettings) -> dict[str, Any]:
    """The options as this endpoint takes them: a bound on the reply's length stands in the field that the settings use, so that
    there are never two."""
    asked = {name: value for name, value in options.items() if name not in LENGTHS}
    bounds = [options[name] for name in LENGTHS if name in options]
    if not bounds:
        return asked
    if settings.max_tokens is not None:
        field = "max_tokens"
    elif "max_completion_tokens" in (settings.extra_body or {}):
        field = "max_completion_tokens"
    else:
        field = next(name for name in LENGTHS if name in options)
    return {**asked, field: min(bounds)}
