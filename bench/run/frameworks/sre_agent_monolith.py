"""One agent investigates with tools, in one conversation, and then gives the whole answer: after fuzzylabs/sre-agent.

arXiv 2605.15425 took that agent for its second monolith. We read the design in its repository, in `sre_agent/client/client.py`
and the prompt server, as they were in 2025. The code and the prompts are ours.

The same: one model, one conversation and one prompt, which tells the whole job and its order. There are two kinds of tools, to
list the texts and to read one. What a tool returns goes into the conversation, which is sent whole at each turn. A tool's
failure is told in words, and too many failures in a row end the conversation. It also ends with the first reply without a tool
call. Nothing is verified on the way.

Different: a pack's documents replace a cluster's logs and a repository, and the answer replaces an issue and a message to a
channel. A result goes back as a tool's, not in a user's words. There is no firewall. The limit is in turns, not in seconds. At
the end our verifier checks the answer; if it rejects it, a fresh agent gets the same prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openai import AsyncOpenAI

from bench.run.models.document_tools import LIST, NAME, READ, name_in
from bench.run.trial.prompt import Prompt
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

MOST_TURNS = 10
MOST_FAILURES = 3
"""Tool calls that fail in a row."""
INVESTIGATE = (
    f"Investigate first: {LIST} shows what documents there are, and {READ} shows one of them. Read those that you need. "
    "When you have seen enough, call no tool any more and give the answer to all steps at once."
)


async def sre_agent_monolith(task: Task, workbench: Workbench) -> None:
    async with (
        workbench.endpoint(*task.subtasks) as session,
        AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key) as client,
    ):
        while True:
            workbench.attempts_left(*task.subtasks)
            proposal = session.proposal(await _investigation(client, session.prompt()))
            if workbench.verify(proposal) is None:
                break
        workbench.commit(proposal)


async def _investigation(client: AsyncOpenAI, prompt: Prompt) -> str:
    """Return the last reply of a fresh agent."""
    user = "\n\n".join(filter(None, (INVESTIGATE if prompt.inputs else "", prompt.tasks, prompt.form)))
    conversation: list[Any] = [
        {"role": "system", "content": f"{prompt.role}\n{prompt.rule}"},
        {"role": "user", "content": user},
    ]
    tools: Mapping[str, Any] = {"tools": _tools_offered()} if prompt.inputs else {}
    failures, text = 0, ""
    for _ in range(MOST_TURNS):
        message = (await client.chat.completions.create(model="bench", messages=conversation, **tools)).choices[0].message
        text = message.content or ""
        if not message.tool_calls:
            break
        conversation.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            name, arguments = (call.function.name, call.function.arguments) if call.type == "function" else ("", "")
            answer, went_well = _call(prompt.inputs, name, arguments)
            conversation.append({"role": "tool", "tool_call_id": call.id, "content": answer})
            failures = 0 if went_well else failures + 1
        if failures >= MOST_FAILURES:
            break
    return text


def _tools_offered() -> list[dict[str, Any]]:
    """Return the tools as a chat completion declares them."""
    name = {"type": "object", "properties": {NAME: {"type": "string"}}, "required": [NAME]}
    return [
        _function(LIST, "The names of the documents there are.", {"type": "object", "properties": {}}),
        _function(READ, "The whole text of one document.", name),
    ]


def _call(documents: Mapping[str, str], tool: str, arguments: str) -> tuple[str, bool]:
    """Return the result of a tool call, and whether it succeeded. The result of a call that cannot be made says why."""
    if tool == LIST:
        return "\n".join(documents), True
    if tool != READ:
        return f"There is no tool '{tool}'; the tools are {LIST} and {READ}.", False
    name = name_in(arguments)
    if name is None:
        return f'The arguments of {READ} must be {{"{NAME}": the name of a document}}.', False
    if name not in documents:
        return f"There is no document '{name}'; the documents are {', '.join(documents)}.", False
    return documents[name], True


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
