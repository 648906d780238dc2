"""A world's tools, by name: its own and the common ones; what they are, and what comes of calling them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from bench.errors import GaveUp
from bench.worlds.environment import Tool
from bench.worlds.environment.calling import fitted
from bench.worlds.runtime.actions import WorldActions
from bench.worlds.tool_servers.answers import STATUS, ToolResponse, answer_of, done, failed
from bench.worlds.tool_servers.common import Common, common_tools


@dataclass(frozen=True)
class Offer:
    """A tool as it is offered. `result` is None where it has no one form."""

    name: str
    description: str
    arguments: type[BaseModel]
    result: type[BaseModel] | None = None

    @cached_property
    def function(self) -> dict[str, Any]:
        """As a chat completion's `tools` have it."""
        fields = {"name": self.name, "description": self.description, "parameters": self.arguments.model_json_schema()}
        return {"type": "function", "function": fields}


class Tools:
    """The tools of one trial's world, over all lives of its agent.

    taken   how many calls of the world's own tools were passed on to it
    """

    def __init__(self, world: WorldActions):
        self._world, self._acting = world, world.acting
        self.taken = 0
        environment = world.environment
        self._common = {
            tool.name: tool for tool in common_tools(tuple(environment.people)) if tool.name not in environment.by_name
        }
        offers = [Offer(tool.name, _described(tool), tool.arguments, tool.result) for tool in environment.tools]
        self.offers = (*offers, *(Offer(tool.name, tool.description, tool.arguments) for tool in self._common.values()))

    async def call(
        self, name: str, arguments: Mapping[str, Any], key: str | None, expect: Mapping[str, int] | None
    ) -> ToolResponse:
        """Raises Crashed where the agent dies of it, GaveUp where it has called too often."""
        if common := self._common.get(name):
            return await self._call_common(common, arguments, key)
        self.taken += not self._acting.process.is_dead
        try:
            return answer_of(await self._world.act(name, arguments, key, expect=expect))
        except (asyncio.CancelledError, GaveUp):  # it left no trace
            self.taken -= 1
            raise

    async def _call_common(self, tool: Common, given: Mapping[str, Any], key: str | None) -> ToolResponse:
        asked = fitted(tool.name, tool.arguments, given)
        if isinstance(asked, str):
            return failed(STATUS["arguments"], "arguments", asked)
        return done(await tool.work(self._world, asked, key))


def _described(tool: Tool) -> str:
    text = tool.description or f"{tool.name.replace('_', ' ').capitalize()}."
    return f"{text} It is taken back by {tool.undo}." if tool.undo else text
