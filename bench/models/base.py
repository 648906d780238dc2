"""Who answers. One method: a request in, a reply out; everything else about a model is its own affair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

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


def _is_empty(text: str | None) -> bool:
    return not text


OptionalText = Annotated[str | None, Field(exclude_if=_is_empty)]
"""A text's digest that most records lack. What is not there is not written, so that a record without it is what it was before
there was such a field."""


@dataclass(frozen=True)
class StoredMessage:
    """A message that was sent. What a message does not have leaves no trace.

    `content` is the digest of its text, `tool_calls` that of their JSON, `extra` that of what else it has.
    """

    role: MessageRole
    content: str
    tool_calls: OptionalText = None
    tool_call_id: Annotated[str, Field(exclude_if=_is_empty)] = ""
    extra: OptionalText = None


@dataclass(frozen=True)
class Message:
    """One message of a request.

    role           who speaks
    content        its text
    tool_calls     those that the assistant made
    tool_call_id   the call whose result a message of role `tool` is
    extra          what else the provider gave with it, and may want back (`bench.models.extra_fields`)
    """

    role: MessageRole
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    extra: str = ""

    def __hash__(self) -> int:
        return hash(self.content)  # that of a text is kept, and few messages of a trial differ in something else alone

    @kept
    def stored(self) -> tuple[StoredMessage, Texts]:
        """Return its stored form, and the texts named there: its content, its tool calls as JSON, and what else it has."""
        texts = Texts()
        content, calls = texts.keep(self.content), text_of(self.tool_calls)
        named = texts.keep(calls) if calls else None
        extra = texts.keep(self.extra) if self.extra else None
        return StoredMessage(self.role, content, named, self.tool_call_id, extra), texts

    @kept
    def tokens(self) -> int:
        """Return the number of tokens of its content and of its tool calls, by our tokenizer."""
        return sum(map(count_tokens, filter(None, (self.content, counted_text_of(self.tool_calls)))))


def stored(messages: Iterable[Message], texts: Texts) -> tuple[StoredMessage, ...]:
    """Return messages as a record keeps them.

    Args:
        messages: What was sent.
        texts: Where the texts that are named in them are put.

    Returns:
        Their stored forms, in the same order.
    """
    each = [message.stored for message in messages]
    for _, named in each:
        texts.update(named)
    return tuple([message for message, _ in each])


@dataclass(frozen=True)
class RequestContext:
    """What a request is for. It is never sent to a real model; simulated and recorded ones find their reply by it.

    scenario        the pack, with its variant
    subtasks        the subtasks whose outputs are asked for
    repetition      the trial's, from 1
    attempt         the subtasks', from 1
    arm             the architecture and the fault plan, on which no reply may depend but a recorded one
    judging         a judgment on outputs of these subtasks is asked for, not the outputs
    instance        "" for the sole instance of a pack
    sample          which of several samples this is, from 1
    model           the trial's model, which may pass the request on to another one
    answer_format   what the messages ask for
    state           the state of the world that is judged; "" where there is no world
    drawn_from      what each draw of the trial begins with, for what is to be the same at all of its calls
    references      the outputs with which a simulated model answers what an architecture added at run time
    life            which process of the agent asks, from 1: it has another after each death in a world
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
    life: int = 1


@dataclass(frozen=True)
class Request:
    """One chat completion.

    messages     what is sent
    seed         the same for every architecture at the same repetition and attempt
    context      what it is for
    occurrence   how often this trial has sent just these messages with this seed, from 1
    answers      how many of these times a reply came
    schema       the JSON schema of the answer that is asked for, for a model that can be held to it
    options      what a client asked for beside its messages (`bench.models.options`), as JSON; "" for nothing
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
        """Return what makes it the same request as another."""
        return self.messages, self.options, self.seed


RequestContent = tuple[tuple[Message, ...], str, int]


@dataclass(frozen=True)
class Usage:
    """What the provider says it counted, in its own tokens.

    tokens_in    of the prompt
    tokens_out   of the reply
    cached       those of `tokens_in` that its prompt cache held already; None where it does not tell
    """

    tokens_in: int
    tokens_out: int
    cached: int | None = None


@dataclass(frozen=True)
class Reply:
    """What a model replied.

    text         its text
    finish       how it ended, as OpenAI writes it: `stop`, `length`, `tool_calls`, `content_filter`
    usage        None if the provider told none
    by           the model that answered, where the one that was asked had passed the request on
    reused       whether it had been given before to the same request
    took         the seconds that it took then
    flight       from when to when it was waited for, in nanoseconds of `time.perf_counter_ns`, where the model knows
                 that better than who awaits it: a busy process is late
    tool_calls   the calls of tools that it makes
    extra        as in a message
    """

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
    """What a model did on one request: the reply, or the failure that it ended in.

    It is found again by what was asked (messages, seed, how often this trial had asked it before) and by who asked.

    model     the model's name
    request   what was asked
    outcome   what came
    seconds   how long it took
    """

    model: str
    request: Request
    outcome: Reply | CallFailed
    seconds: float


Sleep = Callable[[float], Awaitable[None]]
"""Let seconds pass on the trial's clock: a real sleep for a live trial, none at all for a simulated one."""


class Model(Protocol):
    """Who answers. What it is made of goes into the trial's digest and the run's manifest; neither holds a key.

    name          its name in the config
    timing        whose seconds its calls take: `live` ones are real, all others run on the trial's own clock
    endpoint      what is shared: calls to one endpoint are bounded together
    concurrency   how many calls its endpoint takes at a time
    """

    name: str
    timing: Timing
    endpoint: str
    concurrency: int

    @property
    def parameters(self) -> dict[str, object]:
        """Return all that determines its replies, as JSON by name, without keys."""

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Answer a request. The caller owns all retries.

        Args:
            request: What is asked.
            sleep: Lets seconds pass on the trial's clock; a model that is not live uses no other.

        Returns:
            The reply.

        Raises:
            CallFailed: No usable reply came; its type says how (`bench.errors`).
        """
        ...

    async def prepare(self, patient: bool = True) -> None:
        """Prove that the model can be used.

        Args:
            patient: Whether to try again where it is only busy.

        Raises:
            EndpointError: It cannot be used.
        """
        ...

    async def close(self) -> None:
        """Give up what it holds. Nothing is asked of it afterwards."""


@runtime_checkable
class ExchangedModel(Protocol):
    """A model that may be another one in each process of the agent."""

    def in_life(self, life: int) -> Model:
        """Return the model that answers this process.

        Args:
            life: The process's number, from 1.

        Returns:
            Another model, or this one where that does not depend on the process.
        """
        ...
