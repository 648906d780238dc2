"""The entries of the dialects besides chat completions."""

from __future__ import annotations

from bench.run.endpoint import anthropic_answers, anthropic_messages, response_answers, responses
from bench.run.endpoint.dialect import Dialect

DIALECTS = (
    Dialect(
        "responses",
        "/responses",
        responses.chat_of,
        response_answers.body,
        response_answers.cut_body,
        response_answers.stream,
        response_answers.cut_stream,
    ),
    Dialect(
        "messages",
        "/messages",
        anthropic_messages.chat_of,
        anthropic_answers.body,
        anthropic_answers.cut_body,
        anthropic_answers.stream,
        anthropic_answers.cut_stream,
    ),
)
