"""A world's tools by name: the pack's tools and the common tools, their descriptions, and their results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from bench.common.errors import GaveUp
from bench.worlds.run.driver.common_tools import WorldTool, common_tools
from bench.worlds.run.driver.tool_answers import STATUS_BY_CODE, ToolResponse, answer_of, error_response, success_response
from bench.worlds.run.environment import Tool
from bench.worlds.run.environment.calling import parse_as
from bench.worlds.run.runtime.actions import WorldActions


@dataclass(frozen=True)
class Offer:
    """A tool that agents are offered. `result` is None if the tool's results have different types."""

    name: str
    description: str
    arguments: type[BaseModel]
    result: type[BaseModel] | None = None

    @cached_property
    def function(self) -> dict[str, Any]:
        """Return the tool in the form of a chat completion's `tools`."""
        fields = {"name": self.name, "description": self.description, "parameters": self.arguments.model_json_schema()}
        return {"type": "function", "function": fields}


class Tools:
    """The tools of one trial's world, over all processes of its agent.

    taken   the number of calls of the pack's tools that were passed on to the world
    asked   whether any tool was called, including the common tools
    """

    def __init__(self, world: WorldActions):
        self._world, self._acting = world, world.acting
        self.taken, self.asked = 0, False
        environment = world.environment
        all_common = common_tools(tuple(environment.people))
        self._common = {tool.name: tool for tool in all_common if tool.name not in environment.by_name}
        offers = [Offer(tool.name, _description(tool), tool.arguments, tool.result) for tool in environment.tools]
        self.offers = (*offers, *(Offer(tool.name, tool.description, tool.arguments) for tool in self._common.values()))

    async def call(
        self, name: str, arguments: Mapping[str, Any], key: str | None, expect: Mapping[str, int] | None
    ) -> ToolResponse:
        """Call a tool. Raises Crashed if the agent is killed at this call, and GaveUp if it has called too often."""
        self.asked = True
        if common := self._common.get(name):
            return await self._call_common(common, arguments, key)
        self.taken += not self._acting.process.is_dead
        try:
            return answer_of(await self._world.act(name, arguments, key, expect=expect))
        except (asyncio.CancelledError, GaveUp):  # the call left no trace
            self.taken -= 1
            raise

    async def _call_common(self, tool: WorldTool, given: Mapping[str, Any], key: str | None) -> ToolResponse:
        """Call a common tool, and return its answer."""
        arguments = parse_as(tool.name, tool.arguments, given)
        if isinstance(arguments, str):
            return error_response(STATUS_BY_CODE["arguments"], "arguments", arguments)
        return success_response(await tool.handler(self._world, arguments, key))


def _description(tool: Tool) -> str:
    """Return the description of a tool for an agent, with the tool that undoes it."""
    text = tool.description or f"{tool.name.replace('_', ' ').capitalize()}."
    return f"{text} It is taken back by {tool.undo}." if tool.undo else text
