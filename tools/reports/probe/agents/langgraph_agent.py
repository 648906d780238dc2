"""LangChain's agent, a LangGraph graph, with the tools of MCP servers and a checkpointer on SQLite:
https://docs.langchain.com/oss/python/langchain/agents, https://docs.langchain.com/oss/python/langgraph/persistence

A new life goes on with the same thread and no input: https://docs.langchain.com/oss/python/langgraph/durable-execution

python langgraph_agent.py MCP_JSON TASK CHECKPOINTS
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from http_tool import URL, graphql
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

CONFIG, TASK, CHECKPOINTS = sys.argv[1:]
SERVERS = json.loads(Path(CONFIG).read_text())["mcpServers"]
THREAD = {"configurable": {"thread_id": "1"}}


async def main() -> str:
    connections = {
        name: {**server, "transport": "stdio", "env": {**os.environ, **server.get("env", {})}}
        for name, server in SERVERS.items()
    }
    client, tools = MultiServerMCPClient(connections), [tool(graphql)] if URL else []
    async with AsyncExitStack() as stack:
        saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(CHECKPOINTS))
        for name in SERVERS:
            tools += await load_mcp_tools(await stack.enter_async_context(client.session(name)))
        agent = create_agent(ChatOpenAI(model="gpt-5-mini"), tools, checkpointer=saver)
        begun = (await agent.aget_state(THREAD)).values
        ended = await agent.ainvoke(None if begun else {"messages": [{"role": "user", "content": TASK}]}, THREAD)
    return ended["messages"][-1].text


print(asyncio.run(main()))
