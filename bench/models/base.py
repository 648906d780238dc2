"""Who answers. One method: a request in, a reply out; everything else about a model is its own affair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from operator import not_
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from bench.answers.formats import DEFAULT, AnswerFormat
from bench.digests import Texts
from bench.errors import CallFailed
from bench.models.tool_calls import ToolCall, counted_text_of, text_of
from bench.scenario import Json
from bench.tokens import count_tokens
from bench.values import dataclass, kept

MessageRole = Literal["system", "user", "assistant", "tool"]
Timing = Literal["live", "simulated", "recorded"]
"""Where a trial's seconds come from."""

Seldom = Annotated[str | None, Field(exclude_if=not_)]
"""A text's digest that most records lack. What is not there is not written, so that a record without it is what it was before
there was such a field."""


@dataclass(frozen=True)
class StoredMessage:
    """A message that was sent; `content` is the digest of its text, `tool_calls` that of their JSON, `extra` that of what
    else it has. What a message does not have leaves no trace."""

    role: MessageRole
    content: str
    tool_calls: Seldom = None
    tool_call_id: Annotated[str, Field(exclude_if=not_)] = ""
    extra: Seldom = None


@dataclass(frozen=True)
class Message:
    """`tool_calls` are those that the assistant made; a message of role `tool` is the result of the one that it names.
    `extra` is what else the provider gave with it, and may want back (`bench.models.extra_fields`)."""

    role: MessageRole
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    extra: str = ""

    @kept
    def stored(self) -> tuple[StoredMessage, Texts]:
        """As a record keeps it, and the texts that are named there: its content, its tool calls as JSON, what else it has."""
        texts = Texts()
        content, calls = texts.keep(self.content), text_of(self.tool_calls)
        named = texts.keep(calls) if calls else None
        extra = texts.keep(self.extra) if self.extra else None
        return StoredMessage(self.role, content, named, self.tool_call_id, extra), texts

    @kept
    def tokens(self) -> int:
        """The number of tokens of its content and of its tool calls, by our tokenizer."""
        return sum(map(count_tokens, filter(None, (self.content, counted_text_of(self.tool_calls)))))


def stored(messages: Iterable[Message], texts: Texts) -> tuple[StoredMessage, ...]:
    """Return messages as a record keeps them; their texts go into `texts`."""
    each = [message.stored for message in messages]
    for _, named in each:
        texts.update(named)
    return tuple([message for message, _ in each])


@dataclass(frozen=True)
class RequestContext:
    """What a request is for. It is never sent to a real model; simulated and recorded ones find their reply by it.

    `arm` names the architecture and the fault plan, on which no reply may depend but a recorded one. `judging`: a judgment on
    outputs of these subtasks is asked for, not the outputs. `instance` is "" for the sole instance of a pack. `model` is the
    trial's, which may pass the request on to another one. `answer_format` is what the messages ask for. `state` names the state
    of the world that is judged; "" where there is no world. `drawn_from` is what each draw of the trial begins with, for what
    is to be the same at all of its calls. `references` are the outputs with which a simulated model answers what an
    architecture added at run time.
    """

    scenario: str
    subtasks: tuple[str, ...]
    repetition: int
    attempt: int
    arm: str = ""
    judging: bool = False
    instance: str = ""
    sample: int = 1
    model: str = ""
    answer_format: AnswerFormat = DEFAULT
    state: str = ""
    drawn_from: tuple[object, ...] = ()
    references: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One chat completion. `seed` is the same for every architecture at the same repetition and attempt.

    `occurrence` counts, from 1, how often this trial has sent just these messages with this seed, and `answers` how many of
    these times a reply came. `schema` is the JSON schema
    of the answer that is asked for, for a model that can be held to one. `options` are what a client asked for beside its
    messages (`bench.models.options`), as JSON; "" for nothing.
    """

    messages: tuple[Message, ...]
    seed: int
    context: RequestContext
    occurrence: int = 1
    answers: int = 0
    schema: Mapping[str, Any] | None = None
    options: str = ""

    @property
    def asked(self) -> RequestContent:
        """What makes it the same request as another."""
        return self.messages, self.options, self.seed


RequestContent = tuple[tuple[Message, ...], str, int]


@dataclass(frozen=True)
class Usage:
    """What the provider says it counted, in its own tokens. `cached` are those of `tokens_in` that its prompt cache held
    already; None where it does not tell."""

    tokens_in: int
    tokens_out: int
    cached: int | None = None


@dataclass(frozen=True)
class Reply:
    """`finish` is how it ended, as OpenAI writes it (`stop`, `length`, `tool_calls`, `content_filter`); `usage` is None if the
    provider told none. `by` names the model that answered, where the one that was asked had passed the request on. A reply that
    is `reused` had been given before to the same request, and `took` so many seconds then. `flight` is from when to when it was
    waited for, in nanoseconds of `time.perf_counter_ns`, where the model knows that better than who awaits it: a busy process
    is late. `extra` is as in a message."""

    text: str
    finish: str = "stop"
    usage: Usage | None = None
    by: str = ""
    reused: bool = False
    took: float | None = None
    flight: tuple[int, int] | None = field(default=None, compare=False)
    tool_calls: tuple[ToolCall, ...] = ()
    extra: str = ""


@dataclass(frozen=True)
class Response:
    """What a model did on one request: the reply or the failure that it ended in after so many seconds.

    It is found again by what was asked (messages, seed, how often this trial had asked it before) and by who asked.
    """

    model: str
    request: Request
    outcome: Reply | CallFailed
    seconds: float


Sleep = Callable[[float], Awaitable[None]]
"""Let seconds pass on the trial's clock: a real sleep for a live trial, none at all for a simulated one."""


class Model(Protocol):
    """`name` and `parameters` go into the trial's digest and the run's manifest; neither holds a key.

    `timing` says whose seconds its calls take: `live` ones are real, all others run on the trial's own clock.
    `endpoint` names what is shared: calls to one endpoint are bounded together by `concurrency`.
    """

    name: str
    timing: Timing
    endpoint: str
    concurrency: int

    @property
    def parameters(self) -> dict[str, object]: ...

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Answer, or raise a `bench.errors.CallFailed`. The caller owns all retries."""
        ...

    async def prepare(self, patient: bool = True) -> None:
        """Prove that the model can be used; raises EndpointError where it cannot. Where it is only busy, a `patient` one
        tries again."""
        ...

    async def close(self) -> None: ...
