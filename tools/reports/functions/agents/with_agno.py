"""Agno."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from shop import TASK, look, mail, refund

agent = Agent(model=OpenAIChat(id="gpt-4o"), tools=[look, refund, mail], telemetry=False)
print(agent.run(TASK).content)
