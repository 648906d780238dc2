"""Write a request as the fields of a chat completion."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bench.record.extra_fields import extra_in
from bench.record.messages import Message
from bench.run.models.options import LENGTHS
from bench.run.openai.settings import OpenAISettings


def message_fields(message: Message, omitted: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a message, without the omitted fields in it and in its tool calls. The content of a message that
    only calls tools is None, since some endpoints refuse an empty text."""
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["content"] = message.content or None
        fields["tool_calls"] = [without_fields(call.plain, omitted) for call in message.tool_calls]
    if message.tool_call_id:
        fields["tool_call_id"] = message.tool_call_id
    return without_fields(fields | extra_in(message.extra), omitted)


def without_fields(fields: Mapping[str, Any], omitted: Collection[str]) -> dict[str, Any]:
    """Return the fields without the omitted ones, also in the field `function`."""
    remaining = {name: value for name, value in fields.items() if name not in omitted}
    if isinstance(function := remaining.get("function"), dict):
        remaining["function"] = without_fields(function, omitted)
    return remaining


def endpoint_options(options: Mapping[str, Any], settings: OpenAISettings) -> dict[str, Any]:
    """Return a request's options as this endpoint accepts them. The smallest limit on the reply's length is sent, in the field
    that the settings use, so that there are never two limits."""
    others = {name: value for name, value in options.items() if name not in LENGTHS}
    limits = [options[name] for name in LENGTHS if name in options]
    if not limits:
        return others
    if settings.max_tokens is not None:
        field = "max_tokens"
    elif "max_completion_tokens" in (settings.extra_body or {}):
        field = "max_completion_tokens"
    else:
        field = next(name for name in LENGTHS if name in options)
    return {**others, field: min(limits)}
