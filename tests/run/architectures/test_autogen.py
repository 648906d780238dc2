"""What AutoGen adds to a call: nothing. The model gets the rendered messages, and every attempt a fresh agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage
from trials import TINY, scripted

from bench.common.errors import RateLimited
from bench.record.messages import Message
from bench.run.architectures.autogen import LineClient, assistant
from bench.run.trial.prompt import render
from bench.run.trial.workbench import LineReply

SENT = (Message("system", "Be {brief}."), Message("user", "One\n\n{two} "))


def test_the_line_gets_exactly_the_rendered_messages_each_time_anew() -> None:
    heard: list[Sequence[Message]] = []

    async def line(messages: Sequence[Message]) -> LineReply:
        heard.append(messages)
        return LineReply("three", "stop", 1)

    assert [asyncio.run(assistant(SENT, line)) for _ in range(2)] == ["three", "three"]
    assert [tuple(messages) for messages in heard] == [SENT, SENT]


@pytest.mark.parametrize(
    "reply",
    [LineReply("", "stop", 1), LineReply("no", "content_filter", 1), LineReply("cut", "length", 1), LineReply(" x ", "odd", 1)],
)
def test_a_reply_comes_back_to_the_letter_whatever_its_finish(reply: LineReply) -> None:
    async def line(_: Sequence[Message]) -> LineReply:
        return reply

    assert asyncio.run(assistant(SENT, line)) == reply.text


def test_a_failure_behind_the_line_passes_through_the_agent() -> None:
    async def line(_: Sequence[Message]) -> LineReply:
        raise RateLimited("429")

    with pytest.raises(RateLimited):
        asyncio.run(assistant(SENT, line))


def test_a_whole_trial_sends_the_same_two_messages_at_every_attempt() -> None:
    result, model = scripted("monolithic", {"gather+total+review": ["no", "no"]})
    expected = render(TINY.task, TINY.task.subtasks, TINY.task.documents, None, "none")
    assert result.record.outcome == "solved"
    assert [request.messages for request in model.requests] == [expected] * 3


def test_a_history_would_be_sent_in_its_roles_and_only_texts_are_sent() -> None:
    heard: list[Message] = []

    async def line(messages: Sequence[Message]) -> LineReply:
        heard.extend(messages)
        return LineReply("", "stop", 1)

    client = LineClient(line)
    history: list[LLMMessage] = [UserMessage(content="a", source="user"), AssistantMessage(content="b", source="engineer")]
    asyncio.run(client.create(history))
    assert heard == [Message("user", "a"), Message("assistant", "b")]
    with pytest.raises(TypeError, match="only texts"):
        asyncio.run(client.create([UserMessage(content=["a"], source="user")]))
