"""LangGraph, each node one call of LangChain's ChatOpenAI.

langgraph        a chain of nodes, handed on unverified; at a rejection a chain of what is left from there on, same prompts
langgraph_retry  each node verifies its output; a conditional edge leads back to it, with the reason, until it will do
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from openai import DefaultAsyncHttpxClient as AsyncHttpxClient
from openai import DefaultHttpxClient as HttpxClient
from pydantic import SecretStr

from bench.runtime.endpoint_session import EndpointSession
from bench.runtime.proposal import Proposal
from bench.runtime.workbench import Workbench
from bench.scenario import Subtask, Task


class Rejection(TypedDict):
    """A graph's own state. The outputs are in the workbench's, from which the prompts are made."""

    rejection: str


Node = Callable[[Rejection], Awaitable[Rejection]]
NONE = Rejection(rejection="")


@dataclass(frozen=True)
class Line:
    """A session, and the HTTP clients for it. LangChain keeps its own by address for ever, and ours is soon another's."""

    session: EndpointSession
    http: AsyncHttpxClient
    sync: HttpxClient

    def chat(self, subtask: Subtask) -> ChatOpenAI:
        address = self.session.base_url(subtask)
        clients = {"http_async_client": self.http, "http_client": self.sync}
        return ChatOpenAI(model="bench", base_url=address, api_key=SecretStr(self.session.api_key), **clients)


@asynccontextmanager
async def _line(task: Task, workbench: Workbench) -> AsyncIterator[Line]:
    async with workbench.endpoint(*task.subtasks) as session, AsyncHttpxClient() as http:
        with HttpxClient() as sync:
            yield Line(session, http, sync)


async def langgraph(task: Task, workbench: Workbench) -> None:
    async with _line(task, workbench) as line:
        for stage in task.stages:
            names = [subtask.name for subtask in stage]
            rest = stage
            while rest:
                graph: StateGraph[Any, Any, Any, Any] = StateGraph(Rejection)
                for subtask in rest:
                    graph.add_node(subtask.name, _handing_on(subtask, workbench, line))
                graph.add_edge(START, rest[0].name)
                for subtask, following in pairwise(rest):
                    graph.add_edge(subtask.name, following.name)
                await graph.compile().ainvoke(NONE)
                rejected = workbench.checkpoint(stage)
                rest = stage[names.index(rejected.subtask) :] if rejected else ()


async def langgraph_retry(task: Task, workbench: Workbench) -> None:
    async with _line(task, workbench) as line:
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(Rejection)
        graph.add_edge(START, task.subtasks[0].name)
        for subtask, following in zip(task.subtasks, [*(one.name for one in task.subtasks[1:]), END], strict=True):
            graph.add_node(subtask.name, _verifying(subtask, workbench, line))
            graph.add_conditional_edges(subtask.name, _rejected, {True: subtask.name, False: following})
        await graph.compile().ainvoke(NONE, {"recursion_limit": len(task.subtasks) * workbench.max_attempts + 1})


def _handing_on(subtask: Subtask, workbench: Workbench, line: Line) -> Node:
    async def node(_: Rejection) -> Rejection:
        workbench.commit_unverified(await _ask(subtask, workbench, line))
        return NONE

    return node


def _verifying(subtask: Subtask, workbench: Workbench, line: Line) -> Node:
    async def node(state: Rejection) -> Rejection:
        proposal = await _ask(subtask, workbench, line, state["rejection"])
        rejected = workbench.verify(proposal)
        if rejected is None:
            workbench.commit(proposal)
        return Rejection(rejection=rejected.detail if rejected else "")

    return node


def _rejected(state: Rejection) -> bool:
    return bool(state["rejection"])


async def _ask(subtask: Subtask, workbench: Workbench, line: Line, rejection: str = "") -> Proposal:
    workbench.attempts_left(subtask)
    said = [(message.role, message.content) for message in line.session.messages(subtask)]
    if rejection:
        said.append(("user", f"Your last answer was rejected: {rejection}"))
    reply = await line.chat(subtask).ainvoke(said)
    return line.session.proposal(reply.text, subtask)
