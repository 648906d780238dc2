"""A body read: what is needed in whatever form it comes, and what is no answer never taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.common.errors import (
    BadAnswer,
    CallFailed,
    CutOff,
    NoCompletion,
    NoText,
    RateLimited,
    ServerFailed,
    UnknownFinish,
    UsedUp,
)
from bench.record.tool_calls import ToolCall
from bench.run.models.base import Reply, Usage
from bench.run.openai.replies import reply_in_error, reply_of

KEY = "sk-very-secret-0123456789"
USAGE = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
COUNTED = Usage(100, 50)
UPSTREAM = {"code": 502, "message": "upstream failed"}
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def body(message: object = None, finish: object = "stop", usage: object = USAGE, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "said"} if message is None else message
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage, **more}


def message_of(content: object, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def with_error(error: object, content: object = "", finish: object = "stop", **more: Any) -> dict[str, Any]:
    made = body(message_of(content), finish, **more)
    made["choices"][0]["error"] = error
    return made


def read(document: object) -> Reply:
    return reply_of(document if isinstance(document, str) else json.dumps(document), KEY)


def failure(document: object) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        read(document)
    assert caught.value.detail and "\n" not in caught.value.detail
    return caught.value


# -- an event of the endpoint is no answer of the model ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (with_error(UPSTREAM), ServerFailed),
        (with_error(UPSTREAM, "half an ans", finish="error"), ServerFailed),
        (with_error("overloaded", "a whole answer"), ServerFailed),
        (with_error({"code": 400, "message": "no such field"}), BadAnswer),
        (with_error({"code": "insufficient_quota", "message": "empty"}), UsedUp),
        (body(message_of(""), None, error={"code": 429, "message": "rate limited upstream"}), RateLimited),
        (body(message_of("all of it"), error={"code": "RESOURCE_EXHAUSTED", "message": "later"}), RateLimited),
        (body(message_of(""), error=[{"message": "in a list"}]), ServerFailed),
        ({**body(message_of("")), "error": True, "message": "beside"}, ServerFailed),
        (body(message_of(None), base_resp={"status_code": 1002, "status_msg": "rpm"}), RateLimited),
        ({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, UsedUp),
        ({"choices": None, "base_resp": {"status_code": 1000, "status_msg": "unknown error"}}, ServerFailed),
        ({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}, BadAnswer),
        ([{"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}], ServerFailed),
        ({"code": 50505, "message": "Model service overloaded", "data": None}, ServerFailed),
        (body(message_of(""), "error"), ServerFailed),
        (body(message_of(""), "insufficient_system_resource"), ServerFailed),
        (body(message_of("so f"), "abort"), ServerFailed),
        (body(message_of("so f"), None, error={"message": "cut", "code": None}), ServerFailed),
        (body(message_of("whole"), "gone_fishing"), UnknownFinish),
        (body(message_of("whole"), "\x1b[31m" + "z" * 10**6), UnknownFinish),
    ],
)
def test_what_the_endpoint_says_went_wrong_is_no_answer(document: object, kind: type[CallFailed]) -> None:
    assert type(failure(document)) is kind


@pytest.mark.parametrize("error", [None, False, {}, [], "", {"code": 0, "message": ""}, {"code": None}, {"message": "Success"}])
def test_an_error_that_says_nothing_is_none(error: object) -> None:
    assert read(body(error=error)).text == "said"
    assert read(with_error(error, "said")).text == "said"
    assert read(body(base_resp={"status_code": 0, "status_msg": "success"})).text == "said"


def test_what_arrived_before_a_failure_is_kept_and_counted() -> None:
    failed = failure(with_error(UPSTREAM, "half an ans", finish="error"))
    assert (failed.partial, failed.counted, failed.paid) == ("half an ans", (100, 50), True)
    failed = failure(with_error(UPSTREAM, "half an ans", usage=None))
    assert (failed.partial, failed.counted, failed.paid) == ("half an ans", None, True)
    failed = failure(body(message_of("", tool_calls=[CALL]), "network_error", None))
    assert '"look"' in failed.partial and failed.paid
    assert not failure(with_error(UPSTREAM, usage=None)).paid, "nothing came, and nobody counted"


def test_an_unknown_word_is_told_with_what_it_stood_on_and_without_the_key() -> None:
    failed = failure(body(message_of("whole"), f"ended_by_{KEY}"))
    assert failed.detail == 'finish_reason "ended_by_***" is not known'
    assert (failed.kind, failed.paid, failed.passing, failed.partial) == ("unknown_finish", True, True, "whole")


def test_a_gateways_error_tells_who_is_behind_it() -> None:
    inner = json.dumps({"error": {"message": "suspended: insufficient balance", "type": "exceeded_current_quota_error"}})
    error = {"code": 429, "message": "Provider returned error", "metadata": {"raw": inner, "provider_name": "Moonshot"}}
    failed = failure({"error": error})
    assert type(failed) is UsedUp
    assert failed.detail.endswith("Provider returned error: suspended: insufficient balance")


def test_an_error_within_the_text_of_an_error_is_told_by_its_own_words() -> None:
    inner = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}
    failed = failure({"error": {"message": json.dumps(inner), "code": 429, "status": "Too Many Requests"}})
    assert (type(failed), failed.detail) == (RateLimited, "HTTP 200, and an error in it: quota")


@pytest.mark.parametrize(
    "document",
    [
        body(message_of(None), "content_filter"),
        body(message_of(None), "SAFETY"),
        body({}, "content_filter: PROHIBITED_CONTENT"),
        body(message_of(None), "FinishReason.RECITATION"),
        {"choices": [{"index": 0, "message": None, "finish_reason": "PROHIBITED_CONTENT"}], "usage": USAGE},
        body(message_of(""), "sensitive"),
        body(message_of(""), "refusal"),
        {"choices": [{"native_finish_reason": "SAFETY", "finish_reason": None, "message": {}}], "usage": USAGE},
        with_error({"code": "content_filter", "message": "filtered"}),
        {"error": {"code": "1301", "message": "sensitive"}, "usage": USAGE},
        {"choices": None, "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}, "usage": USAGE},
    ],
)
def test_a_refusal_in_any_words_is_one(document: object) -> None:
    assert read(document) == Reply("", "content_filter", COUNTED)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "filtered", "param": "prompt", "code": "content_filter", "status": 400},
        {"message": "policy", "code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"code": "data_inspection_failed", "message": "may contain inappropriate content"},
        "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        {"message": "litellm.ContentPolicyViolationError: no", "code": "400"},
        {"message": 'x requires moderation on y. Your input was flagged for "z".', "code": 403},
    ],
)
def test_an_error_that_is_a_filters_refusal_is_a_refusal(error: object) -> None:
    assert reply_in_error(json.dumps({"error": error})) == Reply("", "content_filter")


def test_what_the_model_wrote_and_its_server_could_not_use_is_its_reply() -> None:
    error = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": f"<look> {KEY}"}
    assert reply_in_error(json.dumps({"error": error}), KEY) == Reply("<look> ***")
    assert read(body(message_of(None), "MALFORMED_FUNCTION_CALL")) == Reply("", "stop", COUNTED)


@pytest.mark.parametrize("text", ["", "no JSON", '{"error": {"message": "no", "code": 400}}', '{"detail": "no"}', "[]"])
def test_any_other_error_is_none_of_the_models_replies(text: str) -> None:
    assert reply_in_error(text) is None


@pytest.mark.parametrize("content", ["", None, [], {}, [{"type": "thinking", "thinking": "hm"}]])
@pytest.mark.parametrize("finish", ["stop", None, "null", "end_turn", 7])
def test_a_reply_without_a_text_is_empty_however_that_is_said(content: object, finish: object) -> None:
    assert read(body(message_of(content, reasoning_content="hm"), finish)).text == ""


@pytest.mark.parametrize(
    ("finish", "read_as"),
    [
        ("end", "stop"),
        ("eos", "stop"),
        ("STOP", "stop"),
        ("tool_calls", "stop"),
        ("MAX_TOKENS", "length"),
        ("repetition", "length"),
        ({}, "stop"),
    ],
)
def test_how_a_reply_ended_is_told_as_openai_tells_it(finish: object, read_as: str) -> None:
    assert read(body(finish=finish)) == Reply("said", read_as, COUNTED)


# -- what can be read is read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "said"}], "said"),
        ([{"type": "text", "text": "sa"}, {"type": "text", "text": "id"}], "said"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "said"}], "said"),
        ([{"text": "hm", "thought": True}, {"text": "said"}], "said"),
        ([{"type": "text", "text": {"value": "said"}}], "said"),
        (["sa", {"type": "text", "text": "id"}, {"type": "new_kind"}, 3, None], "said"),
        ({"type": "text", "text": "said"}, "said"),
        ({"parts": [{"text": "said"}]}, "said"),
        ({"text": "said"}, "said"),
        ({"answer": "é", "type": "bug"}, '{"answer": "é", "type": "bug"}'),
        ([{"answer": 1}], '[{"answer": 1}]'),
        (5, "5"),
        ("half \ud83d a pair", "half \ufffd a pair"),
        (f"it is {KEY}", "it is ***"),
    ],
)
def test_the_text_of_a_content_in_any_form_is_read(content: object, text: str) -> None:
    assert read(body(message_of(content))).text == text


def test_a_part_that_refuses_is_a_refusal() -> None:
    assert read(body(message_of([{"type": "refusal", "refusal": "I can't."}]))) == Reply("I can't.", "content_filter", COUNTED)


@pytest.mark.parametrize(
    ("call", "read_as"),
    [
        ({"id": "a", "function": {"name": "f", "arguments": {"x": "é"}}}, ToolCall("a", "f", '{"x": "é"}')),
        ({"id": "a", "function": {"name": "f", "arguments": [1]}}, ToolCall("a", "f", "[1]")),
        ({"id": "a", "function": {"name": "f", "arguments": None}}, ToolCall("a", "f", "{}")),
        ({"id": "a", "function": {"name": "f"}}, ToolCall("a", "f", "{}")),
        ({"id": "a", "function": {"name": "f", "arguments": ""}}, ToolCall("a", "f", "")),
        ({"id": "a", "function": {"name": None, "arguments": "{}"}}, ToolCall("a", "", "{}")),
        ({"id": 7, "function": {"name": "f", "arguments": "{}"}}, ToolCall("7", "f", "{}")),
        ({"id": "", "function": {"name": "f", "arguments": "{}"}}, ToolCall("call_1", "f", "{}")),
        ({"name": "f", "arguments": {}}, ToolCall("call_1", "f", "{}")),
        ({"id": "a", "function": {"name": "f", "arguments": '{"x":"\ud83d"}'}}, ToolCall("a", "f", '{"x":"\ufffd"}')),
    ],
)
def test_a_tool_call_is_read_whatever_its_fields_hold(call: object, read_as: ToolCall) -> None:
    for calls in ([call], [call, None, 3, {"function": 4}], call):
        assert read(body(message_of("said", tool_calls=calls), "tool_calls")) == Reply(
            "said", "tool_calls", COUNTED, tool_calls=(read_as,)
        )


def test_a_reply_ended_for_its_tool_calls_where_it_has_some() -> None:
    for word, finish in (("tool_use", "tool_calls"), ("TOOL_CALL", "tool_calls"), ("stop", "stop"), ("length", "length")):
        assert read(body(message_of(None, tool_calls=[CALL]), word)).finish == finish


def test_the_sole_call_of_the_older_api_is_a_tool_call() -> None:
    reply = read(body(message_of(None, function_call={"name": "f", "arguments": "{}"}), "function_call"))
    assert (reply.finish, reply.tool_calls) == ("tool_calls", (ToolCall("call_1", "f", "{}"),))


@pytest.mark.parametrize(
    "document",
    [
        body(message_of("said", refusal=False, name=None, audio=None, function_call=None, tool_calls=None)),
        body() | {"id": None, "created": "now", "model": 3, "usage": USAGE, "system_fingerprint": ["\ud83d"]},
        body() | {"choices": [{"index": 1, "message": message_of("other")}, *body()["choices"]]},
        body() | {"choices": [*body()["choices"], {"index": 1, "message": {"content": {"odd": [1]}, "tool_calls": 3}}]},
        body() | {"choices": [*body()["choices"], None, 3, "x", {}, [[]]]},
        body() | {"choices": [None, {"message": message_of("said"), "finish_reason": 1, "logprobs": [None]}]},
        body() | {"choices": body()["choices"][0]},
        body() | {"choices": [{"index": 0, "text": "said", "finish_reason": "stop"}]},
        body() | {"choices": [{"index": 0, "delta": {"content": "said"}, "finish_reason": "stop"}]},
        {"data": body(), "success": True},
        "\ufeff" + json.dumps(body()),
        "\n\n  " + json.dumps(body()) + "\n\ndata: [DONE]\n\n",
        json.dumps(body(message_of("said\nX"))).replace("\\nX", "").replace('"usage"', '"note": "a\n\tb", "usage"'),
        json.dumps(body()).replace('"usage"', '"cost": NaN, "least": -Infinity, "long": ' + "9" * 5000 + ', "usage"'),
        [body()],
    ],
)
def test_a_field_that_nobody_needs_loses_no_completion(document: object) -> None:
    assert read(document) == Reply("said", "stop", COUNTED)


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ('data: {"choices": [{"delta": {"content": "x"}}]}\n\ndata: [DONE]\n\n', CutOff),
        ('data: {"choices": oh}\n\n', NoText),
        (json.dumps(body())[:-1] + ", x: 1}", NoText),
        ('{"choices": [], "deep": ' + "[" * 5000 + "]" * 5000 + "}", NoText),
        (body() | {"choices": []}, NoText),
        ({"choices": [{}]}, NoText),
        (json.dumps(body())[:-20], CutOff),
        (json.dumps(body(message_of("é\\u00e9")))[:70], CutOff),
    ],
)
def test_a_completion_that_cannot_be_used_is_paid_all_the_same(document: object, kind: type[CallFailed]) -> None:
    failed = failure(document)
    assert type(failed) is kind and failed.paid


def test_a_completion_without_a_choice_counts_as_the_provider_counted() -> None:
    assert failure(body() | {"choices": []}).counted == (100, 50)


@pytest.mark.parametrize("document", [{}, {"choices": []}, {"choices": None}, "<html>", "pong", [], 3, {"message": "welcome"}])
def test_what_is_no_completion_at_all_is_unpaid(document: object) -> None:
    failed = failure(document)
    assert type(failed) is NoCompletion and not failed.paid


# -- what a provider wants back ----------------------------------------------------------------------------------------


def test_what_stands_beside_a_text_and_beside_a_call_is_kept() -> None:
    signed = {**CALL, "index": 0, "extra_content": {"google": {"thought_signature": "c2ln"}}, "note": None}
    signed["function"] = {"name": "look", "arguments": "{}", "parsed_arguments": {"x": 1}}
    message = message_of(
        "", reasoning_content="first", reasoning_details=[{"b": 1, "a": "\ud83d"}], refusal=None, annotations=[]
    )
    reply = read(body({**message, "tool_calls": [signed]}, "tool_calls"))
    assert json.loads(reply.extra) == {"reasoning_content": "first", "reasoning_details": [{"b": 1, "a": "\ufffd"}]}
    [call] = reply.tool_calls
    assert json.loads(call.extra) == {
        "extra_content": {"google": {"thought_signature": "c2ln"}},
        "function": {"parsed_arguments": {"x": 1}},
    }
    assert call.plain["function"]["parsed_arguments"] == {"x": 1} and "note" not in call.plain


def test_an_empty_thought_is_told_from_none_and_nothing_else_that_is_empty_is_kept() -> None:
    assert read(body(message_of("x", reasoning_content=""))).extra == '{"reasoning_content": ""}'
    empty: dict[str, Any] = {
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": [],
        "parsed": None,
    }
    assert read(body(message_of("x", **empty))).extra == ""


def test_the_key_is_blotted_out_of_what_goes_back_as_well() -> None:
    odd = {"reasoning": f'say "{KEY}"', KEY: [{"deep": KEY}]}
    call = {**CALL, "extra_content": {"key": KEY}, "id": KEY}
    reply = read(body(message_of("x", **odd, tool_calls=[call])))
    assert KEY not in str(reply) and json.loads(reply.extra)["reasoning"] == 'say "***"'


# -- usage -------------------------------------------------------------------------------------------------------------


def thinking(tokens_in: int, tokens_out: int, total: int, thought: int) -> dict[str, Any]:
    counted = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": total}
    return {**counted, "completion_tokens_details": {"reasoning_tokens": thought}}


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": 0, "completion_tokens": 5}, None),
        ({"prompt_tokens": 12, "completion_tokens": 0}, None),
        ({"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81}, Usage(21, 60)),
        ({"prompt_tokens": -5, "completion_tokens": -1}, None),
        ({"prompt_tokens": 1.5, "completion_tokens": 3}, None),
        ({"prompt_tokens": "12", "completion_tokens": 3.0}, Usage(12, 3)),
        ({"input_tokens": 12, "output_tokens": 3}, Usage(12, 3)),
        ({"completion_tokens": 25}, None),
        (thinking(32, 9, 135, 94), Usage(32, 103)),
        (thinking(32, 103, 135, 94), Usage(32, 103)),
        (thinking(32, 9, 1041, 94), Usage(32, 9)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 80}, Usage(100, 5, cached=80)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 80}, Usage(100, 5, cached=80)),
        ([USAGE], None),
        ("many", None),
    ],
)
def test_a_zero_where_tokens_were_is_no_count(usage: object, counted: Usage | None) -> None:
    assert read(body(usage=usage)).usage == counted


def test_an_empty_reply_may_have_no_tokens() -> None:
    assert read(body(message_of(""), usage={"prompt_tokens": 12, "completion_tokens": 0})).usage == Usage(12, 0)
