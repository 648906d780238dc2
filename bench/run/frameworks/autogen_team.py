"""An AutoGen team that talks: an engineer gives the whole answer, and a reviewer approves it or says what is wrong.

They take turns in one conversation (RoundRobinGroupChat). It ends with the reviewer's approval, or after MOST_ANSWERS answers.
Then our verifier checks the last answer; if it rejects it, a fresh team gets the same task. The prompts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import FunctionalTermination, MaxMessageTermination
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import DefaultAsyncHttpxClient as AsyncHttpxClient

from bench.record.messages import Message
from bench.run.frameworks.autogen_graph import PLAIN
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

MOST_ANSWERS = 2
"""Answers in one conversation."""
APPROVED = "yes"
"""The beginning of the reviewer's approval."""
REVIEW = (
    "You review the answer of an engineer to the task below. Compare it with the task and with the form that is asked for. "
    f"If it is right and complete, reply with the one word {APPROVED}. Otherwise say in a few sentences what is wrong with it. "
    "Do not give the answer yourself."
)


async def autogen_team(task: Task, workbench: Workbench) -> None:
    """Ask a fresh team until the verifier accepts its last answer. Raises GaveUp if no attempt is left."""
    async with workbench.endpoint(*task.subtasks, judges=reviews) as session:
        while True:
            workbench.attempts_left(*task.subtasks)  # raises GaveUp at 0
            proposal = session.proposal(await _conversation(session))
            if workbench.verify(proposal) is None:
                break
        workbench.commit(proposal)


def reviews(messages: Sequence[Message]) -> bool:
    """Return whether these messages are for the reviewer."""
    return messages[0].content.startswith(REVIEW)


def _is_approved(messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> bool:
    last = messages[-1] if messages else None
    review = last.content if isinstance(last, TextMessage) and last.source == "reviewer" else ""
    return review.strip().lower().startswith(APPROVED)


async def _conversation(session: EndpointSession) -> str:
    """Return the last answer of a fresh team."""
    system, user = session.messages()
    async with AsyncHttpxClient() as http:
        client = OpenAIChatCompletionClient(
            model="bench", base_url=session.base_url(), api_key=session.api_key, model_info=PLAIN, http_client=http
        )
        engineer = AssistantAgent("engineer", client, system_message=f"{system.content}\n\n{user.content}")
        reviewer = AssistantAgent("reviewer", client, system_message=f"{REVIEW}\n\n{user.content}")
        ends = FunctionalTermination(_is_approved) | MaxMessageTermination(1 + 2 * MOST_ANSWERS)
        result = await RoundRobinGroupChat([engineer, reviewer], termination_condition=ends).run(task="Begin.")
    answers = [
        message.content for message in result.messages if isinstance(message, TextMessage) and message.source == "engineer"
    ]
    return answers[-1]
