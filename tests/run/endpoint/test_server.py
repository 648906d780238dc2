"""The measuring endpoint under real clients: what goes wrong is real HTTP, and every request stands in the account once.

`endpoint` runs one trial whose architecture is the test's own: a client at a session for the subtask `gather`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter, thread_time
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from scripted_model import Line, ScriptedModel
from trials import TINY, Fault, events, matrix_of, run_all, with_model

from bench.common.errors import BadAnswer, CallFailed, GaveUp, NotRecorded, RateLimited, ServerFailed, TimedOut, Unreachable
from bench.record import ledger
from bench.record.events import Called, Refused, Waited
from bench.run.endpoint.server import serve_session
from bench.run.endpoint.wire import chat_of
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Reply, Request, Usage
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.wire.problem import Problem

GATHER = TINY.task.subtask("gather")
HELLO: ChatCompletionUserMessageParam = {"role": "user", "content": "hello"}
OTHER: ChatCompletionUserMessageParam = {"role": "user", "content": "something else"}
ANSWER = Reply(json.dumps(TINY.reference["gather"]), usage=Usage(7, 5))

Client = Callable[[EndpointSession], Awaitable[None]]
Trial = Callable[..., TrialResult]


def fault(effect: str, seconds: float = 0.0) -> Fault:
    return {"point": "call", "effect": effect, "subtask": "gather", "attempts": [1], "seconds": seconds}


@pytest.fixture
def endpoint() -> Trial:
    """Runs a client at a session, then gives up, unless an exception came first."""

    def run(
        client: Client,
        faults: Sequence[Fault] = (),
        script: Sequence[Line] = (),
        seconds: Callable[[Request], float] | None = None,
    ) -> TrialResult:
        async def architecture(_: Task, workbench: Workbench) -> None:
            async with workbench.endpoint(GATHER) as endpoint:
                try:
                    await client(endpoint)
                except AssertionError as error:
                    wrong.append(error)
                finally:
                    counts.append(endpoint)

        counts: list[EndpointSession] = []
        wrong: list[AssertionError] = []
        matrix = matrix_of(plans={"plan": faults} if faults else None, architectures=["static"])
        matrix = replace(matrix.with_architecture(architecture), server=serve_session)
        model = ScriptedModel(TINY.reference, {"gather": list(script)}, seconds or (lambda _: 0.0))
        if seconds:
            model.timing = "live"
        [result] = run_all(with_model(matrix, model))
        for error in wrong:  # an exception in a trial is an outcome, a test's is not
            raise error
        if "a bug" not in result.record.reason:
            assert [endpoint.received for endpoint in counts] == [len(events(result, Called))]
        entries = ledger.book(result.record.events)
        assert ledger.imbalance(entries, result.record.tokens) is None
        return result

    return run


def client_at(endpoint: EndpointSession, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=endpoint.base_url(), api_key=endpoint.api_key, **options)


async def ask(endpoint: EndpointSession, **options: Any) -> str:
    async with client_at(endpoint, **options) as client:
        reply = await client.chat.completions.create(model="any", messages=[HELLO])
    return reply.choices[0].message.content or ""


async def post(endpoint: EndpointSession, content: bytes, path: str = "/v1/chat/completions") -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False) as client:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint.api_key}"}
        return await client.post(endpoint.root + path, content=content, headers=headers)


def tries(result: TrialResult) -> list[tuple[int, int, str, str | None]]:
    return [(call.attempt, call.try_, call.cause, call.failure) for call in events(result, Called)]


def test_an_async_and_a_sync_client_get_the_reply(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        def in_a_thread() -> str | None:
            with openai.OpenAI(base_url=endpoint.base_url(GATHER), api_key=endpoint.api_key) as sync:
                return sync.chat.completions.create(model="any", messages=[OTHER]).choices[0].message.content

        assert await ask(endpoint) == ANSWER.text
        assert await asyncio.to_thread(in_a_thread) == ANSWER.text

    result = endpoint(client, script=[ANSWER, ANSWER])
    assert tries(result) == [(1, 1, "first", None), (1, 1, "step", None)]
    assert [call.usage_in for call in events(result, Called)] == [7, 7]


@pytest.mark.parametrize("key", ["none", "any"])
def test_who_has_not_the_sessions_key_reaches_no_trial_and_leaves_nothing_in_it(endpoint: Trial, key: str) -> None:
    async def client(endpoint: EndpointSession) -> None:
        assert len(endpoint.api_key) >= 32
        async with httpx2.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {key}"}) as stranger:
            url = f"{endpoint.base_url()}/chat/completions"
            assert (await stranger.post(url, json={"messages": [HELLO]})).status_code == 401
        assert (endpoint.received, endpoint.refused) == (0, 0)
        assert await ask(endpoint) == ANSWER.text

    assert len(events(endpoint(client, script=[ANSWER]), Called)) == 1


def test_others_are_answered_while_a_long_request_is_read(endpoint: Trial) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        HELLO,
        {"role": "assistant", "tool_calls": [call] * 14_000},
        {"role": "tool", "tool_call_id": "none", "content": ""},
    ]
    body = json.dumps({"model": "any", "messages": messages}).encode()
    began = thread_time()
    with pytest.raises(Problem):
        chat_of(body)
    whole = thread_time() - began

    async def client(endpoint: EndpointSession) -> None:
        asking, longest = asyncio.ensure_future(post(endpoint, body)), 0.0
        while not asking.done():
            began = thread_time()
            await asyncio.sleep(0)
            longest = max(longest, thread_time() - began)
        assert asking.result().status_code == 400
        assert longest < whole / 2

    endpoint(client)


def test_each_session_has_a_key_of_its_own(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        keys.add(endpoint.api_key)
        assert await ask(endpoint) == ANSWER.text

    keys = set[str]()
    for _ in range(2):
        endpoint(client, script=[ANSWER])
    assert len(keys) == 2


def test_the_experiments_seed_takes_the_place_of_the_clients(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            await client.chat.completions.create(model="any", messages=[HELLO], seed=1)
            await client.chat.completions.create(model="any", messages=[OTHER], seed=1)

    seeds = [call.seed for call in events(endpoint(client), Called)]
    assert len(seeds) == 2
    assert len({1, *seeds}) == 2, "a step has its attempt's seed"


@pytest.mark.parametrize(
    ("effect", "error", "status"),
    [("rate_limit", openai.RateLimitError, 429), ("server_error", openai.InternalServerError, 500)],
)
def test_a_refusal_is_a_status(endpoint: Trial, effect: str, error: type[openai.APIStatusError], status: int) -> None:
    async def client(endpoint: EndpointSession) -> None:
        with pytest.raises(error) as caught:
            await ask(endpoint, max_retries=0)
        assert caught.value.status_code == status
        assert caught.value.response.headers.get("retry-after") == ("3.5" if status == 429 else None)
        assert isinstance(caught.value.body, dict)
        assert set(caught.value.body) == {"message", "type", "param", "code"}
        raise caught.value

    result = endpoint(client, [fault(effect, 3.5)])
    assert result.record.outcome == "gave_up"
    assert result.record.tokens == 0


@pytest.mark.parametrize(("effect", "failure"), [("timeout", "timed_out"), ("cut_off", "cut_off")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_does_not_come_is_a_broken_connection(endpoint: Trial, effect: str, failure: str, stream: bool) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint, max_retries=0) as client:
            try:
                got = await client.chat.completions.create(model="any", messages=[HELLO], stream=stream)
                if isinstance(got, openai.AsyncStream):
                    async for _ in got:
                        pass
            except (openai.APIConnectionError, httpx2.RemoteProtocolError) as broken:
                raise ConnectionError from broken

    result = endpoint(client, [fault(effect)])
    assert tries(result) == [(1, 1, "first", failure)]
    assert result.record.outcome == "gave_up"
    assert result.record.tokens > 0


@pytest.mark.parametrize("stream", [False, True])
def test_of_a_cut_reply_half_arrives_and_that_half_is_what_is_paid(endpoint: Trial, stream: bool) -> None:
    arrived = bytearray()

    async def client(endpoint: EndpointSession) -> None:
        body = {"messages": [HELLO], "stream": stream}
        async with (
            httpx2.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {endpoint.api_key}"}) as client,
            client.stream("POST", f"{endpoint.base_url()}/chat/completions", json=body) as response,
        ):
            assert response.status_code == 200
            with pytest.raises(httpx2.RemoteProtocolError):
                async for piece in response.aiter_bytes():
                    arrived.extend(piece)

    result = endpoint(client, [fault("cut_off")], [Reply("half and half")])
    received = bytes(arrived)
    assert b"half a" in received
    assert b"half an" not in received
    assert b"[DONE]" not in received
    [call] = events(result, Called)
    assert call.delivered
    assert result.texts[call.delivered] == "half a"


def test_a_refusal_by_the_model_is_a_reply_that_was_filtered(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            [choice] = (await client.chat.completions.create(model="any", messages=[HELLO])).choices
        assert (choice.finish_reason, choice.message.content) == ("content_filter", "")

    endpoint(client, [fault("refusal")])


def test_a_slow_reply_comes(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        assert await ask(endpoint) == ANSWER.text

    result = endpoint(client, [fault("slow", 3.0)], [ANSWER])
    assert [call.delay for call in events(result, Called)] == [3.0]


def test_a_clients_hidden_retries_in_a_storm_of_429_are_tries_of_one_attempt(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        assert await ask(endpoint) == ANSWER.text

    result = endpoint(client, [fault("rate_limit", 0.05)] * 2, [ANSWER])
    assert tries(result) == [(1, 1, "first", "rate_limited"), (1, 2, "first", "rate_limited"), (1, 3, "first", None)]
    assert [call.tokens_in > 0 for call in events(result, Called)] == [False, False, True]


@pytest.mark.parametrize("storm", [[fault("rate_limit", 0.05)] * 9, [{**fault("rate_limit", 0.05), "attempts": "every"}]])
def test_a_client_that_the_storm_outlasts_has_given_up(endpoint: Trial, storm: list[Fault]) -> None:
    result = endpoint(ask, storm)
    assert [(call.attempt, call.try_) for call in events(result, Called)] == [(1, 1), (1, 2), (1, 3)]
    assert result.record.outcome == "gave_up"
    assert "gather: the framework gave up: 429" in result.record.reason


def test_a_clients_back_off_is_waiting_and_not_framework_time(endpoint: Trial) -> None:
    began = perf_counter()
    result = endpoint(ask, [fault("rate_limit", 0.4)], [ANSWER])
    elapsed = perf_counter() - began
    [wait] = events(result, Waited)
    assert wait.why == "backoff"
    assert wait.seconds >= 0.4
    assert result.record.waiting_seconds == wait.seconds
    assert result.record.framework_seconds + result.record.waiting_seconds <= elapsed


def test_the_time_after_a_failure_that_is_never_repeated_is_the_frameworks_own(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        with pytest.raises(openai.RateLimitError):
            await ask(endpoint, max_retries=0)
        await asyncio.sleep(0.2)

    result = endpoint(client, [fault("rate_limit")])
    assert events(result, Waited) == []
    assert result.record.framework_seconds >= 0.2


def test_a_client_that_goes_away_in_mid_call_leaves_a_paid_call(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        await ask(endpoint, timeout=0.3, max_retries=0)

    result = endpoint(client, seconds=lambda _: 60.0)
    assert tries(result) == [(1, 1, "first", "timed_out")]
    [call] = events(result, Called)
    assert call.tokens_in > 0
    assert call.tokens_out == 0
    assert 0.1 < call.seconds < 50
    assert result.record.outcome == "gave_up"


def test_a_client_that_asks_again_after_its_own_time_out_makes_a_retry(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        assert await ask(endpoint, timeout=1.0, max_retries=1) == ANSWER.text

    seconds = iter([60.0, 0.0])
    result = endpoint(client, script=[ANSWER, ANSWER], seconds=lambda _: next(seconds))
    assert tries(result) == [(1, 1, "first", "timed_out"), (1, 2, "retry", None)]


def test_a_request_in_flight_at_the_loans_end_is_accounted_for(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        asking = asyncio.create_task(ask(endpoint, max_retries=0))
        await arrived.wait()
        asking.add_done_callback(lambda done: done.cancelled() or done.exception())

    arrived = asyncio.Event()

    def for_ever(_: Request) -> float:
        arrived.set()
        return 60.0

    result = endpoint(client, seconds=for_ever)
    assert tries(result) == [(1, 1, "first", "timed_out")]


def test_equal_requests_side_by_side_are_samples_of_their_own(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        endpoint.expect(3)
        assert set(await asyncio.gather(ask(endpoint), ask(endpoint), ask(endpoint))) == {ANSWER.text}

    result = endpoint(client, [fault("rate_limit", 0.05)], [ANSWER] * 3)
    assert sorted((call.sample, call.try_) for call in events(result, Called)) == [(1, 1), (1, 2), (2, 1), (3, 1)]
    assert len({call.seed for call in events(result, Called)}) == 3


def test_streaming_leaves_the_same_account_as_not_streaming(endpoint: Trial) -> None:
    async def streamed(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            stream = await client.chat.completions.create(
                model="any", messages=[HELLO], stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
        assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == ANSWER.text
        usage = chunks[-1].usage
        assert usage
        assert (usage.prompt_tokens, usage.completion_tokens) == (7, 5)

    async def whole(endpoint: EndpointSession) -> None:
        assert await ask(endpoint) == ANSWER.text

    assert events(endpoint(streamed, script=[ANSWER]), Called) == events(endpoint(whole, script=[ANSWER]), Called)


@pytest.mark.parametrize(
    ("failure", "status", "retried"),
    [
        (RateLimited("slow down", retry_after=0.05), 429, True),
        (ServerFailed("HTTP 500"), 502, True),
        (Unreachable("no connection"), 502, True),
        (TimedOut("no reply in time"), 504, True),
        (BadAnswer("HTTP 401: no such key"), 502, False),
        (NotRecorded("the recording holds no reply"), 404, False),
    ],
)
def test_a_failure_of_the_model_itself_has_its_status(endpoint: Trial, failure: CallFailed, status: int, retried: bool) -> None:
    async def client(endpoint: EndpointSession) -> None:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(endpoint, max_retries=1)
        assert caught.value.status_code == status
        assert failure.detail in str(caught.value)
        raise caught.value

    result = endpoint(client, script=[failure] * 2)
    assert len(events(result, Called)) == 1 + retried
    assert (result.record.outcome, result.record.reason) == ("error", f"{failure.kind}: {failure.detail}")


def test_what_a_recording_lacks_makes_the_trial_an_error_even_where_the_framework_goes_on(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        with pytest.raises(openai.NotFoundError):
            await ask(endpoint)
        assert await ask(endpoint) == ANSWER.text

    result = endpoint(client, script=[NotRecorded("the recording holds no reply"), ANSWER])
    assert [call.failure for call in events(result, Called)] == ["not_recorded", None]
    assert (result.record.outcome, result.record.reason) == ("error", "not_recorded: the recording holds no reply")


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[]", b'{"messages": []}', b"\xff"])
def test_a_malformed_request_is_refused_and_not_counted(endpoint: Trial, body: bytes) -> None:
    async def client(endpoint: EndpointSession) -> None:
        response = await post(endpoint, body)
        assert response.status_code == 400
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}

    result = endpoint(client)
    assert events(result, Called) == []
    [refused] = events(result, Refused)
    assert refused.status == 400 and refused.detail


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "/v1/completions",
            "only chat completions, responses and messages are served; set your client to ask at /chat/completions",
        ),
        ("/responses", "a base_url ends in /v1"),
        ("/gather/v1/embeddings", "only chat completions, responses and messages are served"),
        ("/chat/completions", "a base_url ends in /v1, as http://127.0.0.1:"),
        ("/gather/chat/completions", "/gather/v1 does"),
        *((path, "/v1 does") for path in ("/v1//chat/completions", "//v1/chat/completions", "/v1/chat/completions/")),
        *((path, "/v1 does") for path in ("/api/chat/completions", "/a/b/responses", "/v1/v1/responses//")),
        ("/gahter/v1/chat/completions", "no subtask is called 'gahter'; did you mean 'gather'?"),
        ("/gather+gather/v1/chat/completions", "a subtask is named twice"),
        ("/", "nothing is served at POST /"),
    ],
)
def test_an_unknown_address_is_refused_with_what_may_be_meant_and_leaves_an_event(
    endpoint: Trial, path: str, words: str
) -> None:
    async def client(endpoint: EndpointSession) -> None:
        response = await post(endpoint, json.dumps({"messages": [HELLO]}).encode(), path)
        assert response.status_code == 404
        assert path in response.json()["error"]["message"]
        message = response.json()["error"]["message"]
        assert words in message
        if advised := re.search(r"as http://[^/]+(/\S*) does", message):
            asked = {"messages": [HELLO]} if "completions" in path else {"input": "Hello."}
            end = "/chat/completions" if "completions" in path else "/responses"
            assert (await post(endpoint, json.dumps(asked).encode(), advised[1] + end)).status_code == 200

    result = endpoint(client)
    assert len(events(result, Called)) == (" does" in words or "base_url" in words)
    assert [(event.status, words in event.detail) for event in events(result, Refused)] == [(404, True)]


def test_what_is_not_passed_on_to_the_model_is_refused_once_and_openais_client_does_not_ask_again(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            with pytest.raises(openai.BadRequestError, match="logprobs: no probabilities are given"):
                await client.chat.completions.create(model="any", messages=[HELLO], logprobs=True)
            with pytest.raises(openai.BadRequestError, match="prediction: what it says would not be passed on"):
                prediction: Any = {"type": "content", "content": "x"}
                await client.chat.completions.create(model="any", messages=[HELLO], prediction=prediction)
            await client.chat.completions.create(model="any", messages=[HELLO], temperature=0.5, user="me", max_tokens=None)

    result = endpoint(client)
    assert [event.status for event in events(result, Refused)] == [400, 400]
    assert len(events(result, Called)) == 1


def test_beyond_its_attempts_a_session_is_refused_and_may_hand_in() -> None:
    wrong = {"deliveries": "none"}

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(GATHER, limit="attempts") as session:
            for _attempt in range(3):
                await ask(session)
            with pytest.raises(openai.PermissionDeniedError, match="no accepted output in 3 attempts") as caught:
                await ask(session)
            assert caught.value.response.headers["x-should-retry"] == "false"
            assert caught.value.code == "attempts_used_up"
            assert session.attempts() == {"gather": 3}
            assert session.received == 3
            if gives_up:
                raise GaveUp(["gather"], "the agent has had enough")

    for gives_up in (False, True):
        matrix = replace(matrix_of(architectures=["static"]).with_architecture(architecture), server=serve_session)
        model = ScriptedModel(TINY.reference, {"gather": [wrong] * 9}, lambda _: 0.0)
        [result] = run_all(with_model(matrix, model))
        assert [event.status for event in events(result, Refused)] == [403]
        assert [call.cause for call in events(result, Called)] == ["first", "retry", "retry"]
        assert ("gave_up" if gives_up else "error") == result.record.outcome, result.record.reason
        assert not gives_up or result.record.reason == "gather: no accepted output in 3 attempts"


def test_models_lists_the_one_that_answers(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        async with client_at(endpoint) as client:
            assert [model.id async for model in client.models.list()] == ["bench"]

    endpoint(client)


def test_a_bug_behind_the_endpoint_ends_the_trial_even_where_the_framework_goes_on(endpoint: Trial) -> None:
    async def client(endpoint: EndpointSession) -> None:
        with pytest.raises(openai.InternalServerError):
            await ask(endpoint)

    def broken(_: Request) -> float:
        raise ZeroDivisionError("a bug")

    result = endpoint(client, seconds=broken)
    assert result.record.outcome == "error"
    assert result.record.reason.startswith("ZeroDivisionError: a bug (endpoint/test_server.py:")


@pytest.mark.parametrize("given", [{"base_url": "/v1"}, {"azure_endpoint": ""}, {"azure_endpoint": "/v1"}])
def test_azures_client_asks_with_its_own_header_and_address(endpoint: Trial, given: dict[str, str]) -> None:
    async def client(endpoint: EndpointSession) -> None:
        address: Any = {name: f"{endpoint.root}{path}" for name, path in given.items()}
        async with openai.AsyncAzureOpenAI(
            **address, api_key=endpoint.api_key, api_version="2024-10-21", max_retries=0
        ) as azure:
            answer = await azure.chat.completions.create(model="a-deployment", messages=[HELLO])
            assert answer.choices[0].message.content

    assert len(events(endpoint(client), Called)) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_messages_are_answered_over_http_to_who_sends_the_key_as_their_clients_do(
    endpoint: Trial, stream: bool
) -> None:
    async def client(endpoint: EndpointSession) -> None:
        body = {"model": "any", "max_tokens": 500, "system": "Be kind.", "messages": [HELLO], "stream": stream}
        async with httpx2.AsyncClient(base_url=endpoint.root, trust_env=False) as client:
            stranger = await client.post("/v1/messages", json=body, headers={"x-api-key": "another"})
            assert stranger.status_code == 401
            answer = await client.post("/v1/messages?beta=true", json=body, headers={"x-api-key": endpoint.api_key})
        assert answer.status_code == 200
        if stream:
            events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
            pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
            assert ("".join(pieces), events[-1]["type"]) == (ANSWER.text, "message_stop")
            assert (events[0]["message"]["usage"]["input_tokens"], events[-2]["usage"]["output_tokens"]) == (7, 5)
        else:
            [block] = answer.json()["content"]
            assert (block["text"], answer.json()["stop_reason"]) == (ANSWER.text, "end_turn")
            assert answer.json()["usage"]["input_tokens"] == 7

    result = endpoint(client, script=[ANSWER])
    [call] = events(result, Called)
    assert [message.role for message in call.messages] == ["system", "user"]
    assert call.usage_in == 7
