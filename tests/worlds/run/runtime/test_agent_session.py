"""The model's door of an agent that is a process of its own: one session over all its lives, and each call's cause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress

import openai
from little_worlds import lived
from openai.types.chat import ChatCompletionMessageParam
from trials import Fault, events

from bench.record import ledger
from bench.record.events import Called, Faulted
from bench.record.world_events import ProcessDied
from bench.run.endpoint.server import serve_session
from bench.run.experiment.trial import TrialResult
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.runtime.agent_session import AgentSession

Life = Callable[[AgentSession, Workbench], Awaitable[None]]


async def ask(session: AgentSession, *texts: str, **more: object) -> str:
    """One question, put by a client that repeats nothing."""
    async with openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key, max_retries=0) as client:
        messages: list[ChatCompletionMessageParam] = [
            {"role": "assistant", "content": text} if number % 2 else {"role": "user", "content": text}
            for number, text in enumerate(texts)
        ]
        reply = await client.chat.completions.create(model="any", messages=messages, **more)  # type: ignore[call-overload]
    return reply.choices[0].message.content or ""


def die(workbench: Workbench) -> None:
    assert workbench.world.acting
    workbench.world.acting.process.die()


def lives(*each: Life, faults: Sequence[Fault] = ()) -> TrialResult:
    """One trial, whose agent does in each life what stands there."""

    async def architecture(_: Task, workbench: Workbench) -> None:
        if workbench.world.life == 1:
            opened.append(await door.enter_async_context(workbench.world.outside_agent()))
        await each[workbench.world.life - 1](opened[0], workbench)
        await door.aclose()

    door, opened = AsyncExitStack(), list[AgentSession]()
    result = lived(architecture, faults, server=serve_session)
    entries = ledger.book(result.record.events)
    assert ledger.imbalance(entries, result.record.tokens) is None
    return result


def causes(result: TrialResult) -> list[str]:
    return [call.cause for call in events(result, Called)]


def test_the_calls_of_one_life_are_first_steps_and_samples() -> None:
    async def life(session: AgentSession, _: Workbench) -> None:
        await ask(session, "one")
        await ask(session, "two")
        await ask(session, "two")

    result = lives(life)
    assert causes(result) == ["first", "step", "sample"]
    assert len({call.seed for call in events(result, Called)}) == 3


def test_after_a_crash_a_known_request_is_a_rerun_and_a_new_one_a_step() -> None:
    async def first(session: AgentSession, workbench: Workbench) -> None:
        await ask(session, "one")
        await ask(session, "two")
        die(workbench)

    async def second(session: AgentSession, _: Workbench) -> None:
        await ask(session, "two")
        await ask(session, "three")
        await ask(session, "two")

    result = lives(first, second)
    assert causes(result) == ["first", "step", "rerun", "step", "sample"]
    [rerun] = [call for call in events(result, Called) if call.cause == "rerun"]
    assert rerun.caused_by is not None
    assert isinstance(result.record.events[rerun.caused_by], ProcessDied)


def test_what_an_agent_kept_over_a_crash_is_in_the_answer_and_what_it_lost_is_not() -> None:
    async def first(session: AgentSession, workbench: Workbench) -> None:
        kept.append(await ask(session, "kept"))
        await ask(session, "lost")
        die(workbench)

    async def second(session: AgentSession, _: Workbench) -> None:
        await ask(session, "kept", kept[0], "go on")

    kept = list[str]()

    async def other(session: AgentSession, _: Workbench) -> None:
        await ask(session, "something else")

    def accounts(*each: Life) -> list[str]:
        return [entry.account for entry in ledger.book(lives(*each).record.events)]

    assert accounts(first, other) == ["superseded", "superseded", "in_answer"]
    kept.clear()
    assert accounts(first, second)[2] == "in_answer"
    assert accounts(first, second)[0] == "in_answer"


def test_a_call_in_flight_when_the_agent_dies_is_paid_and_lost_and_asked_again_a_rerun() -> None:
    async def first(session: AgentSession, workbench: Workbench) -> None:
        with suppress(openai.APIConnectionError):
            await ask(session, "one")
        die(workbench)

    async def second(session: AgentSession, _: Workbench) -> None:
        await ask(session, "one")

    result = lives(first, second, faults=[{"point": "call", "effect": "cut_off", "attempts": [1]}])
    assert causes(result) == ["first", "rerun"]
    assert [entry.account for entry in ledger.book(result.record.events)] == ["lost", "in_answer"]


def test_faults_at_call_are_drawn_for_each_call_of_an_agent() -> None:
    async def life(session: AgentSession, _: Workbench) -> None:
        for text in ("one", "two", "three"):
            with suppress(openai.InternalServerError):
                await ask(session, text)

    fault: Fault = {"point": "call", "effect": "server_error", "attempts": [2]}
    assert [call.failure for call in events(lives(life, faults=[fault]), Called)] == [None, "server_failed", None]


def test_a_fault_at_output_strikes_the_words_of_an_agents_reply() -> None:
    async def life(session: AgentSession, _: Workbench) -> None:
        replies.append(await ask(session, "one"))

    replies = list[str]()
    result = lives(life, faults=[{"point": "output", "effect": "empty", "attempts": [1]}])
    assert replies == [""]
    assert "delivered" in [fault.stage for fault in events(result, Faulted)]
