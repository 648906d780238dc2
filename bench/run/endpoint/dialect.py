"""The APIs that the endpoint serves. All lead to the same request and the same replies."""

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
    """An API over HTTP, as clients use it.

    path           its path after /v1
    read           (body, the model's parameters, earlier exchanges by number) -> the request; raises Problem
    whole          (replies, number of the request, request) -> the answer's body
    begun          (beginning of a reply, number, request) -> the first bytes of this body
    stream         as `whole`, as events; stream_begun: as `begun`
    """

    path: str
    read: Callable[[bytes, Mapping[str, object], Mapping[int, Exchange]], Chat]
    whole: Callable[[Sequence[Reply], int, Chat], bytes]
    begun: Callable[[Reply, int, Chat], bytes]
    stream: Callable[[Sequence[Reply], int, Chat], Iterator[bytes]]
    stream_begun: Callable[[Reply, int, Chat], Iterator[bytes]]


CHAT = Dialect(
    "chat completions",
    "/chat/completions",
    wire.chat_of,
    answers.whole,
    answers.begun,
    answers.stream,
    answers.stream_begun,
)
DIALECTS = Registry("dialect", Dialect)
