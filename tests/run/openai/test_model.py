"""The OpenAI-compatible model against a real server on loopback. Nothing is patched but the environment's key."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import resource
import shutil
import socket
import ssl
import subprocess
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from scripted_server import (
    ScriptedServer,
    Step,
    completion,
    cut_after,
    hang,
    hang_up,
    html,
    raw,
    status,
    trickle,
)

from bench.common.errors import (
    BadAnswer,
    CallFailed,
    ConfigError,
    CutOff,
    EndpointError,
    NoCompletion,
    NoText,
    RateLimited,
    ServerFailed,
    TimedOut,
    UnknownFinish,
    Unreachable,
    UsedUp,
    failures_by_kind,
)
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.models.base import Model, Reply, Request, RequestContext, Usage
from bench.run.openai.bodies import MAX_ERROR_BYTES, MAX_REPLY_BYTES
from bench.run.openai.failures import failure_of, retry_after_seconds
from bench.run.openai.model import OpenAIModel
from bench.run.openai.replies import EXCERPT_CHARS, MAX_CALLS, MAX_TEXT_CHARS, reply_of
from bench.run.openai.settings import OpenAISettings, is_loopback

T = TypeVar("T")

KEY = "sk-very-secret-0123456789"
REQUEST = Request((Message("system", "Be terse."), Message("user", "Hello")), 41, RequestContext("pack", ("triage",), 0, 1))
BUSY_NO_MORE = {"Retry-After": "0"}


async def no_sleep(_: float) -> None:
    raise AssertionError("a real call does not sleep on the trial's clock")


def model_at(url: str, **settings: Any) -> OpenAIModel:
    return OpenAIModel("small", OpenAISettings(base_url=url, **settings))


async def using(model: OpenAIModel, action: Callable[[OpenAIModel], Awaitable[T]]) -> T:
    try:
        return await action(model)
    finally:
        await model.close()


def ask(model: OpenAIModel) -> Reply:
    return asyncio.run(using(model, lambda model: model.reply(REQUEST, no_sleep)))


def prepare(model: OpenAIModel) -> None:
    asyncio.run(using(model, lambda model: model.prepare()))


def answered(step: Step, **settings: Any) -> Reply:
    """The reply to one call answered by `step`, by exactly one HTTP request."""
    with ScriptedServer([step]) as server:
        try:
            return ask(model_at(server.base_url, **settings))
        finally:
            assert len(server.requests) == 1, "a call is one request: no hidden retry, no redirect followed"


def failed(step: Step, **settings: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        answered(step, **settings)
    return caught.value


def unusable(*steps: Step, **settings: Any) -> str:
    """The line with which `prepare` refuses an endpoint that answers so."""
    with ScriptedServer(steps) as server, pytest.raises(EndpointError) as caught:
        prepare(model_at(server.base_url, **settings))
    line = str(caught.value)
    assert "\n" not in line
    assert "'small'" in line
    assert server.base_url in line
    return line


@pytest.fixture
def nobody() -> Iterator[str]:
    """A loopback address at which nothing listens; its port stays taken, so that no other test can get it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


# -- what is sent, what comes back -------------------------------------------------------------------------------------


def test_a_completion_becomes_a_reply_with_the_providers_own_usage() -> None:
    assert answered(completion("Hi", usage=(20, 4))) == Reply("Hi", "stop", Usage(20, 4))


def test_a_server_that_says_how_much_of_the_prompt_it_had_cached_is_believed() -> None:
    body = completion("Hi", usage=(20, 4), details={"cached_tokens": 16, "audio_tokens": 0})
    assert answered(body) == Reply("Hi", "stop", Usage(20, 4, cached=16))


@pytest.mark.parametrize("details", [{}, {"cached_tokens": None}, {"cached_tokens": -1}, {"cached_tokens": 21}, "none", 3])
def test_cached_tokens_that_are_no_part_of_the_prompt_are_not_told_and_lose_no_usage(details: object) -> None:
    assert answered(completion("Hi", usage=(20, 4), details=details)) == Reply("Hi", "stop", Usage(20, 4))


def test_the_messages_seed_and_parameters_are_sent_and_the_purpose_is_not() -> None:
    with ScriptedServer() as server:
        ask(
            model_at(
                server.base_url,
                model="small-1b",
                temperature=0.0,
                top_p=0.9,
                max_tokens=50,
                response_format="json_object",
                extra_body={"min_p": 0.1},
            )
        )
    assert server.bodies == [
        {
            "model": "small-1b",
            "messages": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hello"}],
            "seed": 41,
            "temperature": 0.0,
            "top_p": 0.9,
            "max_tokens": 50,
            "response_format": {"type": "json_object"},
            "min_p": 0.1,
        }
    ]


def test_what_is_not_set_is_not_sent_and_the_configs_name_is_the_providers() -> None:
    with ScriptedServer() as server:
        ask(model_at(server.base_url))
    assert server.bodies[0].keys() == {"model", "messages", "seed"}
    assert server.bodies[0]["model"] == "small"


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": None, "completion_tokens": 3}, {"prompt_tokens": 2**63, "completion_tokens": 3}, "many"],
)
def test_usage_that_says_nothing_is_none_and_costs_no_reply(usage: object) -> None:
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage}
    assert answered(raw(json.dumps(body))) == Reply("Hi", "stop", None)


def test_a_refusal_is_a_reply_that_says_so() -> None:
    assert answered(completion(None, refusal="I can't.")) == Reply("I can't.", "content_filter", Usage(12, 3))


def test_a_filtered_reply_without_text_is_an_empty_refusal() -> None:
    assert answered(completion(None, finish="content_filter")) == Reply("", "content_filter", Usage(12, 3))


def test_a_reply_cut_at_its_token_limit_says_so_even_where_no_text_was_reached() -> None:
    assert answered(completion("Hel", finish="length")).finish == "length"
    assert answered(completion(None, finish="length")) == Reply("", "length", Usage(12, 3))


def test_a_filter_that_answers_with_an_error_refuses_as_one_that_answers_with_a_completion() -> None:
    filtered = status(400, body='{"error": {"message": "filtered", "code": "content_filter", "status": 400}}')
    assert answered(filtered) == Reply("", "content_filter")


def test_a_body_with_a_byte_order_mark_or_in_two_bytes_a_character_is_read() -> None:
    whole = completion("Grüße")
    for coding in ("utf-8-sig", "utf-16"):
        assert answered(replace(whole, body=whole.body.decode().encode(coding))).text == "Grüße"


def test_what_a_provider_wants_back_is_given_to_who_sends_messages_back_alone() -> None:
    step = raw('{"choices": [{"message": {"content": "Hi", "reasoning_content": "hm"}}]}')
    assert answered(step).extra == '{"reasoning_content": "hm"}'
    with ScriptedServer([step]) as server:
        held = replace(REQUEST, schema={"type": "object"})
        assert asyncio.run(using(model_at(server.base_url), lambda model: model.reply(held, no_sleep))).extra == ""


def test_a_stream_that_nobody_asked_for_is_read_as_the_completion_that_it_is() -> None:
    pieces = (
        {"content": "a\u2028"},
        {"content": [{"type": "text", "text": "b"}]},
        {"content": "\ud83d"},
        {"content": "\ude00"},
    )
    choices: list[dict[str, Any]] = [{"index": 0, "delta": piece, "finish_reason": ""} for piece in (*pieces, {})]
    choices[-1] |= {"finish_reason": "stop", "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
    events = [{"choices": [choice]} for choice in choices]
    sent = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).replace("\\u2028", "\u2028")
    assert answered(raw(sent, content_type="text/event-stream")) == Reply("a\u2028b\U0001f600", "stop", Usage(12, 3))


def test_a_missing_finish_reason_is_a_stop() -> None:
    assert answered(completion("Hi", finish=None)).finish == "stop"


def test_a_model_fits_the_protocol_and_can_be_used_again_in_another_loop_after_it_was_closed() -> None:
    with ScriptedServer() as server:
        model = model_at(server.base_url + "/", concurrency=3)
        fitting: Model = model
        assert (fitting.name, fitting.timing, fitting.endpoint, fitting.concurrency) == (
            "small",
            "live",
            server.base_url,
            3,
        )
        assert ask(model) == ask(model)


def test_calls_to_one_model_run_side_by_side() -> None:
    async def both(model: OpenAIModel) -> None:
        await asyncio.gather(*(model.reply(REQUEST, no_sleep) for _ in range(3)))

    with ScriptedServer(lambda _: hang(0.3)) as server:
        asyncio.run(using(model_at(server.base_url), both))
    assert server.most_in_flight == 3


# -- every failure has exactly one name --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (status(429), RateLimited),
        (status(500), ServerFailed),
        (status(503), ServerFailed),
        (status(529), ServerFailed),
        (status(408), ServerFailed),
        (html(502), ServerFailed),
        (status(307, headers={"Location": "/v1/chat/completions"}), BadAnswer),
        (status(400), BadAnswer),
        (status(401), BadAnswer),
        (status(403), BadAnswer),
        (status(404), BadAnswer),
        (status(409), ServerFailed),
        (replace(completion("Hi"), status=0), ServerFailed),
        (status(422), BadAnswer),
        (html(), NoCompletion),
        (raw("data: {}\n\n", content_type="text/event-stream"), NoCompletion),
        (raw("{}"), NoCompletion),
        (raw('{"choices": []}'), NoCompletion),
        (raw('{"error": {"message": "overloaded"}}'), ServerFailed),
        (raw('{"error": {"message": "overloaded", "code": 503}}'), ServerFailed),
        (raw('{"error": {"message": "slower", "code": 429}}'), RateLimited),
        (raw('{"error": {"message": "no such model", "code": 404}}'), BadAnswer),
        (raw('{"error": {"message": "empty", "code": "insufficient_quota"}}'), UsedUp),
        (status(402), UsedUp),
        (status(429, body='{"error": {"message": "empty", "type": "insufficient_quota"}}'), UsedUp),
        (raw('{"choices": [{}]}'), NoText),
        (completion("Hi", finish="gone_fishing"), UnknownFinish),
        (completion("Hi", finish="error"), ServerFailed),
        (raw('{"choices": [{"message": {"content": "Hel'), CutOff),
        (raw(""), ServerFailed),
        (raw("", code=204), ServerFailed),
        (cut_after(0), CutOff),
        (cut_after(40), CutOff),
        (hang_up(), Unreachable),
        (Step(headers={"Content-Encoding": "gzip"}, body=b"this was never zipped"), BadAnswer),
    ],
)
def test_every_failure_gets_its_own_name_after_one_request(step: Step, kind: type[CallFailed]) -> None:
    assert type(failed(step)) is kind


def test_a_refused_connection_is_unreachable(nobody: str) -> None:
    with pytest.raises(Unreachable):
        ask(model_at(nobody))


def test_an_empty_account_is_no_rate_limit_since_waiting_does_not_fill_it() -> None:
    step = status(429, body='{"error": {"message": "no credit", "code": "insufficient_quota"}}')
    assert type(failed(step)) is UsedUp


def subclasses(of: type[aiohttp.ClientError]) -> Iterator[type[aiohttp.ClientError]]:
    yield of
    for below in of.__subclasses__():
        yield from subclasses(below)


UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
LATE = (aiohttp.ServerTimeoutError,)
USELESS = (aiohttp.InvalidURL, aiohttp.TooManyRedirects)


BY_STATUS = {aiohttp.ClientHttpProxyError}
"""See test_proxies."""


@pytest.mark.parametrize("of", sorted(set(subclasses(aiohttp.ClientError)) - BY_STATUS, key=str))
def test_a_call_counts_as_paid_only_where_its_prompt_may_have_been_sent(of: type[aiohttp.ClientError]) -> None:
    failure = failure_of(of.__new__(of))
    if issubclass(of, LATE) and not issubclass(of, UNSENT):
        assert type(failure) is TimedOut and failure.paid
    else:
        assert type(failure) is (BadAnswer if issubclass(of, USELESS) else Unreachable) and not failure.paid
    assert failure.detail.startswith("no connection") is issubclass(of, UNSENT)


def test_the_detail_is_one_short_line_of_what_the_server_said() -> None:
    detail = failed(status(400, body="one\n\n two\t" + "three " * 100)).detail
    assert detail.startswith("HTTP 400: one two three")
    assert "\n" not in detail
    assert len(detail) <= len("HTTP 400: ") + EXCERPT_CHARS
    assert failed(status(422)).detail == "HTTP 422: scripted 422"
    assert "an HTML page" in failed(html()).detail
    assert failed(status(400, body='{"error": {"message": "half \\ud800 a pair"}}')).detail == "HTTP 400: half \ufffd a pair"


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
TOOL_CALLS = st.lists(
    st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": PARTS, "arguments": PARTS})}), max_size=2
)
MESSAGES = st.fixed_dictionaries({}, optional={"content": PARTS, "refusal": PARTS, "tool_calls": TOOL_CALLS | PARTS})
CHOICES = st.lists(st.fixed_dictionaries({"message": MESSAGES | PARTS}, optional={"finish_reason": PARTS}) | PARTS, max_size=2)
ERRORS = st.fixed_dictionaries({"message": PARTS}, optional={"code": PARTS | st.integers(399, 530), "type": PARTS})
COUNTS = st.fixed_dictionaries({"prompt_tokens": PARTS, "completion_tokens": PARTS}, optional={"prompt_tokens_details": PARTS})
BODIES = st.fixed_dictionaries({}, optional={"choices": CHOICES | PARTS, "usage": COUNTS | PARTS, "error": ERRORS | PARTS})


@given((BODIES | PARTS).map(json.dumps) | st.text())
@example("[" * 100_000)
@example('{"choices": ' + "[" * 100_000)
@example('{"error": ' + '{"message":' * 100_000)
@example('{"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": ' + "9" * 5000 + "}}")
@example('{"error": {"message": "?", "code": ' + "9" * 5000 + "}}")
@example('{"choices": [{"message": {"content": "half \\ud800 a pair"}}]}')
def test_any_body_is_a_reply_or_one_named_failure_in_one_line(body: str) -> None:
    try:
        reply = reply_of(body, KEY)
    except CallFailed as failure:
        assert failure.kind in failures_by_kind() and failure.detail and "\n" not in failure.detail
        assert len(failure.detail) < 200
    else:
        assert isinstance(reply.text, str) and isinstance(reply.finish, str)
        assert all(
            isinstance(word, str)
            for tool_call in reply.tool_calls
            for word in (tool_call.id, tool_call.name, tool_call.arguments)
        )


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_server_that_says_nothing_is_timed_out() -> None:
    began = time.monotonic()
    assert type(failed(hang(30), timeout_seconds=0.3)) is TimedOut
    assert time.monotonic() - began >= 0.3


def test_the_time_limit_holds_for_the_whole_reply_where_the_server_trickles() -> None:
    assert type(failed(trickle(pause=0.05), timeout_seconds=0.4)) is TimedOut


def test_a_trickled_reply_within_the_limit_is_a_reply() -> None:
    assert answered(trickle(completion("slow"), piece=60, pause=0.01)).text == "slow"


def test_a_cancellation_passes_through() -> None:
    async def cancelled(model: OpenAIModel) -> None:
        call = asyncio.create_task(model.reply(REQUEST, no_sleep))
        while not server.requests:  # noqa: ASYNC110  # they come in another thread
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with ScriptedServer([hang(30)]) as server:
        asyncio.run(using(model_at(server.base_url), cancelled))
    assert len(server.requests) == 1


# -- Retry-After -------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3s"}, 3.0),
        ({"retry-after": "250 ms"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "?", "retry-after": "7"}, 7.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:35 GMT"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:35 -0000"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"message": "Rate limit reached. Please try again in 5.289s. Visit"}, 5.289),
        ({"message": "exceeded the token rate limit. Please retry after 45 seconds."}, 45.0),
        ({"message": "later", "details": [{"@type": "Help"}, {"@type": "RetryInfo", "retryDelay": "26s"}]}, 26.0),
        ({"message": "later"}, None),
    ],
)
def test_an_error_may_say_itself_when_to_come_back(error: object, seconds: float | None) -> None:
    assert failed(status(429, body=json.dumps({"error": error}))).retry_after == seconds
    assert failed(status(429, headers={"Retry-After": "7"}, body=json.dumps({"error": error}))).retry_after == 7.0


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()))
def test_no_retry_after_header_breaks_a_call(headers: dict[str, str]) -> None:
    seconds = retry_after_seconds(headers, NOW)
    assert seconds is None or 0 <= seconds < float("inf")


@given(st.integers(0, 10**7))
def test_seconds_milliseconds_and_dates_say_the_same(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    for headers in ({"retry-after": str(seconds)}, {"retry-after-ms": str(seconds * 1000)}, {"retry-after": date}):
        assert retry_after_seconds(headers, NOW) == seconds


@pytest.mark.parametrize("code", [429, 503])
def test_a_failure_says_when_to_come_back(code: int) -> None:
    assert failed(status(code, headers={"Retry-After": "3"})).retry_after == 3
    assert failed(status(code, headers={"Retry-After-Ms": "40"})).retry_after == 0.04
    assert failed(status(code)).retry_after is None
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seconds = failed(status(code, headers={"Retry-After": date})).retry_after
    assert seconds is not None
    assert 90 < seconds <= 100


# -- prepare -----------------------------------------------------------------------------------------------------------


def test_an_endpoint_that_answers_is_usable_by_one_tiny_call_like_the_real_ones() -> None:
    with ScriptedServer() as server:
        prepare(model_at(server.base_url, temperature=0.5, max_tokens=900))
        prepare(model_at(server.base_url, response_format="json_object"))
    plain, as_json = server.bodies
    assert (plain["temperature"], plain["seed"]) == (0.5, 0)
    assert plain["max_tokens"] <= 16
    assert "max_tokens" not in as_json
    assert "JSON" in as_json["messages"][0]["content"]


def test_a_refused_connection_is_named_before_a_run(nobody: str) -> None:
    with pytest.raises(EndpointError, match=r"^model 'small' \(tiny\) at http://127.*no connection.*server is running"):
        prepare(model_at(nobody, model="tiny"))


EMPTY = raw('{"error": {"message": "none left", "code": "insufficient_quota"}}')
SENT_ON = "HTTP 307: it sends on to http://other:1/v2/chat/completions"
ITSELF = "set base_url to the address that answers itself"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (hang(30), "timeout_seconds"),
        (html(), "/v1"),
        (status(401), "OPENAI_API_KEY"),
        (status(403), "OPENAI_API_KEY"),
        (status(404), "/v1"),
        (status(400), "parameters"),
        (hang_up(), "that the server is running"),
        (completion("OK", usage=None), 'usage = "optional"'),
        (status(404, body='{"error": {"message": "?", "code": "model_not_found"}}'), "?; check the model's name"),
        (
            status(402),
            "the account's quota is used up: scripted 402; see to the plan and the billing of the key in OPENAI_API_KEY",
        ),
        (raw('{"error": {"message": "too long", "code": 400}}'), "an error in it: too long; check the model's parameters"),
        (EMPTY, "the account's quota is used up: HTTP 200, and an error in it: none left; see to the plan"),
        (status(307, headers={"Location": "http://other:1/v2/chat/completions"}), f"{SENT_ON}; {ITSELF}: http://other:1/v2"),
        (status(301, headers={"Location": "http://other:1/v2/chat/completions?to=x"}), f"301: {SENT_ON[10:]}?to=x; {ITSELF}"),
        (status(302), f"HTTP 302: it sends on to nowhere; {ITSELF}"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused_at_once_with_what_to_do(step: Step, words: str) -> None:
    assert words in unusable(step, timeout_seconds=0.5)


MISTRAL = json.dumps(
    {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
)
OPENAI = json.dumps({"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}})
GEMINI = json.dumps([{"error": {"code": 400, "message": 'Unknown name "min_p": Cannot find field.'}}])
CEREBRAS = json.dumps(
    {"message": "messages.2.assistant.reasoning_content: property '...' is unsupported", "code": "wrong_api_format"}
)
NO_SYSTEM = "prompts begin with a system message: take a model, or give its server a chat template, that has one"
DATABRICKS = json.dumps({"error_code": "BAD_REQUEST", "message": 'Bad request: json: unknown field "parallel_tool_calls"'})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (MISTRAL, 'leave seed out: set omit = ["seed"] in the model\'s table'),
        (OPENAI, "take max_tokens out of the model's table, and give extra_body = { max_completion_tokens = N }"),
        ('{"error": {"message": "temperature must be 1"}}', "change temperature in the model's table, or leave it out"),
        (GEMINI, "change min_p in the model's table, or leave it out"),
        (CEREBRAS, 'leave reasoning_content out: set omit = ["reasoning_content"] in the model\'s table'),
        (DATABRICKS, 'leave parallel_tool_calls out: set omit = ["parallel_tool_calls"] in the model\'s table'),
        ('{"error": {"message": "please stop doing that"}}', "check the model's parameters in the config"),
        ('{"error": {"message": "messages[0].role is odd"}}', "check the model's parameters in the config"),
        ('{"object": "error", "message": "System role not supported"}', NO_SYSTEM),
        ('{"error": {"message": "\'messages[0].role\' does not support \'system\' with this model."}}', NO_SYSTEM),
    ],
)
@pytest.mark.parametrize("code", [400, 422])
def test_a_field_that_is_refused_is_named_with_the_key_that_leaves_it_out(code: int, body: str, words: str) -> None:
    assert words in unusable(status(code, body=body), temperature=0.5, max_tokens=9, extra_body={"min_p": 0.1})


def test_a_field_is_left_out_of_the_request_its_messages_and_their_tool_calls() -> None:
    call = ToolCall("a", "f", "{}", '{"extra_content": 1, "function": {"parsed_arguments": 2}}')
    messages = (
        Message("user", "Hello"),
        Message("assistant", "", (call,), extra='{"reasoning_content": "hm", "reasoning": "h"}'),
    )
    asked = replace(REQUEST, messages=messages, options='{"parallel_tool_calls": false, "stop": ["x"]}')
    omitted = ["seed", "parallel_tool_calls", "reasoning_content", "extra_content", "parsed_arguments"]
    with ScriptedServer() as server:
        asyncio.run(using(model_at(server.base_url, omit=omitted), lambda model: model.reply(asked, no_sleep)))
        prepare(model_at(server.base_url, omit=omitted))
    plain = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert server.bodies[0] == {
        "model": "small",
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": None, "tool_calls": [plain], "reasoning": "h"},
        ],
        "stop": ["x"],
    }
    assert server.bodies[1].keys() == {"model", "messages"}


def test_what_is_left_out_is_among_the_parameters_where_something_is() -> None:
    assert OpenAIModel("small", OpenAISettings(omit=("seed", "n"))).parameters["omit"] == ["n", "seed"]
    assert "omit" not in OpenAIModel("small", OpenAISettings()).parameters


def test_a_path_that_most_endpoints_do_not_have_is_named_with_the_one_that_they_have() -> None:
    with ScriptedServer() as server, pytest.raises(EndpointError) as caught:
        prepare(model_at(server.base_url.removesuffix("/v1")))
    assert f"check that base_url has the right path: most end in /v1, as {server.base_url} does" in str(caught.value)


def at_a_server(url: str, *, tls: ssl.SSLContext | None = None) -> str:
    """What `prepare` says of a server at which nothing but "400" is ever said; the port takes the place of 0 in the address."""

    def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def work() -> None:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0, ssl=tls) as server:
            port = server.sockets[0].getsockname()[1]
            await using(model_at(url.replace(":0", f":{port}")), lambda model: model.prepare())

    with pytest.raises(EndpointError) as caught:
        asyncio.run(work())
    return str(caught.value)


def test_a_server_that_speaks_no_tls_is_told_from_one_that_is_not_there() -> None:
    message = at_a_server("https://127.0.0.1:0/v1")
    assert (
        "no TLS connection: wrong version number; check whether base_url is http:// and not https://, and its port" in message
    )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_that_nobody_vouches_for_is_refused_with_what_to_do(tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    subprocess.run(
        [*made, "-subj", "/CN=localhost", "-keyout", "key", "-out", "cert"], cwd=tmp_path, check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    message = at_a_server("https://127.0.0.1:0/v1", tls=context)
    assert "no TLS connection: self-signed certificate; check the host in base_url and this machine's clock" in message


def test_too_many_open_files_are_this_machines_trouble_and_no_servers(nobody: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def prepare_without_files(model: OpenAIModel) -> None:
        with closing(socket.socket()) as last:
            resource.setrlimit(resource.RLIMIT_NOFILE, (last.fileno() + 1, hard))
            try:
                await model.prepare()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    message = r"no connection: too many open files on this machine; raise the limit \(ulimit -n\), or lower concurrency"
    with pytest.raises(EndpointError, match=message):
        asyncio.run(using(model_at(nobody), prepare_without_files))


def test_an_endpoint_that_counts_no_tokens_is_usable_where_the_config_says_so() -> None:
    with ScriptedServer([completion("OK", usage=None)]) as server:
        prepare(model_at(server.base_url, usage="optional"))
    assert len(server.requests) == 1


def test_a_busy_endpoint_is_asked_three_more_times() -> None:
    busy = [status(429, headers=BUSY_NO_MORE), status(503, headers=BUSY_NO_MORE), status(429, headers=BUSY_NO_MORE)]
    with ScriptedServer(busy) as server:
        prepare(model_at(server.base_url))
    assert len(server.requests) == 4


def test_an_endpoint_that_stays_busy_is_refused_after_four_calls() -> None:
    with (
        ScriptedServer(lambda _: status(429, headers=BUSY_NO_MORE)) as server,
        pytest.raises(EndpointError, match="HTTP 429: scripted 429; come back later"),
    ):
        prepare(model_at(server.base_url))
    assert len(server.requests) == 4


def test_a_busy_endpoint_is_left_alone_for_as_long_as_it_asks() -> None:
    with ScriptedServer([status(503, headers={"Retry-After-Ms": "300"})]) as server:
        began = time.monotonic()
        prepare(model_at(server.base_url))
    assert time.monotonic() - began >= 0.3


# -- keys --------------------------------------------------------------------------------------------------------------


def test_the_key_is_sent_and_stands_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    with ScriptedServer() as server:
        model = model_at(server.base_url, api_key_env="MY_KEY")
        ask(model)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{model!r} {model.parameters} {model.settings!r} {model.endpoint}"


@pytest.mark.parametrize("before", [0, EXCERPT_CHARS - 10])
def test_a_key_that_the_server_repeats_is_blotted_out(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    step = status(401, body="x" * before + f"bad key {KEY}")
    failure = failed(step)
    assert KEY[:6] not in failure.detail
    assert failure.__suppress_context__, "a traceback would show the client's own words"
    assert failure.__cause__ is None
    assert KEY[:6] not in unusable(step)


def test_what_is_sent_and_where_to_is_among_the_parameters_and_the_key_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    extra = {"provider": {"order": ["a", "b"]}, "min_tokens": 3}
    parameters = model_at("https://gateway.example/account-7/openai/v1", extra_body=extra).parameters
    assert (parameters["base_url"], parameters["extra_body"]) == ("https://gateway.example/account-7/openai/v1", extra)
    assert KEY not in str(parameters) and "api_key_env" not in parameters


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("base_url", {"url": f"https://gateway.example/{KEY}/v1"}),
        ("extra_body", {"url": "http://127.0.0.1:1/v1", "extra_body": {"user": {"id": [f"it is {KEY}"]}}}),
        ("model", {"url": "http://127.0.0.1:1/v1", "model": base64.b64encode(f"Bearer {KEY}".encode()).decode()}),
    ],
)
def test_a_key_in_what_is_written_down_is_refused_before_anything_is(
    monkeypatch: pytest.MonkeyPatch, field: str, given: dict[str, Any]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ConfigError, match=f"model 'small': {field} holds the key of OPENAI_API_KEY") as caught:
        model_at(**given)
    assert KEY[:8] not in str(caught.value)


@pytest.mark.parametrize("name", ["api_key", "API-Key", "Authorization", "access_token", "secret"])
def test_a_field_that_is_called_a_secret_is_refused_however_deep_it_lies(name: str) -> None:
    for extra in ({name: "x"}, {"provider": [{"headers": {name: "x"}}]}):
        with pytest.raises(ValidationError, match=f"extra_body may not hold '{name}'"):
            OpenAISettings(extra_body=extra)


def test_a_loopback_endpoint_needs_no_key() -> None:
    with ScriptedServer() as server:
        ask(model_at(server.base_url))
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_any_other_endpoint_needs_a_key_and_the_line_names_its_variable() -> None:
    model = OpenAIModel("gpt-4", OpenAISettings(api_key_env="MY_KEY"))
    assert model.parameters["base_url"] == "https://api.openai.com/v1"
    with pytest.raises(EndpointError, match=r"^no key for https://api.openai.com/v1: set .* MY_KEY$"):
        prepare(model)
    with pytest.raises(EndpointError, match="MY_KEY"):
        ask(model)


@pytest.mark.parametrize("key", ["sk-ключ", "two words", "a\nb"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with ScriptedServer() as server, pytest.raises(EndpointError, match="OPENAI_API_KEY") as caught:
        ask(model_at(server.base_url))
    assert key not in str(caught.value)
    assert not server.requests


# -- bodies ------------------------------------------------------------------------------------------------------------


def packed(step: Step, packing: str = "gzip") -> Step:
    return replace(step, headers={**step.headers, "Content-Encoding": packing}, body=gzip.compress(step.body))


def test_a_reply_in_several_members_of_gzip_is_read_whole() -> None:
    step = completion("Hello, world")
    halves = gzip.compress(step.body[:20]) + gzip.compress(step.body[20:])
    assert answered(replace(packed(step), body=halves)).text == "Hello, world"


def test_of_a_reply_without_end_no_more_is_held_than_a_reply_can_have() -> None:
    bomb = packed(completion("x" * 8 * MAX_REPLY_BYTES))
    for endless in (bomb, replace(bomb, piece=1000)):
        tracemalloc.start()
        try:
            failure = failed(endless)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (failure.kind, failure.paid, failure.passing) == ("too_long", True, True)
        assert failure.detail == "the reply is larger than 8 MiB; set max_tokens, or see what the server sends"
        assert peak < 3 * MAX_REPLY_BYTES


@pytest.mark.parametrize("pack", [lambda step: step, packed])
def test_a_reply_may_have_as_many_bytes_as_the_bound_says_and_not_one_more(pack: Callable[[Step], Step]) -> None:
    empty = len(completion("").body)
    assert answered(pack(completion("x" * (MAX_REPLY_BYTES - empty)))).text
    assert failed(pack(completion("x" * (MAX_REPLY_BYTES - empty + 1)))).kind == "too_long"


def test_of_a_text_too_long_for_any_model_the_beginning_is_kept() -> None:
    longest = answered(completion("x" * MAX_TEXT_CHARS))
    assert (longest.text, longest.finish) == ("x" * MAX_TEXT_CHARS, "stop")
    longer = answered(completion("x" * (MAX_TEXT_CHARS + 1)))
    assert (longer.text, longer.finish) == ("x" * MAX_TEXT_CHARS, "length")


def test_what_is_kept_of_a_reply_is_shared_by_its_texts_and_its_calls() -> None:
    calls = [{"id": "1", "function": {"name": "f", "arguments": "y" * (MAX_TEXT_CHARS // 2)}, "signature": "z"}] * 3
    reply = reply_of(json.dumps({"choices": [{"message": {"content": "x" * 100, "tool_calls": calls}}]}))
    assert reply.text == "x" * 100
    assert [len(call.arguments) for call in reply.tool_calls] == [MAX_TEXT_CHARS // 2, MAX_TEXT_CHARS // 2 - 100 - 4]
    assert reply.finish == "length" and {call.extra for call in reply.tool_calls} == {'{"signature": "z"}'}


@pytest.mark.parametrize(("many", "finish"), [(MAX_CALLS, "tool_calls"), (MAX_CALLS + 1, "length")])
def test_of_more_tool_calls_than_any_model_makes_the_first_are_kept(many: int, finish: str) -> None:
    calls = [{"id": "1", "function": {"name": "f", "arguments": "{}"}}] * many
    reply = reply_of(json.dumps({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}))
    assert (len(reply.tool_calls), reply.finish) == (MAX_CALLS, finish)


def test_what_only_goes_back_is_left_out_where_it_is_too_long() -> None:
    reply = reply_of(json.dumps({"choices": [{"message": {"content": "fine", "thought": "x" * MAX_TEXT_CHARS}}]}))
    assert (reply.text, reply.extra, reply.finish) == ("fine", "", "length")


@pytest.mark.parametrize("before", [0, 10, 2**12 - 10, 2**12])
def test_where_a_long_text_is_cut_no_half_of_the_key_is_left(before: int) -> None:
    for cut in (MAX_TEXT_CHARS, MAX_TEXT_CHARS + 2**12):
        text = "x" * (cut - before - len(KEY) // 2) + KEY + "x" * 10_000
        assert KEY[:8] not in reply_of(completion(text).body.decode(), KEY).text


def test_a_packed_reply_is_read_as_any_other_and_so_is_one_in_an_odd_charset() -> None:
    assert answered(packed(completion("Grüße"))).text == "Grüße"
    odd = completion("Grüße")
    for charset in ("utf-7", "hex", "no such", "idna"):
        headers = {"Content-Type": f"application/json; charset={charset}"}
        assert answered(replace(odd, headers=headers)).text == "Grüße"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (packed(completion("Hi"), "br"), "the body cannot be read: it is packed as 'br', which nobody asked for"),
        (
            replace(completion("Hi"), headers={"Content-Encoding": "gzip"}),
            "the body cannot be read: it does not unpack as gzip",
        ),
    ],
)
def test_a_body_that_does_not_unpack_is_one_line(step: Step, words: str) -> None:
    failure = failed(step)
    assert isinstance(failure, BadAnswer) and failure.detail.startswith(words)


def test_of_an_errors_body_no_more_is_read_than_its_words_and_it_stays_that_error() -> None:
    long = status(500, body="word " * MAX_REPLY_BYTES)
    for step in (
        packed(long),
        trickle(replace(long, body=long.body[: 4 * MAX_ERROR_BYTES]), piece=2 * MAX_ERROR_BYTES, pause=30),
    ):
        assert isinstance(failure := failed(step, timeout_seconds=20), ServerFailed)
        assert failure.detail.startswith("HTTP 500: word word")


def test_a_cookie_that_an_endpoint_gives_is_never_given_back() -> None:
    marked = replace(completion("Hi"), headers={"Set-Cookie": "who=you; Path=/"})
    with ScriptedServer([marked, marked]) as server:
        model = model_at(server.base_url.replace("127.0.0.1", "localhost"))

        async def twice(model: OpenAIModel) -> None:
            for _ in range(2):
                await model.reply(REQUEST, no_sleep)

        asyncio.run(using(model, twice))
    assert len(server.requests) == 2 and "cookie" not in server.requests[1].headers


# -- settings ----------------------------------------------------------------------------------------------------------


def test_parameters_hold_whatever_can_change_a_reply_or_its_cost() -> None:
    url = "http://LOCALHOST:8000/v1/"
    settings = OpenAISettings(base_url=url, weights="sha256:abc", temperature=0.0, price_in=1.0, extra_body={"min_p": 0.1})
    assert OpenAIModel("small", settings).parameters == {
        "model": "small",
        "base_url": "http://localhost:8000/v1",
        "weights": "sha256:abc",
        "cache": False,
        "temperature": 0.0,
        "max_tokens": None,
        "top_p": None,
        "response_format": "none",
        "timeout_seconds": 120.0,
        "price_in": 1.0,
        "price_out": None,
        "extra_body": {"min_p": 0.1},
    }


@pytest.mark.parametrize(
    "line",
    [
        {"base_url": "localhost:8000/v1"},
        {"base_url": "http://localhost:8000/v1/chat/completions"},
        {"base_url": "https://user:secret@example.org/v1"},
        {"base_url": "https://example.org/v1/chat/completions?key=secret"},
        {"base_url": "https://example.org/v1#key"},
        {"base_url": "http://localhost:port/v1"},
        {"extra_body": {"stream": True}},
        {"extra_body": {"seed": 3}},
        {"omit": ["messages"]},
        {"omit": ["seed", "temperature"]},
        {"api_key": "sk-in-the-config"},
        {"concurrency": 0},
        {"timeout_seconds": 0},
    ],
)
def test_a_config_line_that_cannot_hold_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OpenAISettings(**line)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost/v1", True),
        ("http://127.0.0.9:1/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.0.0.1/v1", False),
        ("http://localhost.example.org/v1", False),
    ],
)
def test_loopback_is_this_machine_alone(url: str, local: bool) -> None:
    assert is_loopback(OpenAISettings(base_url=url).base_url) is local


# -- the scripted server itself ----------------------------------------------------------------------------------------


def test_a_script_that_fails_fails_the_test() -> None:
    def broken(_: Any) -> Step:
        raise KeyError("no such step")

    with pytest.raises(KeyError, match="no such step"), ScriptedServer(broken) as server, pytest.raises(ServerFailed):
        ask(model_at(server.base_url))


def test_another_path_is_not_found_and_uses_up_no_step() -> None:
    with ScriptedServer([completion("first")]) as server:
        with pytest.raises(BadAnswer, match="HTTP 404: nothing at /chat/completions"):
            ask(model_at(server.base_url.removesuffix("/v1")))
        assert ask(model_at(server.base_url)).text == "first"


def test_a_server_stops_at_once_though_a_client_still_waits() -> None:
    began = time.monotonic()
    with ScriptedServer([hang(300)]) as server:
        port = int(server.base_url.removesuffix("/v1").rsplit(":", 1)[1])
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        while not server.requests:
            time.sleep(0.01)
    with client:
        assert client.recv(1) == b""
    assert time.monotonic() - began < 300
