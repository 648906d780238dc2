"""LangGraph, each node one call of LangChain's ChatOpenAI.

langgraph        a chain of nodes, handed on unverified; after a rejection a chain of the rest, with the same prompts
langgraph_retry  each node verifies its output; a conditional edge leads back to it, with the reason, until it is accepted
langgraph_retry_same_words   the same graph; the reason has the place and the words of our architectures
langgraph_retry_policy       LangGraph's own way: a node raises the verifier's rejection, and its `RetryPolicy` runs it again
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from openai import DefaultAsyncHttpxClient as AsyncHttpxClient
from openai import DefaultHttpxClient as HttpxClient
from pydantic import SecretStr

from bench.common.errors import GaveUp
from bench.record.messages import Message
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Subtask, Task


class Rejection(TypedDict):
    """A graph's state. The outputs, from which the prompts are made, are in the workbench's state."""

    rejected: Rejected | None


class NotAccepted(Exception):
    """The verifier rejected a node's output."""


Node = Callable[[Rejection], Awaitable[Rejection]]
MakeMessages = Callable[[Subtask, "GraphClient", Rejected | None], Sequence[Message]]
"""Makes the messages that ask for a subtask, the first time or after a rejection."""
NONE = Rejection(rejected=None)


@dataclass(frozen=True)
class GraphClient:
    """A session, and its HTTP clients. LangChain would keep its own by address forever, and our address soon serves another
    session."""

    session: EndpointSession
    http: AsyncHttpxClient
    sync: HttpxClient

    def chat(self, subtask: Subtask) -> ChatOpenAI:
        address = self.session.base_url(subtask)
        clients = {"http_async_client": self.http, "http_client": self.sync}
        return ChatOpenAI(model="bench", base_url=address, api_key=SecretStr(self.session.api_key), **clients)


@asynccontextmanager
async def _line(task: Task, workbench: Workbench) -> AsyncIterator[GraphClient]:
    async with workbench.endpoint(*task.subtasks) as session, AsyncHttpxClient() as http:
        with HttpxClient() as sync:
            yield GraphClient(session, http, sync)


async def langgraph(task: Task, workbench: Workbench) -> None:
    async with _line(task, workbench) as line:
        for stage in task.stages:
            names = [subtask.name for subtask in stage]
            rest = stage
            while rest:
                graph: StateGraph[Any, Any, Any, Any] = StateGraph(Rejection)
                for subtask, following in _chain(graph, rest):
                    graph.add_node(subtask.name, _unverified_node(subtask, workbench, line))
                    graph.add_edge(subtask.name, following)
                await graph.compile().ainvoke(NONE)
                rejected = workbench.checkpoint(stage)
                rest = stage[names.index(rejected.subtask) :] if rejected else ()


async def langgraph_retry(task: Task, workbench: Workbench) -> None:
    await _with_edges_back(task, workbench, _messages_with_reason_last)


async def langgraph_retry_same_words(task: Task, workbench: Workbench) -> None:
    await _with_edges_back(task, workbench, _our_messages)


async def langgraph_retry_policy(task: Task, workbench: Workbench) -> None:
    again = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=workbench.max_attempts, retry_on=NotAccepted)
    async with _line(task, workbench) as line:
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(Rejection)
        for subtask, following in _chain(graph, task.subtasks):
            graph.add_node(subtask.name, _raising_node(subtask, workbench, line), retry_policy=again)
            graph.add_edge(subtask.name, following)
        try:
            await graph.compile().ainvoke(NONE)
        except NotAccepted as error:
            names = [subtask.name for subtask in task.subtasks if not workbench.done(subtask)][:1]
            raise GaveUp(names, f"no accepted output in {workbench.max_attempts} attempts") from error


async def _with_edges_back(task: Task, workbench: Workbench, words: MakeMessages) -> None:
    async with _line(task, workbench) as line:
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(Rejection)
        for subtask, following in _chain(graph, task.subtasks):
            graph.add_node(subtask.name, _verifying_node(subtask, workbench, line, words))
            graph.add_conditional_edges(subtask.name, _is_rejected, {True: subtask.name, False: following})
        await graph.compile().ainvoke(NONE, {"recursion_limit": len(task.subtasks) * workbench.max_attempts + 1})


def _chain(graph: StateGraph[Any, Any, Any, Any], subtasks: Sequence[Subtask]) -> Iterator[tuple[Subtask, str]]:
    """Begin a graph with the first subtask, and yield each subtask with the name of its successor."""
    names = [subtask.name for subtask in subtasks]
    graph.add_edge(START, names[0])
    yield from zip(subtasks, [*names[1:], END], strict=True)


def _unverified_node(subtask: Subtask, workbench: Workbench, line: GraphClient) -> Node:
    async def node(_: Rejection) -> Rejection:
        workbench.commit_unverified(await _ask(subtask, workbench, line))
        return NONE

    return node


def _verifying_node(subtask: Subtask, workbench: Workbench, line: GraphClient, words: MakeMessages) -> Node:
    async def node(state: Rejection) -> Rejection:
        proposal = await _ask(subtask, workbench, line, words, state["rejected"])
        rejected = workbench.verify(proposal)
        if rejected is None:
            workbench.commit(proposal)
        return Rejection(rejected=rejected)

    return node


def _raising_node(subtask: Subtask, workbench: Workbench, line: GraphClient) -> Node:
    async def node(_: Rejection) -> Rejection:
        proposal = await _ask(subtask, workbench, line)
        if rejected := workbench.verify(proposal):
            raise NotAccepted(rejected.detail)
        workbench.commit(proposal)
        return NONE

    return node


def _is_rejected(state: Rejection) -> bool:
    return state["rejected"] is not None


def _messages_with_reason_last(subtask: Subtask, line: GraphClient, rejected: Rejected | None) -> Sequence[Message]:
    behind = [Message("user", f"Your last answer was rejected: {rejected.detail}")] if rejected else []
    return [*line.session.messages(subtask), *behind]


def _our_messages(subtask: Subtask, line: GraphClient, rejected: Rejected | None) -> Sequence[Message]:
    return line.session.messages(subtask, repair=rejected)


async def _ask(
    subtask: Subtask,
    workbench: Workbench,
    line: GraphClient,
    words: MakeMessages = _our_messages,
    rejected: Rejected | None = None,
) -> Proposal:
    workbench.attempts_left(subtask)
    messages = words(subtask, line, rejected)
    reply = await line.chat(subtask).ainvoke([(message.role, message.content) for message in messages])
    return line.session.proposal(reply.text, subtask)
