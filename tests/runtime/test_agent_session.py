"""The model's door of an agent that is a process of its own: one session over all its lives, and each call's cause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import openai
import pytest
from little_worlds import lived
from openai.types.chat import ChatCompletionMessageParam
from trials import Fault, events

from bench.analysis import ledger
from bench.endpoint.server import serve_session
from bench.experiment.trial import TrialResult
from bench.runtime.agent_session import AgentSession
from bench.runtime.endpoint_session import Guard
from bench.runtime.events import Called, Faulted
from bench.runtime.process import Crashed
from bench.runtime.workbench import Workbench
from bench.runtime.world_events import ProcessDied
from bench.scenario import Task

Life = Callable[[AgentSession, Workbench], Awaitable[None]]


def said(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


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
    workbench.world  # noqa: B018
    assert workbench.acting
    workbench.acting.process.die()


def lives(*each: Life, faults: Sequence[Fault] = (), guard: Guard | None = None) -> TrialResult:
    """One trial, whose agent does in each life what stands there."""
    addresses = set[tuple[str, str]]()

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.outside_agent(guard) as session:
            addresses.add((session.root, session.api_key))
            await each[workbench.life - 1](session, workbench)

    result = lived(architecture, faults, server=serve_session)
    assert len(addresses) == 1
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


def test_what_was_asked_before_a_crash_is_a_rerun_caused_by_it_and_what_is_new_is_a_step() -> None:
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


def test_what_an_agent_kept_over_a_crash_is_useful_and_what_it_lost_is_not() -> None:
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

    assert accounts(first, other) == ["superseded", "superseded", "useful"]
    kept.clear()
    assert accounts(first, second)[2] == "useful"
    assert accounts(first, second)[0] == "useful"


def test_a_call_in_flight_when_the_agent_dies_is_paid_and_lost_and_asked_again_a_rerun() -> None:
    class Deadly(Guard):
        watches = True

        def __init__(self) -> None:
            self.died = asyncio.Event()

        async def midway(self, reply: int) -> None:
            if reply == 1:
                self.died.set()
                raise Crashed

    guard = Deadly()

    async def first(session: AgentSession, workbench: Workbench) -> None:
        asking = asyncio.create_task(ask(session, "one"))
        await guard.died.wait()
        with suppress(openai.APIConnectionError):
            await asking
        die(workbench)

    async def second(session: AgentSession, _: Workbench) -> None:
        await ask(session, "one")

    result = lives(first, second, guard=guard)
    assert causes(result) == ["first", "rerun"]
    assert [entry.account for entry in ledger.book(result.record.events)] == ["superseded", "useful"]


@pytest.mark.parametrize("stream", [False, True])
def test_of_a_reply_that_its_guard_stops_midway_the_second_half_never_comes(stream: bool) -> None:
    class Deadly(Guard):
        watches = True

        async def midway(self, reply: int) -> None:
            halves.append(reply)
            raise Crashed

    async def life(session: AgentSession, _: Workbench) -> None:
        async with openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key, max_retries=0) as client:
            with pytest.raises((openai.APIConnectionError, openai.APIError, Exception)) as caught:
                got = await client.chat.completions.create(model="any", messages=said("one"), stream=stream)
                if isinstance(got, openai.AsyncStream):
                    async for _ in got:
                        pass
            assert not isinstance(caught.value, AssertionError)

    halves = list[int]()
    lives(life, guard=Deadly())
    assert halves == [1]


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
