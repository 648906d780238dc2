"""Count the tokens of a request and of a reply with our tokenizer: all text that is sent and received."""

from __future__ import annotations

from bench.common.tokens import count_tokens
from bench.record.tool_calls import counted_text_of
from bench.run.models.base import Reply, Request
from bench.run.models.options import tools_text

LONG, MANY = 2**16, 500
"""A request with more characters, or more messages and tool calls, is read in a thread."""


def tokens_read(request: Request) -> int:
    """Return the tokens of the messages, of the tool calls in them, and of the tool definitions."""
    tools = tools_text(request.options)
    return sum([message.tokens for message in request.messages]) + (count_tokens(tools) if tools else 0)


def count_and_digest(request: Request) -> None:
    """Count and digest all texts of a request. Its messages cache the results."""
    tokens_read(request)
    for message in request.messages:
        message.stored_form  # noqa: B018  # it is a property that remembers


def is_long(request: Request) -> bool:
    """Return whether counting the request's tokens would block the event loop for long."""
    calls = [call for message in request.messages for call in message.tool_calls]
    texts = [request.options, *[message.content for message in request.messages], *[call.arguments for call in calls]]
    return len(request.messages) + len(calls) > MANY or sum(map(len, texts)) > LONG


def tokens_written(reply: Reply) -> int:
    return sum(map(count_tokens, filter(None, texts_written(reply))))


def texts_written(reply: Reply) -> tuple[str, str]:
    return reply.text, counted_text_of(reply.tool_calls)
