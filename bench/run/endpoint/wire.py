"""Read requests for chat completions. This module knows nothing of sockets.

`bench.run.endpoint.fields` says which fields of a request are accepted, and how they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bench.common.bounds import Listed
from bench.record.messages import Message
from bench.run.endpoint.fields import options_among, refuse_others, settings_set_aside
from bench.run.endpoint.messages import ReceivedMessage, refuse_results_without_call
from bench.run.trial.endpoint_session import Exchange
from bench.wire.problem import MAX_NAME_CHARS, Problem, read_body, refuse_field

MODEL = "bench"
"""The name under which the endpoint lists its model by default: the experiment decides which model answers."""
MAX_REPLIES = 128
"""The most replies to one request."""
MAX_MESSAGES = 10_000
"""The most messages in one request."""

MAX_DIGITS = 18
"""The most digits of the number in an answer's id."""


@dataclass(frozen=True)
class Chat:
    """A request: its messages, the model's options (`bench.run.models.options`), the number of replies, and whether they are
    streamed. `model` is the name in the answers, whatever name the client sent. `created` is the second of its arrival, since
    1970. The first `instruction_count` messages apply to this request alone, also if another request continues its
    conversation. `set_aside` holds the client's settings that the experiment replaces, and its hints
    (`bench.run.endpoint.fields`)."""

    messages: tuple[Message, ...]
    stream: bool = False
    include_usage: bool = False
    options: str = ""
    replies: int = 1
    model: str = MODEL
    created: int = 0
    instruction_count: int = 0
    set_aside: Mapping[str, Any] = field(default_factory=dict, compare=False)


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    continuous_usage_stats: bool | None = None


class _ChatBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    messages: Listed[ReceivedMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: int | None = Field(None, ge=1, le=MAX_REPLIES)


def chat_of(
    body: bytes, parameters: Mapping[str, object] | None = None, exchanges: Mapping[int, Exchange] | None = None
) -> Chat:
    """Read the body of a request to /v1/chat/completions. `parameters` are the parameters of the experiment's model, and
    `exchanges` are the earlier requests and replies by number. Raises Problem with status 400 if the request is malformed, or
    has a field that is not passed on."""
    del exchanges  # a chat completion refers to no earlier exchange
    request = read_body(body, _ChatBody)
    fields = request.model_extra or {}
    refuse_others(fields)
    usage = request.stream_options is not None and bool(request.stream_options.include_usage)
    options = options_among(fields, parameters or {})
    messages = conversation(message.plain for message in request.messages)
    return Chat(messages, bool(request.stream), usage, options, request.n or 1, set_aside=settings_set_aside(fields))


def exchange_at(id_: str, exchanges: Mapping[int, Exchange], field: str) -> tuple[int, Exchange]:
    """Return the earlier exchange with this id, after its number, which is part of the id. Raises Problem, about this field of
    the request, if there is none."""
    digits = id_.partition("_")[2].partition("_")[0]
    number = int(digits) if digits.isdecimal() and len(digits) <= MAX_DIGITS else 0
    if number not in exchanges:
        refuse_field(field, f"'{id_[:MAX_NAME_CHARS]}' was not given here; send the whole conversation")
    return number, exchanges[number]


def conversation(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages as a tuple. Raises Problem if a tool's result belongs to no call."""
    all_messages = tuple(messages)
    try:
        refuse_results_without_call(all_messages)
    except ValueError as error:
        raise Problem(400, str(error), param="messages") from None
    return all_messages
