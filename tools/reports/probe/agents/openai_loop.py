"""A loop around OpenAI's SDK with the tools of MCP servers: https://platform.openai.com/docs/guides/function-calling

python openai_loop.py MCP_JSON TASK
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import openai
from http_tool import URL, graphql
from mcp import ClientSession, StdioServerParameters, stdio_client

CONFIG, TASK = sys.argv[1:]
SERVERS = json.loads(Path(CONFIG).read_text())["mcpServers"]


async def main() -> str:
    model, tools = openai.AsyncOpenAI(), {}
    async with AsyncExitStack() as stack:
        for server in SERVERS.values():
            environment = {**os.environ, **server.get("env", {})}
            parameters = StdioServerParameters(command=server["command"], args=server.get("args", []), env=environment)
            session = await stack.enter_async_context(ClientSession(*await stack.enter_async_context(stdio_client(parameters))))
            await session.initialize()
            tools |= {tool.name: (tool, session) for tool in (await session.list_tools()).tools}
        offered = [
            {
                "type": "function",
                "function": {"name": name, "description": tool.description or "", "parameters": tool.inputSchema},
            }
            for name, (tool, _) in tools.items()
        ]
        if URL:
            parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
            offered.append({"type": "function", "function": {"name": "graphql", "parameters": parameters}})
        messages = [{"role": "user", "content": TASK}]
        while True:
            reply = await model.chat.completions.create(model="gpt-5-mini", messages=messages, tools=offered)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            for call in message.tool_calls:
                arguments = json.loads(call.function.arguments)
                try:
                    if call.function.name == "graphql":
                        text = await asyncio.to_thread(graphql, **arguments)
                    else:
                        answer = await tools[call.function.name][1].call_tool(call.function.name, arguments)
                        text = "".join(part.text for part in answer.content if part.type == "text")
                        text = f"Error: {text}" if answer.isError else text
                except Exception as error:
                    text = f"Error: {error or type(error).__name__}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


print(asyncio.run(main()))
