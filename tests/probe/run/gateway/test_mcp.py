"""Messages of MCP, read beside the bytes."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.points import IS_ERROR, JSON_RPC, AnswerAction
from bench.probe.run.gateway.gate import CallGate, DoorContext, LiveCall
from bench.probe.run.gateway.mcp import LARGE_TEXT_BYTES, KnownServer, changed_answer, error_answer, second_delivery
from bench.wire.json_rpc import MAX_MESSAGE_BYTES, LineSplitter, RpcMessage, key_of, messages_of, text_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
TOOLS: list[dict[str, Any]] = [{"name": "pay"}, {"name": "look", "annotations": {"readOnlyHint": True}}]


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_lines_hold_every_byte_in_its_order(pieces: list[bytes], longest: int) -> None:
    lines = LineSplitter(longest)
    cut = [piece for more in pieces for piece in lines.add(more)]
    assert b"".join(piece for piece, _ in cut) + lines.rest() == b"".join(pieces)
    assert all(piece.count(b"\n") == 1 and piece.endswith(b"\n") for piece, is_whole in cut if is_whole)


@given(st.lists(st.binary(max_size=30)))
def test_lines_are_cut_at_the_same_places_however_the_bytes_come(pieces: list[bytes]) -> None:
    some, all_at_once = LineSplitter(), LineSplitter()
    came = [piece for more in pieces for piece in some.add(more)]
    assert came == list(all_at_once.add(b"".join(pieces)))


@given(st.binary())
def test_any_bytes_are_read_or_left(text: bytes) -> None:
    for message in messages_of(text):
        assert message.kind in ("request", "notification", "answer", "other")


@given(VALUES, VALUES)
def test_an_id_of_any_type_finds_its_call(identifier: Any, arguments: Any) -> None:
    known = KnownServer("shop", "mcp_stdio")
    call = call_of(known, request(identifier, arguments=arguments))
    answer = message_of(json.dumps({"jsonrpc": "2.0", "id": identifier, "result": {"content": []}}, indent=1).encode())
    assert (answer.kind, answer.key) == ("answer", call.wire_id)
    assert json.loads(error_answer(call))["id"] == identifier or identifier != identifier


@given(st.lists(VALUES, max_size=6), st.randoms())
def test_answers_in_any_order_find_their_calls(arguments: list[Any], random: Any) -> None:
    known = KnownServer("shop", "mcp_stdio")
    calls = {call.wire_id: call for call in (call_of(known, request(n, arguments=a)) for n, a in enumerate(arguments))}
    answers = [message_of(text_of({"jsonrpc": "2.0", "id": n, "result": {"of": a}})) for n, a in enumerate(arguments)]
    random.shuffle(answers)
    for answer in answers:
        call = calls.pop(answer.key)
        known.answer(call, answer)
        assert call.answer == {"of": call.arguments}
    assert not calls


@pytest.mark.parametrize(("left", "right", "equal"), [(1, 1.0, True), (1, "1", False), (True, 1, False), (None, "null", False)])
def test_ids_are_compared_as_json(left: Any, right: Any, equal: bool) -> None:
    assert (key_of(left) == key_of(right)) is equal


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 10**6,
        b'{"a":' * 10**6,
        b"9" * 10**6,
        b'"' + b"\\" * 10**6,
        b"[" + b"{}," * 10**6 + b"{}]",
        b" " * 10**6,
        b"\xff" * 10**6,
    ],
)
def test_hostile_lines_are_left_in_little_time(text: bytes) -> None:
    began = process_time()
    assert messages_of(text) == ()
    assert process_time() - began < 0.5


def test_a_line_beyond_the_bound_is_not_read() -> None:
    assert messages_of(text_of({"jsonrpc": "2.0", "method": "a", "params": {"text": "x" * MAX_MESSAGE_BYTES}})) == ()


def test_half_a_surrogate_pair_is_read_as_a_character_that_files_can_hold() -> None:
    message = message_of(rb'{"id": 1, "method": "tools/call", "params": {"name": "\ud83d"}}')
    assert message.params["name"] == "\ufffd"


def test_a_batch_keeps_what_is_no_message() -> None:
    kinds = [
        message.kind for message in messages_of(b'[{"id": 1, "method": "ping"}, 5, {"id": 2, "result": {}}, {"method": "x"}]')
    ]
    assert kinds == ["request", "other", "answer", "notification"]


def test_tools_say_whether_they_read_and_changes_are_lines() -> None:
    known = KnownServer("shop", "mcp_stdio")
    assert known.learn(listing(), listed(TOOLS)) == []
    assert call_of(known, request(1, tool="look")).reads is True
    assert call_of(known, request(1, tool="pay")).reads is None
    assert known.learn(listing(), listed(TOOLS)) == []
    changed: list[dict[str, Any]] = [{"name": "pay", "description": "now"}, {"name": "refund"}]
    assert known.learn(listing(), listed(changed)) == [
        "its tool 'look' is gone",
        "its tool 'pay' has changed",
        "its tool 'refund' is new",
    ]


def test_tools_that_come_in_pages_are_no_change() -> None:
    known = KnownServer("shop", "mcp_stdio")
    for _ in range(2):
        assert known.learn(listing(), listed(TOOLS[:1], nextCursor="2")) == []
        assert known.learn(listing(cursor="2"), listed(TOOLS[1:])) == []


def test_a_polled_task_continues_its_call() -> None:
    known = KnownServer("shop", "mcp_stdio")
    call = call_of(known, request(1), number=4)
    known.answer(call, message_of(text_of({"id": 1, "result": {"task": {"taskId": "t1", "status": "working"}}})))
    polled = call_of(known, message_of(text_of({"id": 2, "method": "tasks/result", "params": {"taskId": "t1"}})), number=5)
    assert (polled.tool, polled.continues) == ("tasks/result", 4)


@pytest.mark.parametrize("state", ["sealed", None])
def test_input_that_a_server_asked_for_continues_its_call(state: str | None) -> None:
    known = KnownServer("shop", "mcp_stdio")
    asked: dict[str, Any] = {"resultType": "input_required", "inputRequests": {"a": {}}}
    if state:
        asked["requestState"] = state
    first = call_of(known, request(1, arguments={"amount": 1}), number=4)
    known.answer(first, message_of(text_of({"id": 1, "result": asked})))
    more: dict[str, Any] = {"inputResponses": {"a": {}}, **({"requestState": state} if state else {})}
    assert call_of(known, request(2, arguments={"amount": 1}, **more), number=5).continues == 4
    assert call_of(known, request(3, arguments={"amount": 1}), number=6).continues is None


@pytest.mark.parametrize("form", ["", IS_ERROR, JSON_RPC])
def test_an_error_has_the_form_that_the_fault_names(form: str) -> None:
    call = call_of(KnownServer("shop", "mcp_stdio"), request("a"))
    call.wire_form = form
    answer = json.loads(error_answer(call))
    assert answer["id"] == "a"
    assert ("error" in answer, answer.get("result", {}).get("isError", False)) == (form == JSON_RPC, form != JSON_RPC)


@pytest.mark.parametrize("after", ["stale", "empty", "garbled", "too_large"])
def test_a_changed_answer_is_a_valid_answer_to_the_same_request(after: AnswerAction) -> None:
    call = call_of(KnownServer("shop", "mcp_stdio"), request(2, tool="look"))
    call.replacement = result_of(1, "old")
    answer = json.loads(changed_answer(call, message_of(result_of(2, "Jürgen has 5")), after))
    text = answer["result"]["content"][0]["text"] if answer["result"]["content"] else ""
    assert answer["id"] == 2
    assert {
        "stale": text == "old",
        "empty": text == "" and answer["result"]["structuredContent"] == {"names": [], "of": {"name": ""}},
        "garbled": text.startswith("Jürgen")
        and "has 5" not in text
        and answer["result"]["structuredContent"]["of"] != {"name": "b"},
        "too_large": LARGE_TEXT_BYTES < len(text.encode()) < 2 * LARGE_TEXT_BYTES,
    }[after]


def test_an_answer_of_many_texts_gets_too_large_but_once() -> None:
    call = call_of(KnownServer("shop", "mcp_stdio"), request(2, tool="look"))
    many = {"content": [{"type": "text", "text": "x"}] * 1000, "structuredContent": ["y"] * 1000}
    answer = changed_answer(call, message_of(text_of({"id": 2, "result": many})), "too_large")
    assert LARGE_TEXT_BYTES < len(answer) < 3 * LARGE_TEXT_BYTES


def test_a_second_delivery_has_an_id_and_a_progress_token_of_its_own() -> None:
    call = call_of(
        KnownServer("shop", "mcp_stdio"), request(1, arguments={"amount": 5}, _meta={"progressToken": 1, "other": 2})
    )
    again = message_of(second_delivery(call, "again"))
    assert (again.body["id"], again.params["_meta"]) == ("again", {"progressToken": "again", "other": 2})
    assert again.params["arguments"] == {"amount": 5}


def message_of(text: bytes) -> RpcMessage:
    (message,) = messages_of(text)
    return message


def request(identifier: Any, tool: str = "pay", **params: Any) -> RpcMessage:
    return message_of(
        json.dumps({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": {"name": tool, **params}}).encode()
    )


def call_of(known: KnownServer, message: RpcMessage, number: int = 1) -> LiveCall:
    call = known.call_of(message, DoorContext(CallGate, lambda: number, lambda: 1))
    assert call
    return call


def listing(**params: Any) -> RpcMessage:
    return message_of(text_of({"id": 1, "method": "tools/list", "params": params}))


def listed(tools: list[dict[str, Any]], **more: Any) -> RpcMessage:
    return message_of(text_of({"id": 1, "result": {"tools": tools, **more}}))


def result_of(identifier: int, text: str) -> bytes:
    structured = {"names": ["a"], "of": {"name": "b"}}
    return text_of({"id": identifier, "result": {"content": [{"type": "text", "text": text}], "structuredContent": structured}})
