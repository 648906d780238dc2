"""Write replies as the HTTP body that answers a chat completion: one JSON document, or a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bench.record.extra_fields import extra_in
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply, Usage

CHUNK_CHARS = 40
"""Characters of a reply in one chunk of a stream."""
STREAM_END = b"data: [DONE]\n\n"


def body(replies: Sequence[Reply], number: int, chat: Chat) -> bytes:
    """Return the whole answer to request `number`, with a choice for each reply. It has no usage if a reply's tokens were not
    counted."""
    total = usage_of(replies)
    usage = {"usage": _usage(total)} if total else {}
    choices = [
        {"index": index, "finish_reason": reply.finish, "message": _message(reply)} for index, reply in enumerate(replies)
    ]
    return as_json({**_head(number, chat, "chat.completion"), **usage, "choices": choices})


def cut_body(reply: Reply, number: int, chat: Chat) -> bytes:
    """Return the first bytes of the answer, up to the place where its reply breaks off. `reply` is the part of the reply that
    came."""
    whole = body([reply], number, chat)
    return whole[: whole.rindex(b'"}}]}}]}' if reply.tool_calls else b'"}}]}')]


def stream(replies: Sequence[Reply], number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the answer as events: the pieces of each reply and its finish reason, the usage if the client wants it, and the
    end."""
    for index, reply in enumerate(replies):
        yield from _pieces(reply, number, chat, index)
        yield _chunk(number, chat, [{"index": index, "delta": {}, "finish_reason": reply.finish}])
    if chat.include_usage:
        total = usage_of(replies)
        yield _chunk(number, chat, [], usage=_usage(total) if total else None)
    yield STREAM_END


def cut_stream(reply: Reply, number: int, chat: Chat) -> Iterator[bytes]:
    """Yield the events of a reply that breaks off, without the events that end the stream."""
    yield from _pieces(reply, number, chat, 0)


def pieces_of(text: str) -> Iterator[str]:
    """Yield a text in pieces for the events of a stream."""
    for start in range(0, len(text), CHUNK_CHARS):
        yield text[start : start + CHUNK_CHARS]


def usage_of(replies: Sequence[Reply]) -> Usage | None:
    """Return the usage of all replies to one request; None if a reply's tokens were not counted. The tokens of their prompt
    count once, as at a provider."""
    usages = [reply.usage for reply in replies if reply.usage]
    if len(usages) < len(replies):
        return None
    return Usage(usages[0].tokens_in, sum(usage.tokens_out for usage in usages), usages[0].cached)


def as_json(value: object) -> bytes:
    """Return a value as compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def _message(reply: Reply) -> dict[str, Any]:
    """Return the message of a reply. The provider's extra fields come first, so that a reply that breaks off does so in its
    text or its tool calls."""
    first_fields = {"role": "assistant", **extra_in(reply.extra)}
    if not reply.tool_calls:
        return {**first_fields, "content": reply.text}
    return {**first_fields, "content": reply.text or None, "tool_calls": [call.plain for call in reply.tool_calls]}


def _pieces(reply: Reply, number: int, chat: Chat, index: int) -> Iterator[bytes]:
    """Yield the events with the pieces of one reply."""

    def piece(**delta: Any) -> bytes:
        return _chunk(number, chat, [{"index": index, "delta": delta, "finish_reason": None}])

    yield piece(role="assistant", **extra_in(reply.extra), content=None if reply.tool_calls and not reply.text else "")
    for text in pieces_of(reply.text):
        yield piece(content=text)
    for position, call in enumerate(reply.tool_calls):
        yield piece(tool_calls=[{"index": position, **replace(call, arguments="").plain}])
        for text in pieces_of(call.arguments):
            yield piece(tool_calls=[{"index": position, "function": {"arguments": text}}])


def _chunk(number: int, chat: Chat, choices: list[dict[str, Any]], **more: Any) -> bytes:
    """Return one event of the stream that answers request `number`."""
    return b"data: " + as_json({**_head(number, chat, "chat.completion.chunk"), **more, "choices": choices}) + b"\n\n"


def _head(number: int, chat: Chat, kind: str) -> dict[str, Any]:
    """Return the first fields of an answer, or of an event, to request `number`."""
    return {"id": f"chatcmpl-{number}", "object": kind, "created": chat.created, "model": chat.model}


def _usage(usage: Usage) -> dict[str, int]:
    """Return token counts as a chat completion has them."""
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
    }
