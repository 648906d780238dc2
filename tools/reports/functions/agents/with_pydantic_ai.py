"""Pydantic AI."""

from pydantic_ai import Agent
from shop import TASK, look, mail, refund

agent = Agent("openai-chat:gpt-4o", tools=[look, refund, mail])
print(agent.run_sync(TASK).output)
