"""AutoGen AgentChat: https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide

--durable   the agent's state, saved after each of its turns and loaded by a new life: the guide's "Managing State"
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import shared
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

STATE = shared.FOLDER / "state.json"
KNOWN = {"function_calling": True, "json_output": True, "structured_output": True, "vision": False, "family": "unknown"}


class Arguments(BaseModel, extra="allow"):
    pass


class HttpTool(BaseTool[Arguments, str]):
    def __init__(self, declared: dict) -> None:
        super().__init__(Arguments, str, declared["name"], declared["description"])
        self.declared = declared

    @property
    def schema(self) -> Any:
        return self.declared

    async def run_json(self, args: Mapping[str, Any], _: CancellationToken, call_id: str | None = None) -> str:
        return shared.call(self.name, dict(args), call_id or "")

    async def run(self, args: Arguments, _: CancellationToken) -> str:
        return shared.call(self.name, args.model_dump(), "")


async def main() -> str:
    model = OpenAIChatCompletionClient(model=shared.MODEL, model_info=KNOWN, http_client=shared.async_http_client())
    agent = AssistantAgent("agent", model, tools=[HttpTool(one) for one in shared.tools()], system_message=None)
    task: str | None = shared.TASK
    if shared.DURABLE and STATE.exists():
        await agent.load_state(json.loads(STATE.read_text()))
        task = None
    while True:  # a turn is one request to the model and the calls that it asks for
        said = (await agent.run(task=task)).messages[-1]
        task = None
        if shared.DURABLE:
            STATE.write_text(json.dumps(await agent.save_state()))
        if isinstance(said, TextMessage):
            return said.content


print(asyncio.run(main()))
