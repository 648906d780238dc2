"""The Responses API over the wire: any body is a request or is refused in one way, and means the chat that it should."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.endpoint import response_answers
from bench.run.endpoint.responses import RESTRICTED, chat_of
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply, Usage
from bench.wire.problem import Problem

HELLO = {"role": "user", "content": "hello"}
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
ASKED = Chat((Message("user", "hello"),))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
items = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "item_reference"])
        | json_values,
        "role": st.sampled_from(["user", "assistant", "tool"]) | json_values,
        "content": json_values | st.just([{"type": "input_text", "text": "x"}]),
        "call_id": st.just("a") | json_values,
        "name": st.just("look") | json_values,
        "arguments": st.just("{}") | json_values,
        "output": st.just("seen") | json_values,
        "id": st.text(alphabet="rsmgfc_0123\u0663") | json_values,
    },
)
requests = st.fixed_dictionaries(
    {"input": st.text() | st.lists(items, max_size=3) | json_values},
    optional=dict.fromkeys(["instructions", "tools", "tool_choice", "text", "stream", *RESTRICTED, "unheard_of"], json_values),
)


def read(**body: Any) -> Chat:
    return chat_of(json.dumps(body).encode())


@given((requests | json_values).map(lambda value: json.dumps(value).encode()) | st.binary())
def test_any_body_is_a_request_or_is_refused_with_one_clear_line(body: bytes) -> None:
    try:
        assert chat_of(body).messages
    except Problem as problem:
        assert problem.status == 400
        assert problem.message
        assert "\n" not in problem.message


def test_a_text_and_instructions_are_two_messages() -> None:
    assert read(input="hello", instructions="Be kind.").messages == (Message("system", "Be kind."), Message("user", "hello"))


def test_what_the_assistant_said_and_called_in_one_turn_is_one_message() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}", "id": "fc_1", "status": "completed"}
    message = {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": "Let me see."}],
    }
    outputs = [{"type": "function_call_output", "call_id": call_id, "output": call_id} for call_id in ("a", "b")]
    assert read(input=[HELLO, message, call, {**call, "call_id": "b"}, *outputs]).messages == (
        Message("user", "hello"),
        Message("assistant", "Let me see.", (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}"))),
        Message("tool", "a", tool_call_id="a"),
        Message("tool", "b", tool_call_id="b"),
    )


def test_options_are_those_of_the_chat_that_it_means() -> None:
    tool = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}
    form = {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}}
    asked = read(
        input="x", tools=[tool], tool_choice={"type": "function", "name": "look"}, text=form, max_output_tokens=9
    ).options
    assert json.loads(asked) == {
        "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
        "max_completion_tokens": 9,
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id: 'resp_1' was not given here; send the whole conversation"),
        ({"conversation": "c"}, "conversation: no conversation is kept under a name"),
        ({"include": ["message.output_text.logprobs"]}, "include: message.output_text.logprobs: no probabilities are given"),
        ({"background": True}, "background: replies are given at once"),
        ({"tools": [{"type": "web_search"}]}, "tools: 0: only tools of type 'function'"),
        ({"input": [{"type": "item_reference", "id": "fc_1_0"}]}, "input: 'fc_1_0' was not given here"),
        ({"input": [{"type": "custom_tool_call", "id": "x"}]}, "only items of type 'message'"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "give it back as it was given here, or leave out what holds it"),
        ({"input": [{"type": "reasoning", "encrypted_content": "gAAA"}]}, "give it back as it was given here"),
        ({"input": [{"type": "function_call_output", "call_id": "a", "output": "x"}]}, "no tool call before it is 'a'"),
        ({"input": [{**HELLO, "content": [{"type": "input_image", "image_url": "x"}]}]}, "images and sound are not served"),
        ({"input": []}, "input: there is none"),
        ({"temprature": 1}, "temprature: unknown; did you mean 'temperature'?"),
    ],
)
def test_a_refusal_names_what_is_wrong(body: dict[str, Any], words: str) -> None:
    with pytest.raises(Problem) as caught:
        read(**{"input": "x", **body})
    assert words in caught.value.message


@given(st.text(), st.lists(st.text(), max_size=2), st.sampled_from(["stop", "length", "content_filter"]))
def test_a_stream_ends_with_the_whole_answer_and_its_pieces_add_up_to_it(text: str, given_: list[str], finish: str) -> None:
    calls = tuple(ToolCall(f"call_{number}", "look", arguments) for number, arguments in enumerate(given_))
    reply = Reply(text, finish, Usage(12, 3), tool_calls=calls)
    whole = json.loads(response_answers.body([reply], 1, ASKED))
    events = [json.loads(event.split(b"\ndata: ")[1]) for event in response_answers.stream([reply], 1, ASKED)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["response"] == whole
    assert whole["status"] == ("completed" if finish == "stop" else "incomplete")
    pieces = [event for event in events if event["type"].endswith(".delta")]
    assert "".join(piece["delta"] for piece in pieces) == text + "".join(given_)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == whole["output"]


@given(st.text(), st.lists(st.text(), max_size=2))
def test_an_answer_that_breaks_off_is_the_beginning_of_a_whole_one(text: str, given_: list[str]) -> None:
    reply = Reply(
        text, tool_calls=tuple(ToolCall(f"call_{number}", "look", arguments) for number, arguments in enumerate(given_))
    )
    whole, begun = (make(reply) for make in (lambda answer: response_answers.body([answer], 1, ASKED), begun_of))
    assert whole.startswith(begun)
    assert len(begun) < len(whole)
    events = list(response_answers.stream([reply], 1, ASKED))
    started = list(response_answers.cut_stream(reply, 1, ASKED))
    assert events[: len(started)] == started
    assert not any(b".done" in event.split(b"\n")[0] for event in started[-1:])


def begun_of(reply: Reply) -> bytes:
    return response_answers.cut_body(reply, 1, ASKED)
