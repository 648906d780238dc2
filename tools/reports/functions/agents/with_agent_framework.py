"""Microsoft's Agent Framework."""

import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from shop import TASK, look, mail, refund


async def main() -> None:
    agent = Agent(OpenAIChatCompletionClient(model="gpt-4o"), tools=[look, refund, mail])
    print(await agent.run(TASK))


asyncio.run(main())
