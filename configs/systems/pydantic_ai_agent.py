"""Pydantic AI: https://ai.pydantic.dev/agents

Nothing is kept. `pydantic_ai_dbos.py` is what its documentation says of durability.
"""

import shared
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


def tool(declared: dict) -> Tool:
    def run(context: RunContext, **arguments: object) -> str:
        return shared.call(declared["name"], arguments, context.tool_call_id)

    return Tool.from_schema(run, declared["name"], declared["description"], declared["parameters"], takes_ctx=True)


provider = OpenAIProvider(openai_client=AsyncOpenAI(http_client=shared.async_http_client()))
agent = Agent(OpenAIChatModel(shared.MODEL, provider=provider), tools=[tool(one) for one in shared.tools()])
print(agent.run_sync(shared.TASK, usage_limits=UsageLimits(request_limit=None)).output)
