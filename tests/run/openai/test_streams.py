"""A stream that nobody asked for is the completion that its events are the pieces of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cost import processor_time
from hypothesis import given
from hypothesis import strategies as st

from bench.common.errors import CallFailed, CutOff, NoCompletion, NoText, ServerFailed, TooLong
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.endpoint import answers
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply, Usage
from bench.run.openai.bodies import MAX_REPLY_BYTES
from bench.run.openai.replies import reply_of

ASKED = Chat((Message("user", "hello"),), include_usage=True)
CALLS = st.lists(st.builds(ToolCall, st.text(min_size=1), st.text(min_size=1), st.text()), max_size=3)


def events(*items: Any) -> str:
    return "".join(f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n" for item in items)


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


def call(index: object, id_: str = "", name: str = "", arguments: str = "") -> dict[str, Any]:
    return piece(tool_calls=[{"index": index, "id": id_ or None, "function": {"name": name, "arguments": arguments}}])


WHOLE = ToolCall("a", "look", '{"x": 1}')
OTHER = ToolCall("b", "look", '{"x": 2}')


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([call(0, "a", "look", '{"x":'), call(0, "", "", " 1}")], [WHOLE]),
        ([call(0, "a", "look", '{"x":'), call(0, "a", "look", " 1}")], [WHOLE]),
        ([call(0, "a", "look", '{"x":'), call(0, "z", "", " 1}")], [WHOLE]),
        ([call(0, "a", "lo", '{"x":'), call(0, "", "ok", " 1}")], [WHOLE]),
        ([call(0, "", "look", '{"x":'), call(0, "a", "look", " 1}")], [WHOLE]),
        ([call(0, "a", "look", '{"x": 1}'), call(1, "b", "look", '{"x": 2}')], [WHOLE, OTHER]),
        ([call(0, "a", "look", '{"x": 1}'), call(0, "b", "look", '{"x": 2}')], [WHOLE, OTHER]),
        ([call(0, "a", "look", '{"x": 1}'), call(0, "b", "look", '{"x":'), call(0, "", "", " 2}")], [WHOLE, OTHER]),
        ([call(None, "a", "look", '{"x": 1}'), call(None, "b", "look", '{"x": 2}')], [WHOLE, OTHER]),
        (
            [call(None, "", "f", "{}"), call(None, "", "g", "{}")],
            [ToolCall("call_1", "f", "{}"), ToolCall("call_2", "g", "{}")],
        ),
        ([piece(tool_calls=[{"id": "a", "name": "look", "arguments": '{"x": 1}'}])], [WHOLE]),
        ([piece(tool_calls=[{"id": "a", "function": {"name": "look", "arguments": {"x": 1}}}])], [WHOLE]),
        (
            [piece(function_call={"name": "f", "arguments": "{"}), piece(function_call={"arguments": "}"})],
            [ToolCall("call_1", "f", "{}")],
        ),
    ],
)
def test_the_pieces_of_a_call_come_together_and_those_of_two_do_not(pieces: list[Any], calls: list[ToolCall]) -> None:
    assert reply_of(events(*pieces, piece("tool_calls"))).tool_calls == tuple(calls)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("data: " + json.dumps(piece("stop", content="a\u2028b\x85c\x0bd"), ensure_ascii=False) + "\n\n", "a\u2028b\x85c\x0bd"),
        (events(piece(content="said"), piece("stop")).replace("\n", "\r\n"), "said"),
        (events(piece(content="said"), piece("stop")).replace("\n", "\r").replace("data: ", "data:"), "said"),
        (events(piece(content="half \ud83d"), piece(content="\ude00"), piece("stop")), "half \U0001f600"),
        (events(": PROCESSING", piece(content="said"), piece("stop")), "said"),
        (events(piece(content="said"), piece("stop"), piece("")), "said"),
        (events(piece("", content="sa"), piece("null", content="id"), piece("stop")), "said"),
        (events(piece(content=[{"type": "text", "text": "sa"}]), piece(content="id"), piece("stop")), "said"),
        (events(piece(content="sa"), piece(content=[{"type": "thinking", "thinking": "hm"}, "id"]), piece("stop")), "said"),
    ],
)
def test_a_streams_text_is_whole_however_its_events_are_written(body: str, text: str) -> None:
    assert reply_of(body) == Reply(text)


USAGE = {"prompt_tokens": 12, "completion_tokens": 3}


@pytest.mark.parametrize(
    "last",
    [
        {**piece("stop"), "usage": USAGE},
        {"choices": [{**piece("stop")["choices"][0], "usage": USAGE}]},
        {**piece("stop"), "x_groq": {"id": "r", "usage": USAGE}},
    ],
)
def test_a_streams_usage_is_found_where_its_provider_puts_it(last: Any) -> None:
    assert reply_of(events(piece(content="said"), last)) == Reply("said", "stop", Usage(12, 3))


def test_an_error_in_a_field_of_its_own_is_the_error_that_it_tells() -> None:
    line = 'error: {"code": 500, "message": "slot failed", "type": "server_error"}\n\n'
    for body in (line, events(piece(content="so f")) + line):
        failed = failure(body + events("[DONE]"))
        assert (type(failed), failed.detail) == (ServerFailed, "HTTP 200, and an error in it: slot failed")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (events(piece(content="so f")), CutOff),
        (events(piece("null", content="so f")), CutOff),
        (json.dumps(piece(content="so")) + json.dumps(piece("stop", content=" far")), CutOff),
        (events(piece(content="so f"), {"error": {"message": "upstream", "code": 502}}), ServerFailed),
        (events(piece(content="so f"), piece("error")), ServerFailed),
        (events(piece("stop", content="x"), "{oh}"), NoText),
        (events("[DONE]"), NoCompletion),
        (events({}) * 60_000, TooLong),
    ],
)
def test_a_stream_that_does_not_come_to_its_end_is_no_answer(body: str, kind: type[CallFailed]) -> None:
    assert type(failure(body)) is kind


PIECES = [
    '{"delta":{"content":"x"}}',
    '{"delta":{"content":"\\ud83d"}},{"delta":{"content":"\\ude00"}}',
    '{"delta":{"tool_calls":[{}]}}',
]
UNITS = [
    "data:{}\n",
    "data:\n",
    "\n",
    "\r",
    "error:{}\n",
    "data: 0\n",
    *(f'data:{{"choices":[{piece}]}}\n' for piece in PIECES),
]


@pytest.mark.parametrize("unit", UNITS)
def test_any_stream_within_the_bound_is_told_in_a_second_of_processor(
    unit: str, record_property: Callable[[str, object], None]
) -> None:
    with processor_time(at_most=1.0) as took:
        failure("data: {}\n" + unit * (MAX_REPLY_BYTES // len(unit) - 2))
    record_property("place", "an endpoint's stream")
    record_property("processor", took.seconds)
