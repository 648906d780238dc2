"""The APIs that the endpoint serves. All of them lead to the same request and the same replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.common.registry import Part, Registry
from bench.run.endpoint import answers, wire
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply
from bench.run.trial.endpoint_session import Exchange


@dataclass(frozen=True)
class Dialect(Part):
    """An HTTP API with which clients ask a model.

    path           its path after /v1
    read           (body, the model's parameters, earlier exchanges by number) -> the request; raises Problem
    body           (replies, number of the request, request) -> the answer's body
    cut_body       (part of a reply, number, request) -> the first bytes of this body
    stream         (replies, number, request) -> the answer as events
    cut_stream     (part of a reply, number, request) -> the first of these events
    """

    path: str
    read: Callable[[bytes, Mapping[str, object], Mapping[int, Exchange]], Chat]
    body: Callable[[Sequence[Reply], int, Chat], bytes]
    cut_body: Callable[[Reply, int, Chat], bytes]
    stream: Callable[[Sequence[Reply], int, Chat], Iterator[bytes]]
    cut_stream: Callable[[Reply, int, Chat], Iterator[bytes]]


CHAT = Dialect(
    "chat completions",
    "/chat/completions",
    wire.chat_of,
    answers.body,
    answers.cut_body,
    answers.stream,
    answers.cut_stream,
)
DIALECTS = Registry("dialect", Dialect)
