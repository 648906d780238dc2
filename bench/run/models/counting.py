"""Count the tokens of all text in a request and in a reply, with our tokenizer."""

from __future__ import annotations

from bench.common.tokens import count_tokens
from bench.record.tool_calls import counted_text_of
from bench.run.models.base import Reply, Request
from bench.run.models.options import tools_text

MAX_CHARS_ON_LOOP, MAX_MESSAGES_ON_LOOP = 2**16, 500
"""The tokens of a request with more characters, or with more messages and tool calls, are counted in a thread."""


def tokens_read(request: Request) -> int:
    """Return the tokens of the messages, of the tool calls in them, and of the tool definitions."""
    tools = tools_text(request.options)
    return sum([message.tokens for message in request.messages]) + (count_tokens(tools) if tools else 0)


def count_and_digest(request: Request) -> None:
    """Count and digest all texts of a request. Its messages cache the results."""
    tokens_read(request)
    for message in request.messages:
        message.stored_form  # noqa: B018  # reading the property caches it


def is_long(request: Request) -> bool:
    """Return whether counting the request's tokens would block the event loop for long."""
    calls = [call for message in request.messages for call in message.tool_calls]
    texts = [request.options, *[message.content for message in request.messages], *[call.arguments for call in calls]]
    return len(request.messages) + len(calls) > MAX_MESSAGES_ON_LOOP or sum(map(len, texts)) > MAX_CHARS_ON_LOOP


def tokens_written(reply: Reply) -> int:
    """Return the tokens of a reply's text and tool calls."""
    return sum(map(count_tokens, filter(None, texts_written(reply))))


def texts_written(reply: Reply) -> tuple[str, str]:
    """Return the text of a reply, and the counted text of its tool calls."""
    return reply.text, counted_text_of(reply.tool_calls)
