"""Google's Agent Development Kit, with a model of another provider."""

import asyncio

from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from shop import TASK, look, mail, refund


async def main() -> None:
    agent = Agent(name="clerk", model=LiteLlm("openai/gpt-4o", num_retries=0), tools=[look, refund, mail])
    runner = InMemoryRunner(agent, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="ada")
    message = types.Content(role="user", parts=[types.Part(text=TASK)])
    async for event in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content and event.content.parts:
            print(event.content.parts[0].text)


asyncio.run(main())
