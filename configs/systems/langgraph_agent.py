"""LangChain's prebuilt agent, which is a LangGraph graph of a model and a ToolNode:
https://docs.langchain.com/oss/python/langchain/agents

--durable   a checkpointer on SQLite; a new life goes on with the same thread and no input:
            https://docs.langchain.com/oss/python/langgraph/durable-execution
--sync      and each checkpoint written before the next step starts, not beside it: the same page, "Durability modes"
--keys      "use idempotency keys ... to avoid unintended duplication": the same page
"""

import sys
from contextlib import nullcontext

import shared
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver


def tool(declared: dict) -> StructuredTool:
    name = declared["name"]

    def run(runtime: ToolRuntime, **arguments: object) -> str:
        return shared.call(name, arguments, runtime.tool_call_id)

    return StructuredTool.from_function(run, name=name, description=declared["description"], args_schema=declared["parameters"])


model = ChatOpenAI(model=shared.MODEL, http_client=shared.http_client())
config = {"configurable": {"thread_id": "1"}, "recursion_limit": 2000}
with SqliteSaver.from_conn_string(str(shared.FOLDER / "checkpoints.db")) if shared.DURABLE else nullcontext() as saver:
    agent = create_agent(model, [tool(one) for one in shared.tools()], checkpointer=saver)
    begun = shared.DURABLE and agent.get_state(config).values
    task = None if begun else {"messages": [{"role": "user", "content": shared.TASK}]}
    said = agent.invoke(task, config, durability="sync" if "--sync" in sys.argv else None)
print(said["messages"][-1].content)
