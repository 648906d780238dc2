"""Haystack's agent."""

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from shop import TASK, look, mail, refund

tools = [create_tool_from_function(function) for function in (look, refund, mail)]
agent = Agent(chat_generator=OpenAIChatGenerator(model="gpt-4o", max_retries=0), tools=tools)
print(agent.run(messages=[ChatMessage.from_user(TASK)])["messages"][-1].text)
