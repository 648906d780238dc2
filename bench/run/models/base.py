"""The interface of models: a method that takes a request and returns a reply, and the types of both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

from bench.common.errors import CallFailed
from bench.common.values import dataclass
from bench.record.formats import DEFAULT, AnswerFormat
from bench.record.messages import Message, Timing
from bench.record.tool_calls import ToolCall
from bench.scenario import Json


@dataclass(frozen=True)
class RequestContext:
    """The purpose of a request.

    It is never sent to a real model; simulated and recorded models choose their reply by it.

    scenario        the pack, with its variant
    subtasks        the subtasks whose outputs are asked for
    repetition      the repetition of the trial, from 1
    attempt         the attempt at the subtasks, from 1
    arm             the architecture and the fault plan; only a recorded reply may depend on it
    judging         whether a judgment on outputs of these subtasks is asked for, not the outputs
    instance        "" for the only instance of a pack
    sample          the number of the sample within the attempt, from 1
    model           the trial's model, which can pass the request on to another model
    answer_format   the format of the answer that the messages ask for
    state           the state of the world that is judged; "" if there is no world
    drawn_from      the first parts of the trial's draws, for values that are the same at all of its calls
    references      a simulated model's outputs for subtasks that an architecture added at run time
    life            the number of the agent's process that asks, from 1: after each death in a world a new process begins
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

    messages     the messages that are sent
    seed         the seed of the reply, which is the same for every architecture at the same repetition and attempt
    context      the purpose of the request
    occurrence   how often this trial has sent these messages with this seed, from 1
    answers      how many of these requests of the trial got a reply
    schema       the JSON schema of the answer, for a model that can be held to it
    options      the client's other options (`bench.run.models.options`), as JSON; "" for none
    """

    messages: tuple[Message, ...]
    seed: int
    context: RequestContext
    occurrence: int = 1
    answers: int = 0
    schema: Mapping[str, Any] | None = None
    options: str = ""

    @property
    def content(self) -> RequestContent:
        """Return the content by which two requests count as equal."""
        return self.messages, self.options, self.seed


RequestContent = tuple[tuple[Message, ...], str, int]


@dataclass(frozen=True)
class Usage:
    """The provider's token counts.

    tokens_in    tokens of the prompt
    tokens_out   tokens of the reply
    cached       how many of `tokens_in` the provider's prompt cache held; None if the provider does not say
    """

    tokens_in: int
    tokens_out: int
    cached: int | None = None


@dataclass(frozen=True)
class Reply:
    """A model's reply to one request.

    text         the text of the reply
    finish       how the reply ended, as OpenAI writes it: `stop`, `length`, `tool_calls`, `content_filter`
    usage        the provider's token counts; None if the provider sent none
    by           the model that answered, if the model that was asked passed the request on
    reused       whether an earlier request got this reply, which is now given again
    took         the seconds that a reused reply took at first
    flight       begin and end of the wait for the reply, in nanoseconds of `time.perf_counter_ns`, if the model measured them:
                 the caller in a busy process would measure too late
    tool_calls   the tool calls in the reply
    extra        the provider's other fields, as in a message
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
    """A model's response to one request: a reply, or a failure.

    A recording finds it by the request (messages, seed, how often this trial had sent it before) and by the arm.

    model     the model's name
    request   the request
    outcome   the reply or the failure
    seconds   how long the response took
    """

    model: str
    request: Request
    outcome: Reply | CallFailed
    seconds: float


Sleep = Callable[[float], Awaitable[None]]
"""Lets seconds pass on the trial's clock: a real sleep for a live trial, none for a simulated one."""


class Model(Protocol):
    """The interface of a model.

    Its parameters are in the trial's digest and in the run's manifest; neither contains a key.

    name          its name in the config
    timing        the kind of its seconds: `live` seconds are real, all others run on the trial's own clock
    endpoint      the endpoint that answers; calls to one endpoint share one limit on concurrency
    concurrency   how many calls its endpoint takes at the same time
    """

    name: str
    timing: Timing
    endpoint: str
    concurrency: int

    @property
    def parameters(self) -> dict[str, object]:
        """Return all parameters that determine the model's replies, by name, as JSON, without API keys."""

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Answer a request. The caller does all retries.

        Args:
            request: The request.
            sleep: Lets seconds pass on the trial's clock; a model that is not live uses no other clock.

        Returns:
            The reply.

        Raises:
            CallFailed: No usable reply came; its type says how (`bench.common.errors`).
        """
        ...

    async def prepare(self, patient: bool = True) -> None:
        """Check that the model can be used.

        Args:
            patient: Whether to try again if it is only busy.

        Raises:
            EndpointError: It cannot be used.
        """
        ...

    async def close(self) -> None:
        """Release the model's connections and files. The model gets no request afterwards."""


@runtime_checkable
class ExchangedModel(Protocol):
    """A model that is exchanged during a trial: another model can answer each further process of the agent."""

    def in_life(self, life: int) -> Model:
        """Return the model that answers one process of the agent. Each restart after a kill begins a new process, a *life*.

        Args:
            life: The number of the agent's process in the trial, from 1.

        Returns:
            The model for this process; this model if all processes have the same.
        """
        ...
