"""Write replies as chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bench.record.extra_fields import extra_in
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply, Usage

PIECE = 40
"""Characters of a reply in one chunk of a stream."""
DONE = b"data: [DONE]\n\n"


def whole(replies: Sequence[Reply], number: int, asked: Chat) -> bytes:
    """Return the whole answer to request `number`: a choice for each reply. It has no usage if a reply's tokens were not
    counted."""
    counted = usage_of(replies)
    usage = {"usage": _usage(counted)} if counted else {}
    choices = [
        {"index": index, "finish_reason": reply.finish, "message": _message(reply)} for index, reply in enumerate(replies)
    ]
    return as_json({**_head(number, asked, "chat.completion"), **usage, "choices": choices})


def begun(reply: Reply, number: int, asked: Chat) -> bytes:
    """Return the first bytes of an answer, up to where the beginning of its reply breaks off."""
    written = whole([reply], number, asked)
    return written[: written.rindex(b'"}}]}}]}' if reply.tool_calls else b'"}}]}')]


def stream(replies: Sequence[Reply], number: int, asked: Chat) -> Iterator[bytes]:
    """Yield the same answer as events: each reply's text and tool calls in pieces and its finish; the usage if asked for; the
    end."""
    for index, reply in enumerate(replies):
        yield from _pieces(reply, number, asked, index)
        yield _chunk(number, asked, [{"index": index, "delta": {}, "finish_reason": reply.finish}])
    if asked.include_usage:
        counted = usage_of(replies)
        yield _chunk(number, asked, [], usage=_usage(counted) if counted else None)
    yield DONE


def stream_begun(reply: Reply, number: int, asked: Chat) -> Iterator[bytes]:
    """Yield the events of the beginning of a reply, without those that end the stream."""
    yield from _pieces(reply, number, asked, 0)


def pieces_of(text: str) -> Iterator[str]:
    """Yield a text in the pieces that a stream carries."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def usage_of(replies: Sequence[Reply]) -> Usage | None:
    """Return the usage of all replies. Their prompt counts once, as with a provider. None if a reply was not counted."""
    counted = [reply.usage for reply in replies if reply.usage]
    if len(counted) < len(replies):
        return None
    return Usage(counted[0].tokens_in, sum(call.tokens_out for call in counted), counted[0].cached)


def as_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _message(reply: Reply) -> dict[str, Any]:
    """Return a message with the provider's extra fields first: a reply that breaks off then does so in its text."""
    opening = {"role": "assistant", **extra_in(reply.extra)}
    if not reply.tool_calls:
        return {**opening, "content": reply.text}
    return {**opening, "content": reply.text or None, "tool_calls": [call.plain for call in reply.tool_calls]}


def _pieces(reply: Reply, number: int, asked: Chat, index: int) -> Iterator[bytes]:
    def piece(**delta: Any) -> bytes:
        return _chunk(number, asked, [{"index": index, "delta": delta, "finish_reason": None}])

    yield piece(role="assistant", **extra_in(reply.extra), content=None if reply.tool_calls and not reply.text else "")
    for text in pieces_of(reply.text):
        yield piece(content=text)
    for place, call in enumerate(reply.tool_calls):
        yield piece(tool_calls=[{"index": place, **replace(call, arguments="").plain}])
        for text in pieces_of(call.arguments):
            yield piece(tool_calls=[{"index": place, "function": {"arguments": text}}])


def _chunk(number: int, asked: Chat, choices: list[dict[str, Any]], **more: Any) -> bytes:
    return b"data: " + as_json({**_head(number, asked, "chat.completion.chunk"), **more, "choices": choices}) + b"\n\n"


def _head(number: int, asked: Chat, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": asked.created, "model": asked.model}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
    }
