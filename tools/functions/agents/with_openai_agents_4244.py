"""A tool that a person approves, with the state of the run kept as JSON. A run resumed after the tool executes it again:
https://github.com/openai/openai-agents-python/issues/4244"""

import asyncio
import os
from pathlib import Path

from agents import Agent, Runner, RunState, function_tool
from shop import TASK, look, mail, refund

KEPT = Path(os.environ["STATE"])
tools = [function_tool(look), function_tool(refund, needs_approval=True), function_tool(mail)]
agent = Agent(name="clerk", model="gpt-4o", tools=tools)
kept = KEPT.exists()
state = asyncio.run(RunState.from_string(agent, KEPT.read_text())) if kept else Runner.run_sync(agent, TASK).to_state()
while approvals := state.get_interruptions():
    KEPT.write_text(state.to_string())
    for approval in approvals:
        state.approve(approval)
    result = Runner.run_sync(agent, state)
    state = result.to_state()
print(result.final_output)
