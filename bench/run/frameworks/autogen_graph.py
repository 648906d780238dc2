"""AutoGen's GraphFlow as static: a chain of AssistantAgents, verified at the pack's checkpoints. After a rejection a new flow
runs the rest from there on, with fresh agents, since an agent keeps its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from autogen_agentchat.agents import AssistantAgent, MessageFilterAgent, MessageFilterConfig, PerSourceFilter
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import DefaultAsyncHttpxClient as AsyncHttpxClient

from bench.record.messages import Message
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.workbench import Workbench
from bench.scenario import Subtask, Task

USER = "user"
PLAIN = ModelInfo(vision=False, function_calling=False, json_output=False, structured_output=False, family=ModelFamily.UNKNOWN)
Prompts = Mapping[str, Sequence[Message]]


async def autogen_graph(task: Task, workbench: Workbench) -> None:
    outputs: dict[str, str] = {}
    async with workbench.endpoint(*task.subtasks) as session:
        prompts = {subtask.name: session.messages(subtask, documents_alone=True) for subtask in task.subtasks}
        for stage in task.stages:
            names = [subtask.name for subtask in stage]
            rest = stage
            while rest:
                for subtask in rest:
                    workbench.attempts_left(subtask)
                outputs |= await _flow(rest, outputs, prompts, session)
                for subtask in rest:
                    workbench.commit_unverified(session.proposal(outputs[subtask.name], subtask))
                rejected = workbench.checkpoint(stage)
                rest = stage[names.index(rejected.subtask) :] if rejected else ()


async def _flow(
    rest: Sequence[Subtask], outputs: Mapping[str, str], prompts: Prompts, session: EndpointSession
) -> dict[str, str]:
    """Return the agents' answers in one flow, by subtask. The flow begins with the outputs of earlier flows."""
    here = {subtask.name for subtask in rest}
    passed_on = [TextMessage(source=name, content=text) for name, text in outputs.items() if name not in here]
    async with AsyncHttpxClient() as http:
        agents = [_agent(subtask, prompts[subtask.name], session, http) for subtask in rest]
        graph = DiGraphBuilder()
        for agent in agents:
            graph.add_node(agent)
        for agent, following in pairwise(agents):
            graph.add_edge(agent, following)
        flow = GraphFlow([*agents], graph.build())
        result = await flow.run(task=[TextMessage(source=USER, content="Begin."), *passed_on])
    return {
        message.source: message.content
        for message in result.messages
        if isinstance(message, TextMessage) and message.source in here
    }


def _agent(subtask: Subtask, prompt: Sequence[Message], session: EndpointSession, http: AsyncHttpxClient) -> MessageFilterAgent:
    """Make an agent that has its prompt, and gets messages only of the agents whose outputs its subtask reads."""
    system, user = prompt
    address = session.base_url(subtask)
    client = OpenAIChatCompletionClient(
        model="bench", base_url=address, api_key=session.api_key, model_info=PLAIN, http_client=http
    )
    agent = AssistantAgent(subtask.name, client, system_message=f"{system.content}\n\n{user.content}")
    heard = [PerSourceFilter(source=name, position="last", count=1) for name in (USER, *subtask.reads)]
    return MessageFilterAgent(subtask.name, agent, MessageFilterConfig(per_source=heard))
