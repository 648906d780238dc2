"""Reflexion: the whole task in one call; after a rejection the model is asked what went wrong, and then for the whole task
again.

After Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning" (arXiv 2303.11366), with the verifier as its
evaluator. A reflection comments on an output and gives none: its call is accounted for as judging.
"""

from __future__ import annotations

from collections.abc import Sequence

from openai import AsyncOpenAI

from bench.record.messages import Message
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

REMEMBERED = 3
"""How many reflections the prompt keeps, the latest ones: the paper's bound on the memory."""
REFLECT = "Say in a few sentences what went wrong and what to do differently next time. Do not give the answer itself."
LESSONS = "# What you learned from your earlier attempts"


async def reflexion(task: Task, workbench: Workbench) -> None:
    lessons: list[str] = []
    async with workbench.endpoint(*task.subtasks, judges=reflects) as session, _client(session) as client:
        while True:
            asked = session.messages()
            proposal = session.proposal(await _say(client, _with_lessons(asked, lessons[-REMEMBERED:])))
            rejected = workbench.verify(proposal)
            if rejected is None:
                break
            workbench.attempts_left(*task.subtasks)
            lessons.append(await _say(client, _reflection(asked, rejected)))
        workbench.commit(proposal)


def reflects(messages: Sequence[Message]) -> bool:
    """Return whether these messages ask for a reflection."""
    return messages[-1].content.endswith(REFLECT)


def _client(session: EndpointSession) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key)


async def _say(client: AsyncOpenAI, messages: Sequence[Message]) -> str:
    system, user = messages
    completion = await client.chat.completions.create(
        model="bench",
        messages=[{"role": "system", "content": system.content}, {"role": "user", "content": user.content}],
    )
    return completion.choices[0].message.content or ""


def _with_lessons(asked: Sequence[Message], lessons: Sequence[str]) -> Sequence[Message]:
    system, user = asked
    return (system, Message("user", "\n\n".join((user.content, LESSONS, *lessons)))) if lessons else asked


def _reflection(asked: Sequence[Message], rejected: Rejected) -> Sequence[Message]:
    system, user = asked
    tried = f"# You were asked\n{user.content}\n\n# You answered\n{rejected.reply}"
    return system, Message("user", f"{tried}\n\n# The answer was rejected\n{rejected.detail}\n\n{REFLECT}")
