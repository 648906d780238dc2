"""AutoGen's AssistantAgent."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from shop import TASK, look, mail, refund


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o", max_retries=0)
    agent = AssistantAgent("clerk", model_client=client, tools=[look, refund, mail], max_tool_iterations=12)
    result = await agent.run(task=TASK)
    print(result.messages[-1].to_text())
    await client.close()


asyncio.run(main())
