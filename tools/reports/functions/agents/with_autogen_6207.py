"""AutoGen's agent that executes code, with the loop that debugs it, for which https://github.com/microsoft/autogen/issues/6207
asked. The loop executes a whole block again whose last line failed."""

import asyncio
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from autogen_agentchat.agents import CodeExecutorAgent
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from autogen_ext.models.replay import ReplayChatCompletionClient
from shop import TASK

CODE = """I run this.

```python
from shop import look, mail, refund

print(refund("o-17", int(look("o-17"))))
print(mail("ada@example.com", "Your money is on its way."))
```"""

KNOWS = ModelInfo(vision=False, function_calling=False, json_output=True, family=ModelFamily.UNKNOWN, structured_output=True)


class Script(ReplayChatCompletionClient):
    """Writes the code, wants it to be tried again if it failed, and says what came of it."""

    async def create(self, messages: Sequence[Any], *, json_output: Any = None, **_: Any) -> CreateResult:
        """Return the reply to a conversation."""
        told = str(messages[-1].content)
        if json_output:
            reply = '{"reason": "It may work now.", "retry": true}'
        elif "sent" in told:
            reply = "Done."
        else:
            reply = CODE if TASK in told or "Traceback" in told else "I give up."
        return CreateResult(finish_reason="stop", content=reply, usage=RequestUsage(100, 20), cached=False)


async def main() -> None:
    with TemporaryDirectory() as folder:
        executor = LocalCommandLineCodeExecutor(work_dir=folder)
        agent = CodeExecutorAgent("clerk", executor, model_client=Script(["-"], model_info=KNOWS), max_retries_on_error=2)
        result = await agent.run(task=TASK)
        print(result.messages[-1].to_text())


asyncio.run(main())
