"""A tool that a person approves, with the state of the run kept as JSON, and a context for the run that is resumed:
https://github.com/openai/openai-agents-python/issues/4244 says that it then asks for the approval again, and never acts."""

import asyncio
import os
from pathlib import Path

from agents import Agent, Runner, RunState, function_tool
from shop import TASK, look, mail, refund

KEPT = Path(os.environ["STATE"])
tools = [function_tool(look), function_tool(refund, needs_approval=True), function_tool(mail)]


async def answered(kept: str) -> tuple[str, str]:
    """Begin a run, or resume one. Return its output, and its state if it asks for an approval."""
    agent = Agent(name="clerk", model="gpt-4o", tools=tools)
    if not kept:
        return "", (await Runner.run(agent, TASK)).to_state().to_string()
    state = await RunState.from_string(agent, kept)
    for approval in state.get_interruptions():
        state.approve(approval)
    result = await Runner.run(agent, state, context={"customer": "ada"})
    return result.final_output, result.to_state().to_string() if result.interruptions else ""


with asyncio.Runner() as runner:
    output, kept = "", KEPT.read_text() if KEPT.exists() else ""
    for _ in range(3):
        output, kept = runner.run(answered(kept))
        if not kept:
            print(output)
            break
        KEPT.write_text(kept)
