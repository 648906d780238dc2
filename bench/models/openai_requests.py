"""What a request says in a chat completion's own fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.models.base import Message
from bench.models.openai_settings import OpenAISettings
from bench.models.options import LENGTHS


def sent(message: Message) -> dict[str, Any]:
    """A message. One that calls tools and says nothing beside has no text, rather than an empty one, which some refuse."""
    if message.tool_calls:
        calls = [call.plain for call in message.tool_calls]
        return {"role": message.role, "content": message.content or None, "tool_calls": calls}
    if message.tool_call_id:
        return {"role": message.role, "content": message.content, "tool_call_id": message.tool_call_id}
    return {"role": message.role, "content": message.content}


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
