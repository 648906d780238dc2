"""OpenAI's Agents SDK."""

from agents import Agent, Runner, function_tool
from shop import TASK, look, mail, refund

agent = Agent(name="clerk", model="gpt-4o", tools=[function_tool(tool) for tool in (look, refund, mail)])
print(Runner.run_sync(agent, TASK).final_output)
