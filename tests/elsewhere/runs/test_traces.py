"""Each convention in which programs record an agent's calls is read, and what is not read is counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_traces import Json, attributes, chat, message, read, span, spans, value

from bench.common.errors import ResultsError
from bench.elsewhere.runs import ImportedCall, ImportedRun

USER = message("user", "Order 17 arrived broken.")
ASKED = message("assistant", {"type": "tool_call", "id": "a", "name": "get_order", "arguments": {"order": 17, "express": True}})
ANSWERED = message("tool", {"type": "tool_call_response", "id": "a", "response": "40 euros"})
DONE = message("assistant", "Refunded.")
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_order"}
EXPECTED = ImportedCall("get_order", '{"order": 17, "express": true}', "40 euros", reads=False)
Reading = Callable[[str], ImportedRun]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return lambda text: read(tmp_path, text)


def flat(name: str, messages: list[Json]) -> Json:
    """Return messages as attributes with numbers in their names."""
    attributes = dict[str, Any]()
    for number, item in enumerate(messages):
        attributes |= {f"{name}.{number}.{key}": inner for key, inner in item.items()}
    return attributes


CALL = {"order": 17, "express": True}
ASKING = {"id": "a", "name": "get_order", "arguments": json.dumps(CALL)}
TOOL_CALL = {"tool_call": {"id": "a", "function": {"name": "get_order", "arguments": json.dumps(CALL)}}}
OPENAI: list[Json] = [
    {"role": "user", "content": "Order 17 arrived broken."},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "get_order", "arguments": json.dumps(CALL)}}]},
    {"role": "tool", "tool_call_id": "a", "content": "40 euros"},
    {"role": "assistant", "content": "Refunded."},
]
INDEXED: list[Json] = [
    {"role": "user", "content": "Order 17 arrived broken."},
    {"role": "assistant", **{f"tool_calls.0.{key}": item for key, item in ASKING.items()}},
    {"role": "tool", "tool_call_id": "a", "content": "40 euros"},
    {"role": "assistant", "content": "Refunded."},
]
TEXT = {"type": "text", "text": "Order 17 arrived broken."}
FUNCTION = {"function.name": "get_order", "function.arguments": json.dumps(CALL), "id": "a"}
OPENINFERENCE = [
    {"message.role": "user", **{f"message.contents.0.message_content.{key}": item for key, item in TEXT.items()}},
    {"message.role": "assistant", **{f"message.tool_calls.0.tool_call.{key}": item for key, item in FUNCTION.items()}},
    {"message.role": "tool", "message.tool_call_id": "a", "message.content": "40 euros"},
    {"message.role": "assistant", "message.content": "Refunded."},
]
NESTED: list[Json] = [
    {"message": {"role": "user", "content": "Order 17 arrived broken."}},
    {"message": {"role": "assistant", "tool_calls": [TOOL_CALL]}},
    {"message": {"role": "tool", "tool_call_id": "a", "content": "40 euros"}},
    {"message": {"role": "assistant", "content": "Refunded."}},
]
GEMINI: list[Json] = [
    {"role": "user", "parts": [{"text": "Order 17 arrived broken."}]},
    {"role": "model", "parts": [{"function_call": {"id": "a", "name": "get_order", "args": CALL}}]},
    {"role": "tool", "parts": [{"function_response": {"id": "a", "response": "40 euros"}}]},
    {"role": "model", "parts": [{"text": "Refunded."}]},
]
ANTHROPIC: list[Json] = [
    {"role": "user", "content": [{"type": "text", "text": "Order 17 arrived broken."}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "get_order", "input": CALL}]},
    {
        "role": "tool",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "40 euros"}]}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Refunded."}]},
]
PARTS = [USER, ASKED, ANSWERED, DONE]


def as_json(kind: Json, prompts: str, replies: str, messages: list[Json]) -> tuple[Json, Json]:
    """Return the two calls of a run: the first asks for the tool, the second ends."""
    user, asked, answered, done = messages
    return (
        {**kind, prompts: json.dumps([user]), replies: json.dumps([asked])},
        {**kind, prompts: json.dumps([user, asked, answered]), replies: json.dumps([done])},
    )


def as_structures(kind: Json, prompts: str, replies: str, messages: list[Json]) -> tuple[Json, Json]:
    user, asked, answered, done = messages
    return {**kind, prompts: [user], replies: [asked]}, {**kind, prompts: [user, asked, answered], replies: [done]}


def as_names(kind: Json, prompts: str, replies: str, messages: list[Json]) -> tuple[Json, Json]:
    user, asked, answered, done = messages
    return (
        {**kind, **flat(prompts, [user]), **flat(replies, [asked])},
        {**kind, **flat(prompts, [user, asked, answered]), **flat(replies, [done])},
    )


ADK = "gcp.vertex.agent.llm_"
CHAT = {"gen_ai.operation.name": "chat"}
GEN_AI = ("gen_ai.input.messages", "gen_ai.output.messages")
CONVENTIONS = {
    "the semantic conventions": as_json(CHAT, *GEN_AI, PARTS),
    "the semantic conventions, as structures": as_structures(CHAT, *GEN_AI, PARTS),
    "the semantic conventions, without an operation": as_json({}, *GEN_AI, PARTS),
    "a role and content": as_json(CHAT, *GEN_AI, OPENAI),
    "Gemini's parts": as_json(CHAT, *GEN_AI, GEMINI),
    "Anthropic's parts": as_json(CHAT, *GEN_AI, ANTHROPIC),
    "earlier attributes": as_json(CHAT, "gen_ai.prompt", "gen_ai.completion", OPENAI),
    "OpenLLMetry": as_names({"llm.request.type": "chat"}, "gen_ai.prompt", "gen_ai.completion", INDEXED),
    "OpenLLMetry, at first": as_names({"llm.request.type": "chat"}, "llm.prompts", "llm.completions", INDEXED),
    "OpenInference": as_names({"openinference.span.kind": "LLM"}, "llm.input_messages", "llm.output_messages", OPENINFERENCE),
    "OpenInference, nested": as_structures(
        {"openinference.span.kind": "LLM"}, "llm.input_messages", "llm.output_messages", NESTED
    ),
    "the values of OpenInference alone": as_json({"openinference.span.kind": "LLM"}, "input.value", "output.value", OPENAI),
    "Langfuse": as_json(
        {"langfuse.observation.type": "generation"}, "langfuse.observation.input", "langfuse.observation.output", OPENAI
    ),
    "MLflow": tuple(
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": json.dumps({"messages": OPENAI[:until], "model": "m"}),
            "mlflow.spanOutputs": json.dumps({"id": "x", "choices": [{"index": 0, "message": OPENAI[until]}]}),
        }
        for until in (1, 3)
    ),
    "Braintrust": tuple(
        {
            "braintrust.span_attributes": json.dumps({"name": "chat", "type": "llm"}),
            "braintrust.input_json": json.dumps(OPENAI[:until]),
            "braintrust.output_json": json.dumps([{"index": 0, "message": OPENAI[until], "finish_reason": "stop"}]),
        }
        for until in (1, 3)
    ),
    "Google's ADK": (
        {f"{ADK}request": json.dumps({"contents": GEMINI[:1]}), f"{ADK}response": json.dumps({"content": GEMINI[1]})},
        {f"{ADK}request": json.dumps({"contents": GEMINI[:3]}), f"{ADK}response": json.dumps({"content": GEMINI[3]})},
    ),
    "the AI SDK": (
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": json.dumps(ANTHROPIC[:1]),
            "ai.response.toolCalls": json.dumps([{"toolCallId": "a", "toolName": "get_order", "input": CALL}]),
            "ai.response.finishReason": "tool-calls",
        },
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.prompt.messages": json.dumps(ANTHROPIC[:3]),
            "ai.response.text": "Refunded.",
            "ai.response.finishReason": "stop",
        },
    ),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("with_tool", [False, True])
def test_each_convention_is_the_same_two_steps(convention: str, with_tool: bool, reading: Reading) -> None:
    first, last = (span(start, of) for start, of in zip((1, 3), CONVENTIONS[convention], strict=True))
    run = reading(spans(first, *([span(2, {**TOOL, "gen_ai.tool.call.result": "40 euros"})] if with_tool else []), last))
    assert [step.calls for step in run.steps] == [(EXPECTED,), ()]
    assert run.steps[1].reply == "Refunded."
    assert run.prompt(2) == (f"[user]\nOrder 17 arrived broken.\n\n[assistant]\n{run.steps[0].reply}\n\n[tool]\n40 euros")
    assert not run.left_out


CHOICE = {"index": 0, "finish_reason": "stop", "message": json.dumps({"content": "Lost."})}
EVENTS = [
    {"name": "gen_ai.system.message", "attributes": attributes({"content": "Be brief."})},
    {"name": "gen_ai.user.message", "attributes": attributes({"content": "Order 17?"})},
    {"name": "gen_ai.choice", "attributes": attributes(CHOICE)},
]
DETAILS = {
    "gen_ai.input.messages": [message("system", "Be brief."), message("user", "Order 17?")],
    "gen_ai.output.messages": [message("assistant", "Lost.")],
}


def log(name: str, body: Any, in_attribute: bool = False) -> Json:
    named = {"attributes": attributes({"event.name": name})} if in_attribute else {"eventName": name}
    return {"traceId": "a1", "spanId": "b2", **named, "body": value(body)}


LOGS = [
    log("gen_ai.system.message", {"content": "Be brief."}, in_attribute=True),
    log("gen_ai.user.message", {"content": "Order 17?"}),
    log("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Lost."}}),
]
PYDANTIC_AI = [
    {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
    {"event.name": "gen_ai.user.message", "role": "user", "content": "Order 17?"},
    {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Lost."}},
]


def lines(*values: Json) -> str:
    return "\n".join(map(json.dumps, values))


BESIDE = {
    "events": spans(span(1, CHAT, events=EVENTS)),
    "an event with the details": spans(
        span(1, CHAT, events=[{"name": "gen_ai.client.inference.operation.details", "attributes": attributes(DETAILS)}])
    ),
    "events in an attribute": spans(span(1, {**CHAT, "events": json.dumps(PYDANTIC_AI)})),
    "log records, on a line of their own": lines(
        json.loads(spans(span(1, CHAT, spanId="b2"))), {"resourceLogs": [{"scopeLogs": [{"logRecords": LOGS}]}]}
    ),
}


@pytest.mark.parametrize("where", BESIDE)
def test_messages_beside_a_span_are_read(where: str, reading: Reading) -> None:
    run = reading(BESIDE[where])
    assert [(step.shown, step.reply) for step in run.steps] == [("[system]\nBe brief.\n\n[user]\nOrder 17?", "Lost.")]
    assert not run.left_out


def test_a_log_record_of_a_span_that_is_not_there_is_counted(reading: Reading) -> None:
    run = reading(lines(json.loads(spans(chat(1, [USER], [DONE]))), {"resourceLogs": [{"scopeLogs": [{"logRecords": LOGS}]}]}))
    assert run.left_out == {"log record of a span that the file does not hold": 3}


def test_instructions_and_tools_beside_the_messages_are_part_of_the_prompt(reading: Reading) -> None:
    beside = {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be polite."}]),
        "gen_ai.tool.definitions": '[{"name": "f"}]',
    }
    run = reading(spans(chat(1, [USER], [ASKED], beside), chat(2, PARTS[:3], [DONE], beside)))
    assert run.steps[0].shown == '[system]\nBe polite.\n\n[tools]\n[{"name": "f"}]\n\n[user]\nOrder 17 arrived broken.'
    assert run.steps[1].shown == "[tool]\n40 euros" and run.prompt(2).count("Be polite.") == 1
    twice = chat(1, [message("system", "Be polite."), USER], [DONE], {"gen_ai.system_instructions": '"Be polite."'})
    assert reading(spans(twice)).prompt(1).count("Be polite.") == 1


@pytest.mark.parametrize("key", ["response", "result"])
@pytest.mark.parametrize("result", [{"price": 40, "coupon": None}, [1, True], 40, "40"])
def test_a_result_of_any_kind_is_json(key: str, result: Any, reading: Reading) -> None:
    answered = message("tool", {"type": "tool_call_response", "id": "a", key: result})
    run = reading(spans(chat(1, [USER], [ASKED]), chat(2, [USER, ASKED, answered], [DONE])))
    text = result if isinstance(result, str) else json.dumps(result)
    assert run.steps[1].shown == f"[tool]\n{text}" and run.steps[0].calls[0].result == text


MARKED: dict[str, tuple[Json, str]] = {
    "uri": ({"type": "uri", "modality": "image", "uri": "https://a.example/b.png"}, "[uri: https://a.example/b.png]"),
    "blob": ({"type": "blob", "modality": "image", "content": "AAAA" * 1000}, "[blob]"),
    "file": ({"type": "file", "modality": "document", "file_id": "f1"}, "[file: f1]"),
    "image_url": ({"type": "image_url", "image_url": {"url": "https://a.example"}}, "[image_url: https://a.example]"),
}


@pytest.mark.parametrize("kind", MARKED)
def test_a_part_that_is_no_text_is_a_mark_and_counted(kind: str, reading: Reading) -> None:
    part, mark = MARKED[kind]
    run = reading(spans(chat(1, [message("user", "Look.", part)], [DONE])))
    assert run.steps[0].shown == f"[user]\nLook.\n{mark}"
    assert run.left_out == {f"part of type '{kind}', of which the prompt has a mark alone": 1}


def test_a_part_of_an_unknown_type_is_its_json_and_counted(reading: Reading) -> None:
    run = reading(spans(chat(1, [message("user", {"type": "poll", "choices": ["a"]})], [DONE])))
    assert run.steps[0].shown == '[user]\n{"type": "poll", "choices": ["a"]}'
    assert run.left_out == {"part of type 'poll', read as its JSON": 1}


def test_reasoning_is_no_reply_and_a_server_tool_is_part_of_it(reading: Reading) -> None:
    server = {"type": "server_tool_call", "name": "search", "server_tool_call": {"query": "q"}}
    response = {"type": "server_tool_call_response", "server_tool_call_response": {"hits": 0}}
    thought = {"type": "reasoning", "content": "SECRET"}
    run = reading(spans(chat(1, [USER], [message("assistant", thought, server, response, "Nothing.")])))
    assert run.steps[0].reply == 'search({"query": "q"})\n{"hits": 0}\nNothing.' and run.steps[0].calls == ()
    assert run.left_out == {"part of reasoning, which is no part of a reply": 1}


def test_of_several_choices_the_first_is_the_reply(reading: Reading) -> None:
    choices = [message("assistant", text, finish_reason="stop") for text in ("A.", "B.", "C.")]
    run = reading(spans(chat(1, [USER], choices)))
    assert (run.steps[0].reply, run.left_out) == ("A.", {"further choice of a reply": 2})
    parts = reading(spans(chat(1, [USER], [message("assistant", "A."), message("assistant", "B.", finish_reason="stop")])))
    assert (parts.steps[0].reply, parts.left_out) == ("A.\nB.", {})


def test_two_recorders_of_one_call_are_one_step(reading: Reading) -> None:
    """The framework's span stands around the client's, with a span of something else between them."""
    outer = chat(1, [USER], [DONE], spanId="1")
    between, inner = span(2, {}, spanId="2", parentSpanId="1"), chat(3, [USER], [DONE], spanId="3", parentSpanId="2")
    run = reading(spans(inner, between, outer))
    assert len(run.steps) == 1
    assert run.left_out == {"span around another span of the same call": 1, "span of something else": 1}


def test_the_calls_of_a_subagent_in_a_tool_are_steps_of_their_own(reading: Reading) -> None:
    outer, last = chat(1, [USER], [ASKED], spanId="1"), chat(9, PARTS[:3], [DONE])
    tool = span(2, {**TOOL, "gen_ai.tool.call.result": "40 euros"}, spanId="2", parentSpanId="1")
    inner = chat(3, [message("user", "Look order 17 up.")], [message("assistant", "40 euros")], spanId="3", parentSpanId="2")
    run = reading(spans(outer, tool, inner, last))
    assert [len(step.calls) for step in run.steps] == [1, 0, 0]
    assert "Look order 17 up." not in run.prompt(3) and run.steps[2].before == ((0, 2),)


def test_a_span_that_stands_twice_is_read_once(reading: Reading) -> None:
    once = chat(1, [USER], [DONE], spanId="1")
    run = reading(f"{spans(once)}\n{spans(once)}")
    assert (len(run.steps), run.left_out) == (1, {"span that stands twice in the file": 1})


def test_ids_of_tool_calls_that_are_used_again_keep_results_apart(reading: Reading) -> None:
    again = message("tool", {"type": "tool_call_response", "id": "a", "response": "50 euros"})
    run = reading(spans(chat(1, [USER], [ASKED]), chat(2, PARTS[:3], [ASKED]), chat(3, [*PARTS[:3], ASKED, again], [DONE])))
    assert [call.result for step in run.steps for call in step.calls] == ["40 euros", "50 euros"]


def test_a_message_that_is_said_twice_is_shown_twice(reading: Reading) -> None:
    go, done = message("user", "Go on."), message("assistant", "Done.")
    run = reading(spans(chat(1, [go], [done]), chat(2, [go, done, go], [done]), chat(3, [go, done, go, done, go], [done])))
    assert [run.prompt(number).count("Go on.") for number in (1, 2, 3)] == [1, 2, 3]
    assert [step.shown for step in run.steps] == ["[user]\nGo on."] * 3


def test_a_prompt_that_drops_what_was_said_is_not_shown_it(reading: Reading) -> None:
    system, first, second = message("system", "Be polite."), message("user", "One."), message("user", "Two.")
    run = reading(spans(chat(1, [system, first], [DONE]), chat(2, [system, second], [DONE])))
    assert run.prompt(2) == "[system]\nBe polite.\n\n[user]\nTwo."


@pytest.mark.parametrize(
    "messages", ["hello?", '[{"role": "user", "par', "5", '{"parts": 5}', '["hi", 7, null, {}]', '[{"parts": {"a": 1}}]']
)
def test_messages_in_no_known_form_are_their_text(messages: str, reading: Reading) -> None:
    run = reading(spans(span(1, {**CHAT, "gen_ai.input.messages": messages, "gen_ai.output.messages": "Fine."})))
    assert run.steps[0].reply == "Fine."
    assert all(word in run.steps[0].shown for word in messages.split('"')[1::2] if word not in ("role", "user", "parts", "a"))
    assert run.left_out or messages in ("hello?",) or run.steps[0].shown == f"[user]\n{messages}"


def test_calls_without_words_are_counted_where_nothing_is_left(reading: Reading) -> None:
    with pytest.raises(
        ResultsError,
        match=r"keep the messages \(found: 2 × call of a model without a recorded reply; 1 × span 'invoke_agent'\)",
    ):
        reading(
            spans(
                span(1, CHAT), span(2, CHAT), span(3, {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": "x"})
            )
        )


def test_long_texts_in_attributes_that_nobody_knows_are_told_by_their_names(reading: Reading) -> None:
    text = "Order 17 arrived broken, and I want my 40 euros back."
    with pytest.raises(ResultsError, match=r"long texts stand in my\.prompt, my\.answer, of which none is read") as refused:
        reading(spans(span(1, {"my.prompt": text, "my.answer": text, "my.id": "17"}), span(2, {"my.prompt": text})))
    assert "my.id" not in str(refused.value) and "\n" not in str(refused.value)


def test_a_tool_before_the_first_call_belongs_to_it(reading: Reading) -> None:
    run = reading(
        spans(
            span(1, {"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": "{}", "output.value": "x"}),
            chat(2, [USER], [DONE]),
        )
    )
    assert run.steps[0].calls == (ImportedCall("look", "{}", "x", reads=False),)


@pytest.mark.parametrize(
    "failure",
    [
        {"status": {"code": 2, "message": "timeout after 30 s"}},
        {"status": {"code": 2}, "events": [{"name": "exception", "attributes": {"exception.message": "timeout after 30 s"}}]},
        {
            "status": {"code": "STATUS_CODE_ERROR", "message": "gone"},
            "attributes": {"gen_ai.tool.call.result": "timeout after 30 s"},
        },
    ],
)
def test_what_a_span_says_of_its_error_is_the_answer_of_a_call_without_another(failure: Json, reading: Reading) -> None:
    fields = {**TOOL, "gen_ai.tool.call.arguments": "{}", **failure.pop("attributes", {})}
    run = reading(spans(chat(1, [USER], [message("assistant", "I look.")]), span(2, fields, **failure)))
    assert run.steps[0].calls == (ImportedCall("get_order", "{}", "timeout after 30 s", reads=False),)


def test_a_call_that_did_not_fail_and_has_no_answer_gets_none_of_its_status(reading: Reading) -> None:
    tool = span(2, {**TOOL, "gen_ai.tool.call.arguments": "{}"}, status={"code": 1, "message": "fine"})
    assert reading(spans(chat(1, [USER], [DONE]), tool)).steps[0].calls[0].result == ""


@pytest.mark.parametrize("parents", [("1", "0"), ("2", "1")])
def test_spans_that_stand_in_each_other_are_still_a_step(parents: tuple[str, str], reading: Reading) -> None:
    given = [chat(start, [USER], [DONE], spanId=str(start), parentSpanId=parent) for start, parent in enumerate(parents, 1)]
    assert 1 <= len(reading(spans(*given)).steps) <= 2
