"""Agno's own retries: https://github.com/agno-agi/agno/issues/10366 says that they execute again what has succeeded."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from shop import TASK, look, mail, refund

agent = Agent(model=OpenAIChat(id="gpt-4o", max_retries=0), tools=[look, refund, mail], retries=2, telemetry=False)
print(agent.run(TASK).content)
