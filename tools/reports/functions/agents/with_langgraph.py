"""LangChain's agent, which runs on LangGraph."""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from shop import TASK, look, mail, refund

agent = create_agent(ChatOpenAI(model="gpt-4o", max_retries=0), tools=[look, refund, mail])
state = agent.invoke({"messages": [{"role": "user", "content": TASK}]})
print(state["messages"][-1].content)
