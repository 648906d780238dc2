"""Anthropic's messages over the wire: any body is a request or is refused in one way, and means the chat that it should."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.record.extra_fields import extra_text
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.endpoint import anthropic_answers
from bench.run.endpoint.anthropic_messages import INVALID_JSON_KEY, RESTRICTED, chat_of
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply, Usage
from bench.wire.problem import Problem

HELLO = {"role": "user", "content": "hello"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
ASKED = Chat((Message("user", "hello"),))
CALL = {"type": "tool_use", "id": "a", "name": "look", "input": {"path": "x"}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "seen"}]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image"]) | json_values},
    optional={
        "text": st.just("x") | json_values,
        "id": st.just("a") | json_values,
        "tool_use_id": st.just("a") | json_values,
        "name": st.just("look") | json_values,
        "input": st.just({}) | json_values,
        "content": json_values,
        "signature": st.just('{"message": "", "calls": {}}') | json_values,
    },
)
turns = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]) | json_values,
        "content": st.lists(blocks, max_size=3) | json_values,
    }
)
FIELDS = ["system", "tools", "tool_choice", "stop_sequences", "stream", "output_config", *RESTRICTED, "unheard_of"]
requests = st.fixed_dictionaries(
    {"messages": st.lists(turns, max_size=3) | json_values}, optional=dict.fromkeys(FIELDS, json_values)
)


def read(**body: Any) -> Chat:
    return chat_of(json.dumps({"model": "any", "max_tokens": 99, "messages": [HELLO], **body}).encode())


def events_of(stream: bytes) -> list[dict[str, Any]]:
    events = [event.split(b"\n", 1) for event in stream.split(b"\n\n") if event]
    bodies = [json.loads(data.removeprefix(b"data: ")) for _, data in events]
    assert [kind.removeprefix(b"event: ").decode() for kind, _ in events] == [body["type"] for body in bodies]
    return bodies


@given((requests | json_values).map(lambda value: json.dumps(value).encode()) | st.binary())
def test_any_body_is_a_request_or_is_refused_with_one_clear_line(body: bytes) -> None:
    try:
        assert chat_of(body).messages
    except Problem as problem:
        assert problem.status == 400
        assert problem.message
        assert "\n" not in problem.message


def test_a_turn_with_a_call_and_the_result_of_its_tool_are_the_messages_of_a_chat() -> None:
    conversation = [
        HELLO,
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, CALL]},
        {"role": "user", "content": [{"type": "text", "text": "go on"}, {**RESULT, "is_error": True}]},
    ]
    system = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    assert read(messages=conversation, system=system).messages == (
        Message("system", "Be kind."),
        Message("user", "hello"),
        Message("assistant", "Let me see.", (ToolCall("a", "look", '{"path": "x"}'),)),
        Message("tool", "seen", tool_call_id="a"),
        Message("user", "go on"),
    )


def test_a_word_of_the_system_between_two_turns_stays_where_it_stands() -> None:
    chat = read(system="be brief", messages=[HELLO, {"role": "system", "content": "be kind"}, HELLO])
    assert [(message.role, message.content) for message in chat.messages] == [
        ("system", "be brief"),
        ("user", "hello"),
        ("system", "be kind"),
        ("user", "hello"),
    ]


def test_options_are_those_of_the_chat_that_it_means_and_sampling_is_the_experiments() -> None:
    tool = {"name": "look", "description": "Look.", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}
    asked = read(
        tools=[tool],
        tool_choice={"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        stop_sequences=["END"],
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        **{"temperature": 1, "top_k": 4, "thinking": {"type": "adaptive"}, "metadata": {"user_id": "u"}},
    )
    assert json.loads(asked.options) == {
        "tools": [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "parallel_tool_calls": False,
        "stop": ["END"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
        "max_completion_tokens": 99,
    }
    assert json.loads(read(tools=[tool], tool_choice={"type": "any"}).options)["tool_choice"] == "required"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "messages: List should have at least 1 item"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role: Input should be 'user', 'assistant' or 'system'"),
        ({"messages": [{"role": "system", "content": [CALL]}]}, "a message of the system has no block of type 'tool_use'"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "images are not served"),
        ({"messages": [{"role": "user", "content": [RESULT]}]}, "no tool call before it is 'a'"),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "so", "signature": "other"}]}]},
            "signature: give it back as it was given here",
        ),
        ({"messages": [{"role": "user", "content": [CALL]}]}, "a message of the user has no block of type 'tool_use'"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools: 0: only tools that the client runs"),
        (
            {"tools": [{"name": "a", "input_schema": {}, "defer_loading": True}]},
            "tools: 0: defer_loading: would not be passed on",
        ),
        ({"tool_choice": {"type": "often"}}, "tool_choice: give a type: 'auto', 'any', 'none', or 'tool' with its name"),
        ({"stop": ["END"]}, "stop: it is a field of chat completions"),
        ({"context_management": {"edits": []}}, "context_management: nothing is left out of a conversation here"),
        ({"temprature": 1}, "temprature: unknown; did you mean 'temperature'?"),
    ],
)
def test_a_refusal_names_what_is_wrong(body: dict[str, Any], words: str) -> None:
    with pytest.raises(Problem) as caught:
        read(**body)
    assert words in caught.value.message


@given(
    st.text(), st.text(), st.lists(st.text(), max_size=2), st.sampled_from(["stop", "length", "content_filter", "tool_calls"])
)
def test_a_stream_adds_up_to_the_whole_answer(thought: str, text: str, written: list[str], finish: str) -> None:
    calls = tuple(ToolCall(f"call_{number}", "look", arguments) for number, arguments in enumerate(written))
    extra = extra_text({"reasoning_content": thought} if thought else {})
    reply = Reply(text, finish, Usage(12, 3, 4), tool_calls=calls, extra=extra)
    whole = json.loads(anthropic_answers.body([reply], 1, ASKED))
    events = events_of(b"".join(anthropic_answers.stream([reply], 1, ASKED)))
    assert [events[0]["type"], *(event["type"] for event in events[-2:])] == ["message_start", "message_delta", "message_stop"]
    kinds = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    pieces = dict.fromkeys(range(len(kinds)), "")
    for event in events:
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            pieces[event["index"]] += delta.get("thinking", "") + delta.get("text", "") + delta.get("partial_json", "")
    assert list(pieces.values()) == [*filter(None, (thought, text)), *written]
    signatures = [event["delta"]["signature"] for event in events if event.get("delta", {}).get("type") == "signature_delta"]
    assert signatures == [block["signature"] for block in whole["content"] if block["type"] == "thinking"]
    assert [block["type"] for block in whole["content"]] == kinds
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"]
    counted = {"input_tokens": 8, "output_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0}
    assert whole["usage"] == counted


@given(st.text(), st.lists(st.text(), max_size=2), st.sampled_from(["", '{"reasoning_content": "so"}']))
def test_a_reply_that_breaks_off_is_the_beginning_of_its_answer_and_its_last_block_never_stops(
    text: str, written: list[str], extra: str
) -> None:
    reply = Reply(text, extra=extra, tool_calls=tuple(ToolCall("a", "look", arguments) for arguments in written))
    begun = anthropic_answers.cut_body(reply, 1, ASKED)
    assert anthropic_answers.body([reply], 1, ASKED).startswith(begun)
    with pytest.raises(ValueError, match=r"."):
        json.loads(begun)
    kinds = [event["type"] for event in events_of(b"".join(anthropic_answers.cut_stream(reply, 1, ASKED)))]
    assert "message_stop" not in kinds
    assert kinds.count("content_block_stop") == max(0, kinds.count("content_block_start") - 1)


@pytest.mark.parametrize("arguments", ['{"path": "x"}', "no JSON", "[1]", "[" * 100_000, ""])
def test_arguments_come_back_as_the_model_wrote_them_though_they_are_no_object(arguments: str) -> None:
    reply = Reply("", tool_calls=(ToolCall("a", "look", arguments),))
    [block] = json.loads(anthropic_answers.body([reply], 1, ASKED))["content"]
    assert block["input"] == ({"path": "x"} if arguments.startswith("{") else {INVALID_JSON_KEY: arguments})
    conversation = [HELLO, {"role": "assistant", "content": [block]}, {"role": "user", "content": [RESULT]}]
    assert read(messages=conversation).messages[1].tool_calls == (ToolCall("a", "look", arguments),)
