"""Write a reply as an answer of the Responses API: one JSON document, or typed events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.run.endpoint.answers import as_json, pieces_of
from bench.run.endpoint.carried import provider_fields_text
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply
from bench.run.models.options import options_in

INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Finish reason of an incomplete reply -> the reason that the answer gives."""
WireObject = dict[str, Any]


def body(replies: Sequence[Reply], number: int, chat: Chat) -> bytes:
    """Return the whole answer to request `number`."""
    [reply] = replies
    return as_json(_response(reply, number, chat, _status(reply), [_complete(item) for item in items_of(reply, number)]))


def cut_body(reply: Reply, number: int, chat: Chat) -> bytes:
    """Return the first bytes of the answer, up to the place where its reply breaks off. `reply` is the part of the reply that
    came."""
    whole = body([reply], number, chat)
    last_text = reply.tool_calls[-1].arguments if reply.tool_calls else reply.text
    end = as_json(last_text)[:-1]
    return whole[: whole.rindex(end) + len(end)]


def stream(replies: Sequence[Reply], number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the answer as events."""
    [reply] = replies
    writer = _EventWriter()
    yield from _events_before_end(reply, number, chat, writer)
    status = _status(reply)
    response = _response(reply, number, chat, status, [_complete(item) for item in items_of(reply, number)])
    yield writer.event(f"response.{status}", response=response)


def cut_stream(reply: Reply, number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the events of a reply that breaks off, up to the last piece of it: no event says that the last part is done."""
    events = list(_events_before_end(reply, number, chat, _EventWriter()))
    kinds = [event.split(b"\n", 1)[0] for event in events]
    last = max(index for index, kind in enumerate(kinds) if kind.endswith((b".delta", b".added", b".in_progress")))
    yield from events[: last + 1]


class _EventWriter:
    """Writes the events of a stream, and numbers them from 0."""

    def __init__(self) -> None:
        self._next = 0

    def event(self, kind: str, **values: Any) -> bytes:
        """Return the next event, of this type and with these fields."""
        body = as_json({"type": kind, "sequence_number": self._next, **values})
        self._next += 1
        return b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n"


def _events_before_end(reply: Reply, number: int, chat: Chat, writer: _EventWriter) -> Iterator[bytes]:
    """Yield all events before the last one."""
    response = _response(reply, number, chat, "in_progress", [])
    yield writer.event("response.created", response=response)
    yield writer.event("response.in_progress", response=response)
    for index, item in enumerate(items_of(reply, number)):
        yield writer.event("response.output_item.added", output_index=index, item=_empty(item))
        item_fields = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            yield from _message(item, item_fields, writer)
        elif item["type"] == "function_call":
            yield from _call(item, item_fields, writer)
        yield writer.event("response.output_item.done", output_index=index, item=_complete(item))


def _message(item: WireObject, item_fields: WireObject, writer: _EventWriter) -> Iterator[bytes]:
    """Yield the events of a message item: its content part, the pieces of its text, and the end of the part."""
    [part] = item["content"]
    kind, field = ("output_text", "text") if "text" in part else ("refusal", "refusal")
    text = part[field]
    extra: WireObject = {"logprobs": []} if kind == "output_text" else {}
    part_fields = {**item_fields, "content_index": 0}
    yield writer.event("response.content_part.added", **part_fields, part={**part, field: ""})
    for piece in pieces_of(text):
        yield writer.event(f"response.{kind}.delta", **part_fields, delta=piece, **extra)
    yield writer.event(f"response.{kind}.done", **part_fields, **{field: text}, **extra)
    yield writer.event("response.content_part.done", **part_fields, part=part)


def _call(item: WireObject, item_fields: WireObject, writer: _EventWriter) -> Iterator[bytes]:
    """Yield the events of a tool call: the pieces of its arguments, and the whole."""
    for piece in pieces_of(item["arguments"]):
        yield writer.event("response.function_call_arguments.delta", **item_fields, delta=piece)
    event_type = "response.function_call_arguments.done"
    yield writer.event(event_type, **item_fields, name=item["name"], arguments=item["arguments"])


def items_of(reply: Reply, number: int) -> list[WireObject]:
    """Return the items of a reply: the fields that the provider wants back, if any; a message, unless the reply has only tool
    calls; and each tool call."""
    items: list[WireObject] = []
    if provider_fields := provider_fields_text(reply):
        items.append({"id": f"rs_{number}", "type": "reasoning", "summary": [], "encrypted_content": provider_fields})
    if reply.text or not reply.tool_calls:
        part: WireObject = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        if reply.finish == "content_filter":
            part = {"type": "refusal", "refusal": reply.text}
        items.append({"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]})
    for index, call in enumerate(reply.tool_calls):
        fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({"id": f"fc_{number}_{index}", "type": "function_call", **fields})
    return items


def _complete(item: WireObject) -> WireObject:
    return {**item, "status": "completed"}


def _empty(item: WireObject) -> WireObject:
    """Return an item without its content, for the event that adds it."""
    empty: dict[str, WireObject] = {"message": {"content": []}, "function_call": {"arguments": ""}}
    return {**item, "status": "in_progress", **empty.get(item["type"], {})}


def _status(reply: Reply) -> str:
    """Return the status of the whole answer."""
    return "incomplete" if reply.finish in INCOMPLETE_REASONS else "completed"


def _response(reply: Reply, number: int, chat: Chat, status: str, output: list[WireObject]) -> WireObject:
    """Return the response object of a reply with this status and output."""
    options = options_in(chat.options)
    usage = reply.usage if status != "in_progress" else None
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": chat.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": INCOMPLETE_REASONS[reply.finish]} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "model": chat.model,
        "parallel_tool_calls": options.get("parallel_tool_calls", True),
        "temperature": None,
        "tool_choice": _choice(options.get("tool_choice", "auto")),
        "tools": [_tool(tool["function"]) for tool in options.get("tools", [])],
        "top_p": None,
        "usage": usage
        and {
            "input_tokens": usage.tokens_in,
            "input_tokens_details": {"cached_tokens": usage.cached or 0},
            "output_tokens": usage.tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.tokens_in + usage.tokens_out,
        },
        "output": output,
    }


def _choice(choice: Any) -> Any:
    """Return a chat completion's choice of a tool in the form of the Responses API."""
    return {"type": "function", "name": choice["function"]["name"]} if isinstance(choice, dict) else choice


def _tool(function: WireObject) -> WireObject:
    """Return a chat completion's function in the form of the Responses API."""
    return {"type": "function", "parameters": None, "strict": None, **function}
