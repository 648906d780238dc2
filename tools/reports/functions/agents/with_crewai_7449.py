"""A crew whose model calls no functions: https://github.com/crewAIInc/crewAI/issues/7449 says that a tool that raises is
executed twice in each attempt."""

import json
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool
from shop import TASK, look, mail, refund

CALLS = [
    ("look", {"order": "o-17"}),
    ("refund", {"order": "o-17", "cents": 4500}),
    ("mail", {"recipient": "ada@example.com", "text": "Your money is on its way."}),
]


class Script(BaseLLM):
    """Asks for the next call by text, as a model without functions does."""

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        """Return the reply to a conversation."""
        asked = messages if isinstance(messages, str) else "\n".join(str(each["content"]) for each in messages)
        done = sum(f"Action: {name}\nAction Input: {json.dumps(arguments)}" in asked for name, arguments in CALLS)
        if done == len(CALLS):
            return "Thought: I now know the final answer\nFinal Answer: Done."
        name, arguments = CALLS[done]
        return f"Thought: Next.\nAction: {name}\nAction Input: {json.dumps(arguments)}"

    def supports_function_calling(self) -> bool:
        """It has no functions."""
        return False


clerk = Agent(
    role="clerk",
    goal="Serve customers",
    backstory="You work in a shop.",
    llm=Script(model="script"),
    tools=[tool(function) for function in (look, refund, mail)],
)
task = Task(description=TASK, expected_output="What was done", agent=clerk)
print(Crew(agents=[clerk], tasks=[task]).kickoff().raw)
