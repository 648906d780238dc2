"""Write a reply as an answer of Anthropic's Messages API: one JSON document, or typed events.

The fields that a provider may want back with the turn are the signature of a thinking block, which comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from bench.run.endpoint.answers import as_json, pieces_of
from bench.run.endpoint.anthropic_messages import INVALID_JSON_KEY
from bench.run.endpoint.carried import provider_fields_text, thought_in
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply

STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
"""Finish reason -> the stop reason, for replies that do not end their turn."""
WireBlock = dict[str, Any]


def body(replies: Sequence[Reply], number: int, chat: Chat) -> bytes:
    """Return the whole answer to request `number`."""
    [reply] = replies
    return as_json({**_message(reply, number, chat), "content": _content(reply), **_ending(reply)})


def cut_body(reply: Reply, number: int, chat: Chat) -> bytes:
    """Return the first bytes of the answer, up to the place where its reply breaks off: in its text, or before a tool's input.
    `reply` is the part of the reply that came."""
    whole = body([reply], number, chat)
    if reply.tool_calls:
        return whole[: whole.rindex(b'"input":') + len(b'"input":')]
    if not reply.text:
        return whole.partition(b"[")[0]
    end = b'"text":' + as_json(reply.text)[:-1]
    return whole[: whole.rindex(end) + len(end)]


def stream(replies: Sequence[Reply], number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the answer as events."""
    [reply] = replies
    yield from _events_before_end(reply, number, chat)
    usage = _usage(reply)
    yield _event("message_delta", delta=_ending(reply), usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def cut_stream(reply: Reply, number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the events of a reply that breaks off. The last content block gets no stop event."""
    events = list(_events_before_end(reply, number, chat))
    yield from events[: len(events) - (len(events) > 1)]


def _events_before_end(reply: Reply, number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the events before the end of the reply."""
    message = {**_message(reply, number, chat), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**message, "usage": {**_usage(reply), "output_tokens": 0}})
    arguments = iter(reply.tool_calls)
    for index, block in enumerate(_content(reply)):
        empty, deltas = _empty_block_and_deltas(block, next(arguments).arguments if block["type"] == "tool_use" else "")
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)


def _empty_block_and_deltas(block: WireBlock, arguments: str) -> tuple[WireBlock, Iterator[WireBlock]]:
    """Return a content block without its content, and the deltas that fill it."""
    match block["type"]:
        case "thinking":
            signature = {"type": "signature_delta", "signature": block["signature"]}
            deltas = chain(_deltas("thinking_delta", "thinking", block["thinking"]), [signature])
            return {**block, "thinking": "", "signature": ""}, deltas
        case "text":
            return {**block, "text": ""}, _deltas("text_delta", "text", block["text"])
        case _:
            return {**block, "input": {}}, _deltas("input_json_delta", "partial_json", arguments)


def _deltas(kind: str, field: str, text: str) -> Iterator[WireBlock]:
    """Return the deltas with the pieces of a text."""
    return ({"type": kind, field: piece} for piece in pieces_of(text))


def _event(kind: str, **values: Any) -> bytes:
    """Return an event of this type, as server-sent events write it."""
    return b"event: " + kind.encode() + b"\ndata: " + as_json({"type": kind, **values}) + b"\n\n"


def _message(reply: Reply, number: int, chat: Chat) -> WireBlock:
    """Return the fields of an answer before its content."""
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": chat.model}
    return {**head, "usage": _usage(reply)}


def _content(reply: Reply) -> list[WireBlock]:
    """Return the content blocks of a reply."""
    blocks: list[WireBlock] = []
    if signature := provider_fields_text(reply):
        blocks.append({"type": "thinking", "thinking": thought_in(reply.extra), "signature": signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.tool_calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)})
    return blocks


def _input(arguments: str) -> WireBlock:
    """Return a tool's arguments as an object. If they are no object, their text is under the key that Anthropic proposes."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {INVALID_JSON_KEY: arguments}


def _ending(reply: Reply) -> WireBlock:
    """Return the fields of a reply's end. The stop sequence is unknown."""
    reason = STOP_REASONS.get(reply.finish) or ("tool_use" if reply.tool_calls else "end_turn")
    return {"stop_reason": reason, "stop_sequence": None}


def _usage(reply: Reply) -> dict[str, int]:
    """Return the provider's token counts, with cached tokens in a field of their own; 0 if nothing was counted."""
    if reply.usage is None:
        return {"input_tokens": 0, "output_tokens": 0}
    cached = reply.usage.cached or 0
    usage = {"input_tokens": reply.usage.tokens_in - cached, "output_tokens": reply.usage.tokens_out}
    return {**usage, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
