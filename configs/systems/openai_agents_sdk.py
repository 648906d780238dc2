"""OpenAI's Agents SDK: https://openai.github.io/openai-agents-python

--durable   a session on SQLite; a new life runs the same call with the same session:
            https://openai.github.io/openai-agents-python/sessions
"""

import asyncio
import json

import shared
from agents import (
    Agent,
    FunctionTool,
    Runner,
    SQLiteSession,
    default_tool_error_function,
    set_default_openai_client,
    set_tracing_disabled,
)
from agents.tool_context import ToolContext
from openai import AsyncOpenAI

set_default_openai_client(AsyncOpenAI(http_client=shared.async_http_client()))
set_tracing_disabled(True)  # it would send traces to OpenAI


def tool(declared: dict) -> FunctionTool:
    name, description, schema = declared["name"], declared["description"], declared["parameters"]

    async def run(context: ToolContext, arguments: str) -> str:
        try:
            return shared.call(name, json.loads(arguments), context.tool_call_id)
        except Exception as error:  # as `@function_tool` does unless it is told otherwise
            return default_tool_error_function(context, error)

    return FunctionTool(name, description, schema, run, strict_json_schema=False)


async def main() -> str:
    agent = Agent(name="agent", model=shared.MODEL, tools=[tool(one) for one in shared.tools()])
    session = SQLiteSession("1", shared.FOLDER / "session.db") if shared.DURABLE else None
    return (await Runner.run(agent, shared.TASK, session=session, max_turns=2000)).final_output


print(asyncio.run(main()))
