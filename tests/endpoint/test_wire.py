"""What goes over the wire: any body is a request or is refused in one way, and a stream says what a whole answer says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.endpoint import wire
from bench.endpoint.wire import Chat, Problem, chat_of
from bench.models.base import Message, Reply, Usage

HELLO = {"role": "user", "content": "hello"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "developer", "tool"]) | json_values, "content": json_values},
    optional={"tool_calls": json_values},
)
near_requests = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(messages, max_size=3) | json_values,
        "stream": json_values,
        "stream_options": json_values,
        "n": json_values,
        "tools": json_values,
        "temperature": json_values,
    },
)


def refusal(body: object) -> Problem:
    with pytest.raises(Problem) as caught:
        chat_of(json.dumps(body).encode())
    return caught.value


@given((near_requests | json_values).map(lambda value: json.dumps(value).encode()) | st.binary())
@example(b'{"messages": [{"role": "user", "content": "\\ud800"}]}')
@example(b"[" * 100_000)
def test_any_body_is_a_request_or_is_refused_with_one_clear_line(body: bytes) -> None:
    try:
        chat = chat_of(body)
    except Problem as problem:
        assert problem.status == 400
        assert set(problem.body["error"]) == {"message", "type", "param", "code"}
        assert problem.message
        assert "\n" not in problem.message
        json.dumps(problem.body).encode()
    else:
        assert chat.messages
        assert all(isinstance(message.content, str) for message in chat.messages)


@given(st.lists(st.text(), min_size=1), st.booleans(), json_values)
def test_only_messages_and_streaming_count(texts: list[str], stream: bool, anything: Any) -> None:
    body = {
        "messages": [{"role": "user", "content": text} for text in texts],
        "stream": stream,
        **dict.fromkeys(("model", "seed", "temperature", "response_format", "max_tokens", "user", "unheard_of"), anything),
    }
    assert chat_of(json.dumps(body).encode()) == Chat(tuple(Message("user", text) for text in texts), stream)


def test_parts_of_text_are_joined_and_a_developer_is_the_system() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    chat = chat_of(json.dumps({"messages": [{"role": "developer", "content": parts}]}).encode())
    assert chat.messages == (Message("system", "one two"),)


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({}, "messages", "required"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [HELLO], "n": 2}, "n", "n must be 1"),
        ({"messages": [HELLO], "tools": [{"type": "function"}]}, "tools", "not served"),
        ({"messages": [HELLO], "functions": [{"name": "f"}]}, "functions", "not served"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role", "'user'"),
        ({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]}, "messages.0.tool_calls", "at most 0"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content", "type 'text'"),
        ([HELLO], None, "the body"),
    ],
)
def test_a_refusal_names_what_is_wrong(body: object, param: str | None, said: str) -> None:
    problem = refusal(body)
    assert (problem.param, problem.type) == (param, "invalid_request_error")
    assert said in problem.message


@given(st.text(), st.sampled_from(["stop", "length", "content_filter"]), st.booleans())
def test_a_stream_says_what_a_whole_answer_says(text: str, finish: str, include_usage: bool) -> None:
    reply = Reply(text, finish, Usage(12, 3))
    whole = json.loads(wire.completion(reply, 1))
    *events, done = wire.chunks(reply, 1, include_usage)
    streamed = [json.loads(event.removeprefix(b"data: ")) for event in events]
    choices = [choice for chunk in streamed for choice in chunk["choices"]]
    assert done == b"data: [DONE]\n\n"
    assert "".join(choice["delta"].get("content", "") for choice in choices) == whole["choices"][0]["message"]["content"]
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == [finish]
    assert [chunk["usage"] for chunk in streamed if "usage" in chunk] == [whole["usage"]] * include_usage


@given(st.text())
def test_an_answer_that_breaks_off_is_the_beginning_of_a_whole_one(text: str) -> None:
    assert wire.completion(Reply(text), 1) == wire.broken_off(text, 1) + b'"}}]}'


def test_a_reply_whose_tokens_nobody_counted_has_no_usage() -> None:
    assert "usage" not in json.loads(wire.completion(Reply("text"), 1))
