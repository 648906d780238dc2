"""The entries of the wing's dialects."""

from __future__ import annotations

from bench.dialects import response_answers, responses
from bench.endpoint.dialect import Dialect

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
)
