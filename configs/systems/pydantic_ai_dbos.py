"""Pydantic AI under DBOS, its steps kept in SQLite: https://ai.pydantic.dev/durable_execution/dbos

A new life launches DBOS, which goes on with the workflow that was under way; the same workflow id waits for it.

--keys   a step can run again after a crash, "so keep its side effects idempotent": the same page
"""

import asyncio

import shared
from dbos import DBOS, SetWorkflowID
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

DBOS(config={"name": "agent", "system_database_url": f"sqlite:///{shared.FOLDER}/dbos.sqlite", "log_level": "WARNING"})


@DBOS.step()
async def step(name: str, arguments: dict, call_id: str) -> str:
    return shared.call(name, arguments, call_id)


def tool(declared: dict) -> Tool:
    async def run(context: RunContext, **arguments: object) -> str:
        return await step(declared["name"], arguments, context.tool_call_id)

    return Tool.from_schema(run, declared["name"], declared["description"], declared["parameters"], takes_ctx=True)


provider = OpenAIProvider(openai_client=AsyncOpenAI(http_client=shared.async_http_client()))
agent = Agent(
    OpenAIChatModel(shared.MODEL, provider=provider),
    name="agent",
    tools=[tool(one) for one in shared.tools()],
    capabilities=[DBOSDurability()],
)


@DBOS.workflow()
async def work(task: str) -> str:
    return (await agent.run(task, usage_limits=UsageLimits(request_limit=None))).output


async def main() -> None:
    DBOS.launch()
    with SetWorkflowID("1"):
        print(await work(shared.TASK))


asyncio.run(main())
