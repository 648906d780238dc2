"""Calls that a framework makes together over the endpoint, on virtual time: declared, they have one result in every run;
undeclared, the trial ends in the reason."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from random import Random
from urllib.parse import urlsplit

import openai
import pytest
from scripted_model import ScriptedModel
from trials import TINY, events, matrix_of, run_all, with_model

from bench.common.errors import UndeclaredCalls
from bench.record.events import Called, Refused
from bench.record.messages import Timing
from bench.run.endpoint.server import serve_session
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Request
from bench.run.trial import declared_calls
from bench.run.trial.clock import TrialClock, in_seconds
from bench.run.trial.endpoint_session import PARALLEL, EndpointSession
from bench.run.trial.loop import run
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

RUNS = pytest.mark.parametrize("runs", [12, pytest.param(100, marks=pytest.mark.endurance)])
SUBTASKS = TINY.task.subtasks
Client = Callable[[EndpointSession], Awaitable[None]]
ROUNDS = ((1.5, 0.5, 4.0, 2.0), (0.25, 3.0, 1.0, 1.0))
"""The seconds of the calls made together, in two rounds."""


def trial(client: Client, timing: Timing = "simulated") -> TrialResult:
    """One trial, in which a client makes calls whose messages say how many seconds they take."""

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*SUBTASKS, server=serve_session) as endpoint:
            try:
                await client(endpoint)
            except AssertionError as error:
                wrong.append(error)

    def seconds(request: Request) -> float:
        return float(request.messages[-1].content)

    wrong: list[AssertionError] = []
    matrix = matrix_of(architectures=["static"]).with_architecture(architecture)
    model = ScriptedModel(TINY.reference, seconds=seconds)
    model.timing = timing
    [result] = run_all(with_model(matrix, model))
    for error in wrong:
        raise error
    return result


def story(result: TrialResult) -> tuple[object, ...]:
    """All that must not differ from run to run."""
    record = result.record
    calls = [replace(call, detail="") for call in events(result, Called)]
    return (record.api_seconds, record.waiting_seconds, record.tokens, calls)


def post(endpoint: EndpointSession, seconds: float, together: int | None = None) -> Callable[[], int]:
    """Send a call that takes so many seconds, by a connection of its own; then wait for its status when called."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint.api_key}"}
    headers |= {PARALLEL: str(together)} if together else {}
    connection = http.client.HTTPConnection(urlsplit(endpoint.root).netloc)
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": str(seconds)}]})
    connection.request("POST", "/v1/chat/completions", body, headers)

    def status() -> int:
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    return status


async def say(client: openai.AsyncOpenAI, seconds: float, together: int | None = None) -> None:
    headers = {PARALLEL: str(together)} if together else {}
    await client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": str(seconds)}], extra_headers=headers
    )


def client_at(endpoint: EndpointSession) -> openai.AsyncOpenAI:
    plain = openai.DefaultAsyncHttpxClient(verify=False)  # reads no certificates, which would take most of a trial
    return openai.AsyncOpenAI(base_url=endpoint.base_url(), api_key=endpoint.api_key, max_retries=0, http_client=plain)


# -- one result in every run ----------------------------------------------------------------------------------------------


@RUNS
def test_all_runs_of_calls_one_after_another_have_one_result(runs: int) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            for seconds in (1.0, 0.5, 2.0):
                await say(client, seconds)

    stories = [story(trial(client)) for _ in range(runs)]
    assert stories == stories[:1] * runs
    assert stories[0][0] == 3.5


@RUNS
@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("by_header", [True, False])
def test_all_runs_of_declared_calls_from_threads_have_one_result(threads: int, by_header: bool, runs: int) -> None:
    def call(endpoint: EndpointSession, random: Random, seconds: float) -> int:
        time.sleep(random.random() * 0.003)
        return post(endpoint, seconds, threads if by_header else None)()

    async def client(endpoint: EndpointSession) -> None:
        def framework() -> None:
            for lengths in ROUNDS:
                if not by_header:
                    endpoint.expect(threads)
                assert set(pool.map(partial(call, endpoint, random), lengths[:threads])) == {200}
            assert post(endpoint, 10)() == 200

        await asyncio.to_thread(framework)

    random = Random(7)
    with ThreadPoolExecutor(threads) as pool:
        stories = [story(trial(client)) for _ in range(runs)]
    assert stories == stories[:1] * runs
    assert stories[0][0] == sum(max(lengths[:threads]) for lengths in ROUNDS) + 10


@RUNS
@pytest.mark.parametrize("by_header", [True, False])
def test_all_runs_of_declared_calls_from_tasks_have_one_result(by_header: bool, runs: int) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async def late(client: openai.AsyncOpenAI, seconds: float) -> None:
            await asyncio.sleep(random.random() * 0.003)
            await say(client, seconds, 4 if by_header else None)

        async with client_at(endpoint) as client:
            for lengths in ROUNDS:
                if not by_header:
                    endpoint.expect(4)
                await asyncio.gather(*(late(client, seconds) for seconds in lengths))
            await say(client, 10)

    random = Random(7)
    stories = [story(trial(client)) for _ in range(runs)]
    assert stories == stories[:1] * runs
    assert stories[0][0] == 17.0


# -- what is not declared is refused --------------------------------------------------------------------------------------


async def side_by_side(endpoint: EndpointSession) -> None:
    """Both calls are sent before the endpoint sees either."""
    calls = [post(endpoint, seconds) for seconds in (1.0, 2.0)]
    await asyncio.gather(*(asyncio.to_thread(call) for call in calls))


def test_undeclared_calls_side_by_side_end_the_trial_in_one_line_that_says_what_to_do() -> None:
    record = trial(side_by_side).record
    assert record.outcome == "error"
    assert record.reason.startswith("UndeclaredCalls: a call came over the endpoint while another one was in flight")
    assert all(remedy in record.reason for remedy in ("endpoint.expect(N)", "X-Bench-Parallel: N", "live model"))


def test_undeclared_tasks_that_begin_at_once_end_the_trial_too() -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            await say(client, 1)
            await asyncio.gather(say(client, 1), say(client, 2))

    assert trial(client).record.reason.startswith("UndeclaredCalls: ")


def test_an_undeclared_call_waits_a_moment_for_another_one_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TrialClock(virtual=True)

    async def call(after: float) -> None:
        await asyncio.sleep(after)
        async with clock.endpoint_call("a call"):
            await clock.sleep(1)

    async def work() -> None:
        await asyncio.gather(call(0), call(0.02))

    monkeypatch.setattr(declared_calls, "UNDECLARED_WAIT_S", 30)
    with pytest.raises(UndeclaredCalls):
        run(clock.run(work()))


def test_on_a_live_model_nothing_has_to_be_declared() -> None:
    async def client(endpoint: EndpointSession) -> None:
        calls = [post(endpoint, 0.05) for _ in range(2)]
        assert await asyncio.gather(*(asyncio.to_thread(call) for call in calls)) == [200, 200]

    assert len(events(trial(client, "live"), Called)) == 2


def test_a_call_more_than_were_declared_ends_the_trial() -> None:
    async def client(endpoint: EndpointSession) -> None:
        endpoint.expect(1)
        await side_by_side(endpoint)

    assert trial(client).record.reason.startswith("UndeclaredCalls: a call came")


def test_a_declared_call_that_never_comes_ends_the_trial_and_hangs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def client(endpoint: EndpointSession) -> None:
        endpoint.expect(3)
        await side_by_side(endpoint)

    monkeypatch.setattr(declared_calls, "DECLARED_WAIT_S", 0.5)
    record = trial(client).record
    assert record.reason.startswith("UndeclaredCalls: 1 of the calls that were declared did not come within 0.5 s")


def test_a_declaration_that_comes_while_a_call_is_in_flight_is_too_late() -> None:
    async def client(endpoint: EndpointSession) -> None:
        call = post(endpoint, 1.0)
        answer = asyncio.create_task(asyncio.to_thread(call))
        while not endpoint.received:  # noqa: ASYNC110  # as long as it turns, the loop is not idle and the call in flight
            await asyncio.sleep(0)
        with pytest.raises(UndeclaredCalls, match="too late"):
            endpoint.expect(2)
        await answer

    trial(client)


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5", "", "1000000000", "9" * 5000])
def test_a_header_that_is_no_number_of_calls_is_a_bad_request(number: str) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            with pytest.raises(openai.BadRequestError, match=PARALLEL):
                await client.chat.completions.create(
                    model="any", messages=[{"role": "user", "content": "1"}], extra_headers={PARALLEL: number}
                )

    result = trial(client)
    assert events(result, Called) == [] and [refused.status for refused in events(result, Refused)] == [400]


# -- the order among calls made together ----------------------------------------------------------------------------------


async def arrive(calls: declared_calls.DeclaredCalls, what: str, order: list[str]) -> None:
    async with calls.endpoint_call(what, None, again=False):
        order.append(what)


def in_order(*coming: str) -> Sequence[str]:
    """The order in which these calls begin, made together and coming so."""

    async def work() -> list[str]:
        calls, order = declared_calls.DeclaredCalls(), list[str]()
        calls.expect(len(coming))
        tasks = []
        for what in coming:
            tasks.append(asyncio.create_task(arrive(calls, what, order)))
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return order

    return asyncio.run(work())


def test_calls_made_together_begin_in_an_order_of_their_own() -> None:
    assert in_order("b", "c", "a") == in_order("c", "a", "b") == ["a", "b", "c"]


def test_calls_made_together_are_answered_when_the_last_of_them_is_done() -> None:
    clock = TrialClock(virtual=True)
    done: list[float] = []
    answered: list[float] = []

    async def call(seconds: float) -> None:
        async with clock.endpoint_call(seconds):
            await clock.sleep(seconds)
            done.append(in_seconds(clock.now()))
        answered.append(in_seconds(clock.now()))

    async def work() -> None:
        clock.expect(3)
        await asyncio.gather(call(2), call(3), call(1))

    run(clock.run(work()))
    assert (done, answered) == ([1.0, 2.0, 3.0], [3.0] * 3)


def test_a_client_that_goes_away_before_the_others_have_come_is_waited_for_anew() -> None:
    async def work() -> list[str]:
        calls, order = declared_calls.DeclaredCalls(), list[str]()
        calls.expect(2)
        gone = asyncio.create_task(arrive(calls, "gone", order))
        await asyncio.sleep(0)
        gone.cancel()
        first = asyncio.create_task(arrive(calls, "first", order))
        await asyncio.sleep(0)
        assert calls.must_wait()
        await asyncio.gather(first, arrive(calls, "second", order))
        assert not calls.must_wait()
        return order

    assert asyncio.run(work()) == ["first", "second"]
