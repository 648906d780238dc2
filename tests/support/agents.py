"""Agents for the tests: dialogues with the model about one subtask, on the workbench's line or as clients of the endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import openai
from openai.types.chat import ChatCompletionMessageParam

from bench.record.messages import Message
from bench.run.architectures.part import Architecture
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import ModelLine, Workbench
from bench.scenario import Subtask, Task

Ask = Callable[[Sequence[Message]], Awaitable[str]]
Agent = Callable[[Sequence[Message], Ask], Awaitable[str]]
"""Given our messages for a subtask and a way to ask, it returns the text to be read."""

PLAN = "First I add the numbers of the deliveries that were not eaten, then I say the total."
BAD = '{"unit": "apples"}'


def say(text: str) -> Message:
    return Message("user", text)


async def once(messages: Sequence[Message], ask: Ask) -> str:
    return await ask(messages)


async def three_turns(messages: Sequence[Message], ask: Ask) -> str:
    for _ in range(2):
        messages = [*messages, Message("assistant", await ask(messages)), say(f"Look again, {len(messages)}.")]
    return await ask(messages)


async def plan_then_answer(messages: Sequence[Message], ask: Ask) -> str:
    plan = await ask([*messages, say("Plan first, in words.")])
    return await ask([*messages, Message("assistant", plan), say("Now answer.")])


async def checked_by_itself(messages: Sequence[Message], ask: Ask) -> str:
    """It sees a bad reply as such, and asks again in other words."""
    reply = await ask(messages)
    while reply == BAD:
        messages = [*messages, Message("assistant", reply), say("That is not right.")]
        reply = await ask(messages)
    return reply


async def best_of_three(messages: Sequence[Message], ask: Ask) -> str:
    """Three equal requests in turn, of which the first reply is taken."""
    replies = [await ask(messages) for _ in range(3)]
    return replies[0]


def in_process(agent: Agent) -> Architecture:
    """An architecture that lets the agent make each subtask until it is accepted."""

    async def by(messages: Sequence[Message], line: ModelLine) -> str:
        async def ask(asked: Sequence[Message]) -> str:
            return (await line(asked)).text

        return await agent(messages, ask)

    async def architecture(task: Task, workbench: Workbench) -> None:
        for subtask in task.subtasks:
            rejected: Rejected | None = None
            while not workbench.done(subtask):
                proposal = await workbench.propose(subtask, repair=rejected, by=by)
                rejected = workbench.verify(proposal)
                if rejected is None:
                    workbench.commit(proposal)

    return architecture


def over_the_endpoint(agent: Agent) -> Architecture:
    """The same, with the agent as a real HTTP client."""

    async def architecture(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*task.subtasks) as session:
            for subtask in task.subtasks:
                ask = client_of(session, subtask)
                while not workbench.done(subtask):
                    workbench.attempts_left(subtask)
                    proposal = session.proposal(await agent(session.messages(subtask), ask), subtask)
                    if workbench.verify(proposal) is None:
                        workbench.commit(proposal)

    return architecture


def client_of(session: EndpointSession, subtask: Subtask) -> Ask:
    async def ask(messages: Sequence[Message]) -> str:
        sent: list[ChatCompletionMessageParam] = []
        for message in messages:
            sent.append({"role": message.role, "content": message.content})  # type: ignore[misc, arg-type]
        plain = openai.DefaultAsyncHttpxClient(verify=False)  # reads no certificates, which would take most of a trial
        async with openai.AsyncOpenAI(base_url=session.base_url(subtask), api_key=session.api_key, http_client=plain) as client:
            reply = await client.chat.completions.create(model="any", messages=sent)
        return reply.choices[0].message.content or ""

    return ask
