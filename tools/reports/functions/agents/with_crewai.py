"""A crew of one agent."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from shop import TASK, look, mail, refund

clerk = Agent(
    role="clerk",
    goal="Serve customers",
    backstory="You work in a shop.",
    llm=LLM(model="openai/gpt-4o"),
    tools=[tool(function) for function in (look, refund, mail)],
)
task = Task(description=TASK, expected_output="What was done", agent=clerk)
print(Crew(agents=[clerk], tasks=[task]).kickoff().raw)
