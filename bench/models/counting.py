"""The tokens of a request and of a reply, by our tokenizer: those of every text that is sent and received. Tool definitions and
tool calls count as the JSON text that they are; ids of calls that a result names, other settings, and what a
provider only wants back (`bench.models.extra_fields`) do not count."""

from __future__ import annotations

from collections.abc import Iterator

from bench.models.base import Reply, Request
from bench.models.options import tools_text
from bench.models.tool_calls import counted_text_of
from bench.tokens import count_tokens


def tokens_read(request: Request) -> int:
    """Of the messages, with the tool calls in them, and of the tools that are offered."""
    return sum(map(count_tokens, filter(None, texts_read(request))))


def texts_read(request: Request) -> Iterator[str]:
    for message in request.messages:
        yield message.content
        yield counted_text_of(message.tool_calls)
    yield tools_text(request.options)


def tokens_written(reply: Reply) -> int:
    return sum(map(count_tokens, filter(None, texts_written(reply))))


def texts_written(reply: Reply) -> Iterator[str]:
    yield reply.text
    yield counted_text_of(reply.tool_calls)
