"""Write a request as the fields of a chat completion."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bench.record.extra_fields import extra_in
from bench.record.messages import Message
from bench.run.models.options import LENGTHS
from bench.run.openai.settings import OpenAISettings


def message_fields(message: Message, omitted: Collection[str] = ()) -> dict[str, Any]:
    """Return a message as JSON without the omitted fields, also in its tool calls. The content of a message that only calls
    tools is null, since some endpoints refuse an empty text."""
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["content"] = message.content or None
        fields["tool_calls"] = [without_fields(call.plain, omitted) for call in message.tool_calls]
    if message.tool_call_id:
        fields["tool_call_id"] = message.tool_call_id
    return without_fields(fields | extra_in(message.extra), omitted)


def without_fields(fields: Mapping[str, Any], omitted: Collection[str]) -> dict[str, Any]:
    """Return the fields without the omitted ones, also in the field `function`."""
    kept = {name: value for name, value in fields.items() if name not in omitted}
    return kept | {"function": without_fields(kept["function"], omitted)} if isinstance(kept.get("function"), dict) else kept


def endpoint_options(options: Mapping[str, Any], settings: OpenAISettings) -> dict[str, Any]:
    """Return the options as this endpoint accepts them: the limit on the reply's length is in the field that the settings use,
    so that there are never two limits."""
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
