"""Write a reply as an answer of the Responses API, whole or as typed events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.run.endpoint.answers import as_json, pieces_of
from bench.run.endpoint.carried import carried_text
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply
from bench.run.models.options import options_in

UNFINISHED = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Finish reasons of an incomplete reply, and the reason that the answer gives."""
WireObject = dict[str, Any]


def body(replies: Sequence[Reply], number: int, chat: Chat) -> bytes:
    """Return the whole answer to request `number`."""
    [reply] = replies
    return as_json(_response(reply, number, chat, _status(reply), [_complete(item) for item in items_of(reply, number)]))


def cut_body(reply: Reply, number: int, chat: Chat) -> bytes:
    """Return the first bytes of the answer, up to the place where its reply breaks off. `reply` is the part of the reply that
    came."""
    written = body([reply], number, chat)
    item = reply.tool_calls[-1].arguments if reply.tool_calls else reply.text
    last = as_json(item)[:-1]
    return written[: written.rindex(last) + len(last)]


def stream(replies: Sequence[Reply], number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the same answer as events."""
    [reply] = replies
    numbered = _Numbered()
    yield from _opening(reply, number, chat, numbered)
    status = _status(reply)
    ended = _response(reply, number, chat, status, [_complete(item) for item in items_of(reply, number)])
    yield numbered.event(f"response.{status}", response=ended)


def cut_stream(reply: Reply, number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the events of a reply that breaks off. The last part gets no event that it is done."""
    events = list(_opening(reply, number, chat, _Numbered()))
    kinds = [event.split(b"\n", 1)[0] for event in events]
    last = max(place for place, kind in enumerate(kinds) if kind.endswith((b".delta", b".added", b".in_progress")))
    yield from events[: last + 1]


class _Numbered:
    """Makes the events of a stream and numbers them from 0."""

    def __init__(self) -> None:
        self._next = 0

    def event(self, kind: str, **values: Any) -> bytes:
        body = as_json({"type": kind, "sequence_number": self._next, **values})
        self._next += 1
        return b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n"


def _opening(reply: Reply, number: int, chat: Chat, numbered: _Numbered) -> Iterator[bytes]:
    """Yield all events before the last one."""
    started = _response(reply, number, chat, "in_progress", [])
    yield numbered.event("response.created", response=started)
    yield numbered.event("response.in_progress", response=started)
    for index, item in enumerate(items_of(reply, number)):
        yield numbered.event("response.output_item.added", output_index=index, item=_empty(item))
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            yield from _message(item, where, numbered)
        elif item["type"] == "function_call":
            yield from _call(item, where, numbered)
        yield numbered.event("response.output_item.done", output_index=index, item=_complete(item))


def _message(item: WireObject, where: WireObject, numbered: _Numbered) -> Iterator[bytes]:
    """Yield the events of a message item: its content part, the pieces of its text, and the end of the part."""
    [part] = item["content"]
    kind = "output_text" if "text" in part else "refusal"
    text = part["text" if kind == "output_text" else "refusal"]
    field = "text" if kind == "output_text" else "refusal"
    extra: WireObject = {"logprobs": []} if kind == "output_text" else {}
    at = {**where, "content_index": 0}
    yield numbered.event("response.content_part.added", **at, part={**part, field: ""})
    for piece in pieces_of(text):
        yield numbered.event(f"response.{kind}.delta", **at, delta=piece, **extra)
    yield numbered.event(f"response.{kind}.done", **at, **{field: text}, **extra)
    yield numbered.event("response.content_part.done", **at, part=part)


def _call(item: WireObject, where: WireObject, numbered: _Numbered) -> Iterator[bytes]:
    for piece in pieces_of(item["arguments"]):
        yield numbered.event("response.function_call_arguments.delta", **where, delta=piece)
    done = "response.function_call_arguments.done"
    yield numbered.event(done, **where, name=item["name"], arguments=item["arguments"])


def items_of(reply: Reply, number: int) -> list[WireObject]:
    """Return the items of a reply: the fields that the provider wants back, if any; a message, unless the reply has only tool
    calls; and each tool call."""
    items: list[WireObject] = []
    if carried := carried_text(reply):
        items.append({"id": f"rs_{number}", "type": "reasoning", "summary": [], "encrypted_content": carried})
    if reply.text or not reply.tool_calls:
        part: WireObject = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        if reply.finish == "content_filter":
            part = {"type": "refusal", "refusal": reply.text}
        items.append({"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]})
    for place, call in enumerate(reply.tool_calls):
        known = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({"id": f"fc_{number}_{place}", "type": "function_call", **known})
    return items


def _complete(item: WireObject) -> WireObject:
    return {**item, "status": "completed"}


def _empty(item: WireObject) -> WireObject:
    """Return an item as it is at its first event, without content."""
    empty: dict[str, WireObject] = {"message": {"content": []}, "function_call": {"arguments": ""}}
    return {**item, "status": "in_progress", **empty.get(item["type"], {})}


def _status(reply: Reply) -> str:
    return "incomplete" if reply.finish in UNFINISHED else "completed"


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
        "incomplete_details": {"reason": UNFINISHED[reply.finish]} if status == "incomplete" else None,
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
    return {"type": "function", "name": choice["function"]["name"]} if isinstance(choice, dict) else choice


def _tool(function: WireObject) -> WireObject:
    return {"type": "function", "parameters": None, "strict": None, **function}
