"""A stream that nobody asked for is the completion that its events are the pieces of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cost import processor_time
from hypothesis import given
from hypothesis import strategies as st

from bench.endpoint import answers
from bench.endpoint.wire import Chat
from bench.errors import CallFailed, CutOff, NoCompletion, NoText, ServerFailed, TooLong
from bench.models.base import Message, Reply, Usage
from bench.models.openai_bodies import LARGEST
from bench.models.openai_replies import reply_of
from bench.models.tool_calls import ToolCall

ASKED = Chat((Message("user", "hello"),), include_usage=True)
CALLS = st.lists(st.builds(ToolCall, st.text(min_size=1), st.text(min_size=1), st.text()), max_size=3)


def events(*said: Any) -> str:
    return "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in said)


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def failure(body: str) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        reply_of(body)
    return caught.value


@given(st.text(), CALLS, st.sampled_from(["stop", "length"]))
def test_a_streamed_reply_is_the_reply_that_was_streamed(text: str, calls: list[ToolCall], finish: str) -> None:
    reply = Reply(text, finish, Usage(12, 3), tool_calls=tuple(calls), extra='{"reasoning_content": "hm"}')
    sent = b"".join(answers.stream([reply], 1, ASKED)).decode()
    assert reply_of(sent) == reply


def test_what_stands_beside_a_piece_is_kept_and_other_choices_are_not() -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
    body = events(
        {"choices": []},
        piece(role="assistant", content="", reasoning_content="fir"),
        piece(reasoning_content="st", reasoning_details=[{"a": 1}]),
        {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]},
        piece(reasoning_details=[{"a": 2}], tool_calls=[{**call, "extra_content": {"s": "c2ln"}}]),
        piece("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
        {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}},
        "[DONE]",
    )
    assert reply_of(": keep-alive\n\n" + body) == Reply(
        "",
        "tool_calls",
        Usage(12, 3),
        tool_calls=(ToolCall("a", "f", "{}", '{"extra_content": {"s": "c2ln"}}'),),
        extra='{"reasoning_content": "first", "reasoning_details": [{"a": 1}, {"a": 2}]}',
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (events(piece(content="so f")), CutOff),
        (events(piece(content="so f"), {"error": {"message": "upstream", "code": 502}}), ServerFailed),
        (events(piece(content="so f"), piece("error")), ServerFailed),
        (events(piece("stop", content="x"), "{oh}"), NoText),
        (events("[DONE]"), NoCompletion),
        (events(*[{}] * 60_000), TooLong),
    ],
)
def test_a_stream_that_does_not_come_to_its_end_is_no_answer(body: str, kind: type[CallFailed]) -> None:
    assert type(failure(body)) is kind


@pytest.mark.parametrize("unit", ["data:{}\n", "data:\n", "\n", "data: 0\n", 'data:{"choices":[{"delta":{"content":"x"}}]}\n'])
def test_any_stream_within_the_bound_is_told_in_a_second_of_processor(unit: str) -> None:
    with processor_time(at_most=1.0):
        failure("data: {}\n" + unit * (LARGEST // len(unit) - 2))
