"""The entries of the dialects."""

from __future__ import annotations

from bench.run.endpoint import anthropic_answers, anthropic_messages, response_answers, responses
from bench.run.endpoint.dialect import Dialect

DIALECTS = (
    Dialect(
        "responses",
        "/responses",
        responses.chat_of,
        response_answers.whole,
        response_answers.begun,
        response_answers.stream,
        response_answers.stream_begun,
    ),
    Dialect(
        "messages",
        "/messages",
        anthropic_messages.chat_of,
        anthropic_answers.whole,
        anthropic_answers.begun,
        anthropic_answers.stream,
        anthropic_answers.stream_begun,
    ),
)
