"""LlamaIndex's FunctionAgent."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from shop import TASK, look, mail, refund


async def main() -> None:
    agent = FunctionAgent(tools=[look, refund, mail], llm=OpenAI(model="gpt-4o", max_retries=0))
    print(await agent.run(TASK))


asyncio.run(main())
