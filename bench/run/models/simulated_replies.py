"""Make parts of a simulated model's replies: the next call of a document tool, tool calls, a cut at the limit on the length,
and the smallest value that fits a JSON schema, for outputs without a reference."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.common.seeding import seed_of
from bench.common.tokens import first_tokens
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.models.base import Reply, Request
from bench.run.models.document_tools import LIST, NAME, READ, name_in
from bench.run.models.options import LENGTHS
from bench.scenario import Call, Json, Task


def next_document_call(
    task: Task, subtasks: Iterable[str], messages: Sequence[Message], tools: Iterable[Mapping[str, Any]]
) -> Call | None:
    """Return the next call of the document tools: first the list, then the subtasks' documents in order. Return None if the
    tools are not offered, or if all documents are read."""
    if not {LIST, READ} <= {tool["function"]["name"] for tool in tools}:
        return None
    earlier_calls = [call for message in messages for call in message.tool_calls]
    if not any(call.name == LIST for call in earlier_calls):
        return Call(LIST, {})
    names_read = {name_in(call.arguments) for call in earlier_calls if call.name == READ}
    reads = {subtask.name: subtask.reads for subtask in task.subtasks}
    needed = [name for subtask in subtasks for name in reads.get(subtask, ()) if name in task.documents]
    unread = next((name for name in needed if name not in names_read), None)
    return Call(READ, {NAME: unread}) if unread else None


def reply_with_calls(calls: Sequence[Call], request: Request) -> Reply:
    """Return a reply that makes these tool calls. Ids differ between calls and between requests."""
    id_key = ("tool call", request.seed, request.occurrence, len(request.messages))
    tool_calls = [
        ToolCall(f"call_{seed_of(*id_key, number):016x}", call.tool, json.dumps(call.arguments, ensure_ascii=False))
        for number, call in enumerate(calls)
    ]
    return Reply("", "tool_calls", tool_calls=tuple(tool_calls))


def cut_reply(reply: Reply, options: Mapping[str, Any]) -> Reply:
    """Return the reply, cut at the request's stop texts and at its maximal length."""
    stops = options.get("stop", ())
    text = reply.text
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(stop)[0]
    limit = min((options[name] for name in LENGTHS if name in options), default=None)
    short = text if limit is None else first_tokens(text, limit)
    return replace(reply, text=short, finish=reply.finish if short == text else "length")


def smallest_value(schema: Mapping[str, Any]) -> Json:
    """Return the smallest value of a schema: only required properties, empty lists, shortest texts, lower bounds. Patterns are
    ignored."""
    return _smallest_value(schema, schema.get("$defs", {}))


def _smallest_value(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Json:
    """Return a small JSON value that fits the schema: only required fields, as few items as allowed."""
    if "$ref" in schema:
        return _smallest_value(defs[schema["$ref"].rsplit("/", 1)[-1]], defs)
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return _smallest_value(schema[word][0], defs)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    match schema.get("type", "object"):
        case "object":
            properties = schema.get("properties", {})
            return {name: _smallest_value(properties.get(name, {}), defs) for name in schema.get("required", ())}
        case "array":
            return [_smallest_value(schema.get("items", {}), defs)] * int(schema.get("minItems", 0))
        case "string":
            return "x" * max(1, int(schema.get("minLength", 1)))
        case "integer" | "number" as kind:
            low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            return int(low) if kind == "integer" else float(low)
        case "boolean":
            return False
        case _:
            return None
