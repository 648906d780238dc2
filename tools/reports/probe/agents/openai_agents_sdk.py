"""OpenAI's Agents SDK with MCP servers and a session on SQLite: https://openai.github.io/openai-agents-python/mcp,
https://openai.github.io/openai-agents-python/sessions

A new life runs the same call with the same session.

python openai_agents_sdk.py MCP_JSON TASK SESSION
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStdio
from http_tool import URL, graphql

CONFIG, TASK, SESSION = sys.argv[1:]
SERVERS = json.loads(Path(CONFIG).read_text())["mcpServers"]
set_tracing_disabled(True)  # it would send traces to OpenAI
set_default_openai_api(os.environ.get("MODEL_API", "responses"))


async def main() -> str:
    async with AsyncExitStack() as stack:
        entered = [
            await stack.enter_async_context(
                MCPServerStdio(
                    {**server, "env": {**os.environ, **server.get("env", {})}},
                    name=name,
                    client_session_timeout_seconds=60,  # a busy machine starts a server in more than the five by default
                )
            )
            for name, server in SERVERS.items()
        ]
        tools = [function_tool(graphql)] if URL else []
        agent = Agent(name="clerk", model="gpt-5-mini", mcp_servers=entered, tools=tools)
        ended = await Runner.run(agent, TASK, session=SQLiteSession("1", SESSION), max_turns=30)
    return ended.final_output


print(asyncio.run(main()))
