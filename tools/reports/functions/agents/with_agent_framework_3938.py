"""A workflow with checkpoints, whose second executor is an agent: https://github.com/microsoft/agent-framework/issues/3938 says
that no checkpoint holds what an executor did that has not ended, so that it makes its calls again once it is resumed."""

import asyncio
import os
import sys

from agent_framework import Agent, FileCheckpointStorage, WorkflowBuilder, WorkflowContext, executor
from agent_framework.openai import OpenAIChatCompletionClient
from shop import TASK, look, mail, refund

NAME = "refunds"


@executor(id="desk")
async def desk(message: str, context: WorkflowContext[str]) -> None:
    """Hand a task on."""
    await context.send_message(message)


async def main(*, again: bool) -> None:
    clerk = Agent(OpenAIChatCompletionClient(model="gpt-4o"), name="clerk", tools=[look, refund, mail])
    storage = FileCheckpointStorage(os.environ["STATE"])
    workflow = WorkflowBuilder(name=NAME, start_executor=desk, checkpoint_storage=storage).add_edge(desk, clerk).build()
    latest = await storage.get_latest(workflow_name=NAME) if again else None
    ended = await (workflow.run(checkpoint_id=latest.checkpoint_id) if latest else workflow.run(TASK))
    print(*ended.get_outputs() or ["Done: nothing is left to do"])


asyncio.run(main(again="again" in sys.argv))
