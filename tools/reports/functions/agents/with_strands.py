"""Strands Agents."""

from shop import TASK, look, mail, refund
from strands import Agent, tool
from strands.models.openai import OpenAIModel

agent = Agent(model=OpenAIModel(model_id="gpt-4o"), tools=[tool(look), tool(refund), tool(mail)], callback_handler=None)
print(agent(TASK))
