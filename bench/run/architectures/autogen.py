"""Make a call with AutoGen: an AssistantAgent whose model client is the workbench's line to the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import Component
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FinishReasons,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    SystemMessage,
)
from pydantic import BaseModel

from bench.record.messages import Message
from bench.run.trial.workbench import ModelLine

FINISHES: dict[str, FinishReasons] = {"stop": "stop", "length": "length", "content_filter": "content_filter"}


async def assistant(messages: Sequence[Message], line: ModelLine) -> str:
    """Return the answer of a new AssistantAgent. The agent of an earlier attempt would send that attempt again, with its
    history."""
    system, task = messages
    agent = AssistantAgent("engineer", LineClient(line), system_message=system.content)
    result = await agent.run(task=task.content)
    last = result.messages[-1]
    if not isinstance(last, TextMessage):
        raise RuntimeError(f"AutoGen ended with a {type(last).__name__}, not with a text")
    return last.content


class LineSettings(BaseModel):
    """The configuration that AutoGen's components must have; this client has none."""


class LineClient(ChatCompletionClient, Component[LineSettings]):
    """AutoGen's model client over a line to the model. Tokens are counted behind the line, so AutoGen gets no counts."""

    component_type = "model"
    component_config_schema = LineSettings

    def __init__(self, line: ModelLine):
        self._line = line

    async def create(self, messages: Sequence[LLMMessage], **_: Any) -> CreateResult:
        """Send the messages over the line, and return the reply as AutoGen's result."""
        reply = await self._line([_plain(message) for message in messages])
        return CreateResult(
            finish_reason=FINISHES.get(reply.finish, "unknown"), content=reply.text, usage=RequestUsage(0, 0), cached=False
        )

    def create_stream(self, *_: Any, **__: Any) -> AsyncGenerator[str | CreateResult, None]:
        raise NotImplementedError("the line answers whole replies only")

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1_000_000

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=False,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
            multiple_system_messages=False,
        )

    @property
    def capabilities(self) -> ModelInfo:  # AutoGen still asks for the old name
        return self.model_info


def _plain(message: LLMMessage) -> Message:
    """Return AutoGen's message as a message of a trial."""
    if not isinstance(message.content, str):
        raise TypeError("only texts are sent over the line")
    if isinstance(message, SystemMessage):
        return Message("system", message.content)
    return Message("assistant" if isinstance(message, AssistantMessage) else "user", message.content)
