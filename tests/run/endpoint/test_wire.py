"""What goes over the wire: any body is a request or is refused in one way, and a stream says what a whole answer says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.record.messages import Message
from bench.run.endpoint import answers
from bench.run.endpoint.fields import HINTS, REPLACED, RESTRICTED
from bench.run.endpoint.wire import Chat, chat_of
from bench.run.models.base import Reply, Usage
from bench.wire.problem import Problem

HELLO = {"role": "user", "content": "hello"}
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKED = Chat((Message("user", "hello"),))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
contents = st.text() | st.none() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text()}), max_size=3)
roles = st.sampled_from(["system", "user", "assistant", "developer", "tool"])
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "developer", "tool"]) | json_values,
        "content": json_values | contents,
    },
    optional={"tool_calls": json_values, "name": json_values, "refusal": json_values},
)
likely_values = json_values | st.sampled_from(["none", "auto", 1, 0, False, {"type": "text"}, {"type": "json_object"}])
near_requests = st.fixed_dictionaries(
    {"messages": st.lists(messages, min_size=1, max_size=3) | json_values},
    optional=dict.fromkeys(("stream", "stream_options"), json_values)
    | dict.fromkeys([*RESTRICTED, *sorted(REPLACED | HINTS), "unheard_of"], likely_values),
)


def refusal(body: object, parameters: Mapping[str, object] | None = None) -> Problem:
    with pytest.raises(Problem) as caught:
        chat_of(json.dumps(body).encode(), parameters)
    return caught.value


def text_of(content: Any) -> str:
    """What stands in a content, whatever its form."""
    return "".join(part["text"] for part in content) if isinstance(content, list) else content or ""


@given((near_requests | json_values).map(lambda value: json.dumps(value).encode()) | st.binary())
@example(b'{"messages": [{"role": "user", "content": "\\ud800"}]}')
@example(b"[" * 100_000)
@example(json.dumps({"messages": [HELLO], "a\nline": 1}).encode())
@example(json.dumps({"messages": [{**HELLO, "a\nline": 1}]}).encode())
def test_any_body_is_a_request_with_all_its_texts_or_is_refused_with_one_clear_line(body: bytes) -> None:
    try:
        chat = chat_of(body)
    except Problem as problem:
        assert problem.status == 400
        assert set(problem.body["error"]) == {"message", "type", "param", "code"}
        assert problem.message
        assert "\n" not in problem.message
        json.dumps(problem.body).encode()
    else:
        sent = json.loads(body)["messages"]
        assert [message.content for message in chat.messages] == [text_of(message.get("content")) for message in sent]


@given(st.lists(st.text(), min_size=1), st.booleans(), json_values)
def test_the_experiments_settings_take_the_place_of_the_clients(texts: list[str], stream: bool, anything: Any) -> None:
    body = {
        "messages": [{"role": "user", "content": text} for text in texts],
        "stream": stream,
        **dict.fromkeys(REPLACED | HINTS, anything),
    }
    chat = chat_of(json.dumps(body).encode())
    assert chat == Chat(tuple(Message("user", text) for text in texts), stream)
    assert set(chat.set_aside) == ((REPLACED | HINTS) - {"model"} if anything not in (None, []) else set())


def test_settings_of_a_vendor_are_ruled_one_by_one() -> None:
    thinks = {"extra_body": {"google": {"thinking_config": {"thinking_budget": 8}}}}
    assert set(chat_of(json.dumps({"messages": [HELLO], **thinks}).encode()).set_aside) == {"extra_body.google.thinking_config"}
    reads = {"extra_body": {"google": {"cached_content": "x"}}}
    assert refusal({"messages": [HELLO], **reads}).message.startswith("extra_body.google.cached_content: no content is stored")
    for odd in ({"google": {"temprature": 1}}, {"google": 1}, 1):
        assert "unknown" in refusal({"messages": [HELLO], "extra_body": odd}).message


@given(st.sampled_from([*RESTRICTED, "unheard_of"]))
def test_a_field_without_a_value_says_nothing_and_is_taken(field: str) -> None:
    nothing: tuple[object, ...] = (None, [])
    for value in nothing:
        assert chat_of(json.dumps({"messages": [HELLO], field: value}).encode()).messages


@pytest.mark.parametrize(
    ("field", "value", "parameters"),
    [
        ("n", 1, {}),
        ("logprobs", False, {}),
        ("tool_choice", "auto", {}),
        ("parallel_tool_calls", True, {}),
        ("response_format", {"type": "text"}, {}),
        ("response_format", {"type": "json_object"}, {"response_format": "json_object"}),
        ("max_tokens", 800, {"max_tokens": 800}),
        ("max_completion_tokens", 4096, {"max_tokens": 800}),
        ("modalities", ["text"], {}),
    ],
)
def test_what_says_only_what_happens_anyway_is_taken(field: str, value: object, parameters: dict[str, object]) -> None:
    assert chat_of(json.dumps({"messages": [HELLO], field: value}).encode(), parameters) == Chat((Message("user", "hello"),))


@pytest.mark.parametrize(
    ("field", "value", "parameters", "words"),
    [
        ("n", 0, {}, "greater than or equal to 1"),
        ("tools", [{"type": "web_search"}], {}, "0: only tools of type 'function'"),
        ("tools", {"type": "function"}, {}, "a list of tools"),
        ("functions", [{"name": "f"}], {}, "functions have become tools"),
        ("tool_choice", "required", {}, "there are no tools to choose from"),
        ("tool_choice", "any", {}, "give 'none', 'auto', 'required'"),
        ("response_format", {"type": "json_schema"}, {}, "with its json_schema"),
        ("response_format", "json", {}, "give a type"),
        ("max_tokens", 0, {}, "tokens above 0"),
        ("max_completion_tokens", True, {}, "tokens above 0"),
        ("stop", ["a", 1], {}, "a list of texts"),
        ("parallel_tool_calls", "no", {}, "true or false"),
        ("logprobs", True, {}, "no probabilities"),
        ("top_logprobs", 5, {}, "no probabilities"),
        ("modalities", ["text", "audio"], {}, "replies are text"),
        ("audio", {"voice": "alloy"}, {}, "replies are text"),
        ("temprature", 0.5, {}, "unknown; did you mean 'temperature'?"),
        ("guided_json", {"type": "object"}, {}, "a form is passed on as response_format"),
    ],
)
def test_what_would_not_be_passed_on_is_refused_by_its_name(
    field: str, value: object, parameters: dict[str, object], words: str
) -> None:
    problem = refusal({"messages": [HELLO], field: value}, parameters)
    assert problem.param == field
    assert problem.message.startswith(f"{field}: ") and words in problem.message


def test_parts_of_text_are_joined_and_a_developer_is_the_system() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    chat = chat_of(json.dumps({"messages": [{"role": "developer", "content": parts}]}).encode())
    assert chat.messages == (Message("system", "one two"),)


def test_a_message_that_a_client_gives_back_as_it_got_it_is_taken() -> None:
    empty: dict[str, object] = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": None}
    for content in ("said", None):
        chat = chat_of(json.dumps({"messages": [HELLO, {"role": "assistant", "content": content, **empty}]}).encode())
        assert chat.messages[1] == Message("assistant", content or "")


def test_an_assistants_message_and_its_calls_are_passed_on_as_they_came() -> None:
    signed = {**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}, "provider_specific_fields": None}
    signed["function"] = {"name": "look", "arguments": "{}", "parsed_arguments": {"x": 1}}
    back = {"role": "assistant", "content": "", "reasoning_content": "", "refusal": None, "reasoning_details": [{"a": 1}]}
    chat = chat_of(json.dumps({"messages": [HELLO, {**back, "tool_calls": [signed]}]}).encode())
    assert json.loads(chat.messages[1].extra) == {"reasoning_content": "", "reasoning_details": [{"a": 1}]}
    [call] = chat.messages[1].tool_calls
    assert call.plain == {key: value for key, value in signed.items() if value is not None}


def test_a_refusal_that_an_agent_gives_back_as_a_part_is_the_text_that_it_was() -> None:
    parts = [{"type": "text", "text": "No. "}, {"type": "refusal", "refusal": "I can't."}]
    chat = chat_of(json.dumps({"messages": [HELLO, {"role": "assistant", "content": parts}]}).encode())
    assert chat.messages[1] == Message("assistant", "No. I can't.")
    odd = refusal({"messages": [HELLO, {"role": "assistant", "content": [{"type": "refusal", "refusal": 3}]}]})
    assert "only parts of type 'text'" in odd.message


def test_a_mark_for_a_cache_is_taken_on_a_message_as_it_is_on_a_part_of_it() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    for marked in ({**HELLO, **mark}, {"role": "user", "content": [{"type": "text", "text": "hello", **mark}]}):
        assert chat_of(json.dumps({"messages": [marked]}).encode()).messages == (Message("user", "hello"),)


def test_a_call_whose_parsed_arguments_are_null_is_the_call_without_them() -> None:
    odd = {**CALL, "index": 0, "function": {**CALL["function"], "parsed_arguments": None}}  # type: ignore[dict-item]
    both = [chat_of(json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()) for call in (CALL, odd)]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({}, "messages", "required"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages.0.role", "functions have become tools"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0", "tool_call_id"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]}, "messages", "no tool call before it is 'a'"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages.0.tool_calls.0.id", "required"),
        ({"messages": [{**HELLO, "tool_calls": [CALL]}]}, "messages.0", "only the assistant"),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0", "its content is no text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages.0.content",
            "images and sound are not",
        ),
        ({"messages": [{**HELLO, "reasoning": "so"}]}, "messages.0", "reasoning: only role, content"),
        ({"messages": [{"role": "assistant", "images": ["x"]}]}, "messages.0", "images: images and sound are not served"),
        ({"messages": [{"role": "assistant", "function_call": CALL}]}, "messages.0", "functions have become tools"),
        ({"messages": [HELLO], "stream_options": {"every": 1}}, "stream_options.every", "not permitted"),
        ([HELLO], None, "the body"),
    ],
)
def test_a_refusal_names_what_is_wrong(body: object, param: str | None, words: str) -> None:
    problem = refusal(body)
    assert (problem.param, problem.type) == (param, "invalid_request_error")
    assert words in problem.message


@given(st.text(), st.sampled_from(["stop", "length", "content_filter"]), st.booleans())
def test_a_stream_says_what_a_whole_answer_says(text: str, finish: str, include_usage: bool) -> None:
    reply = Reply(text, finish, Usage(12, 3))
    whole = json.loads(answers.body([reply], 1, ASKED))
    *events, done = answers.stream([reply], 1, replace(ASKED, include_usage=include_usage))
    streamed = [json.loads(event.removeprefix(b"data: ")) for event in events]
    choices = [choice for chunk in streamed for choice in chunk["choices"]]
    assert done == b"data: [DONE]\n\n"
    assert "".join(choice["delta"].get("content", "") for choice in choices) == whole["choices"][0]["message"]["content"]
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == [finish]
    assert [chunk["usage"] for chunk in streamed if "usage" in chunk] == [whole["usage"]] * include_usage


@given(st.text())
def test_an_answer_that_breaks_off_is_the_beginning_of_a_whole_one(text: str) -> None:
    assert answers.body([Reply(text)], 1, ASKED) == answers.cut_body(Reply(text), 1, ASKED) + b'"}}]}'


def test_a_reply_whose_tokens_nobody_counted_has_no_usage() -> None:
    assert "usage" not in json.loads(answers.body([Reply("text")], 1, ASKED))
