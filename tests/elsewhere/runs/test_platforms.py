"""Traces as platforms export them, and sessions of coding agents: the same incident is read from each form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from written_traces import read, written

from bench.elsewhere.runs import read_log
from bench.elsewhere.runs.steps import OpenCall, StepCost
from bench.elsewhere.telling import calls_of, repeated_pairs, run_report_lines

REFUND = {"order": 17, "amount": 40}
ARGUMENTS = json.dumps(REFUND)
CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": ARGUMENTS}}
USER = {"role": "user", "content": "Refund order 17."}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL], "function_call": None, "refusal": None}
"""As the SDKs dump a message: what it has not is null."""


def at(seconds: int) -> str:
    return f"2026-11-29T09:00:{seconds:02}.000Z"


def agents_sdk() -> str:
    """Lines of the OpenAI Agents SDK's export, whose spans end before those around them."""

    def line(id_: str, begin: int, end: int, data: dict[str, object], error: object = None) -> dict[str, object]:
        times = {"started_at": at(begin), "ended_at": at(end)}
        ids = {"object": "trace.span", "id": id_, "trace_id": "trace_1", "parent_id": "agent"}
        return {**ids, **times, "span_data": data, "error": error}

    failed = {"message": "Error running tool (non-fatal)", "data": {"tool_name": "refund", "error": "redacted"}}
    answer = "An error occurred while running the tool. Please try again."
    usage = {"input_tokens": 50, "output_tokens": 9}
    lines = [
        line("g1", 0, 1, {"type": "generation", "input": [USER], "output": [ASKS], "model": "m", "usage": usage}),
        line("f1", 2, 32, {"type": "function", "name": "refund", "input": ARGUMENTS, "output": answer}, failed),
        line("g2", 33, 34, {"type": "generation", "input": [USER, ASKS], "output": [ASKS], "model": "m", "usage": usage}),
        line("f2", 35, 36, {"type": "function", "name": "refund", "input": ARGUMENTS, "output": "refunded"}),
        line("agent", 0, 37, {"type": "agent", "name": "a", "handoffs": [], "tools": ["refund"]}),
        {"object": "trace", "id": "trace_1", "workflow_name": "w", "group_id": None, "metadata": None},
    ]
    return "\n".join(map(json.dumps, lines))


def langfuse() -> str:
    def observation(id_: str, kind: str, begin: int, end: int, **more: object) -> dict[str, object]:
        times = {"startTime": at(begin), "endTime": at(end)}
        return {"id": id_, "traceId": "t1", "type": kind, "parentObservationId": "root", "level": "DEFAULT", **times, **more}

    counted = {"usageDetails": {"input": 50, "output": 9, "total": 59}, "calculatedTotalCost": 0.25, "model": "m"}
    asks = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    failed = {"level": "ERROR", "statusMessage": "timeout after 30 s", "output": None}
    return json.dumps(
        {
            "id": "t1",
            "name": "refunds",
            "observations": [
                observation("f2", "TOOL", 35, 36, name="refund", input=REFUND, output="refunded"),
                observation("root", "AGENT", 0, 37, name="agent"),
                observation("g1", "GENERATION", 0, 1, name="llm", input=[USER], output=asks, **counted),
                observation("f1", "TOOL", 2, 32, name="refund", input=REFUND, **failed),
                observation("g2", "GENERATION", 33, 34, name="llm", input={"messages": [USER, asks]}, output=asks, **counted),
            ],
        }
    )


def langsmith() -> str:
    """A run with its children, as LangChain's tracer writes messages."""

    def stored(kind: str, **fields: object) -> dict[str, object]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": fields}

    def child(
        name: str, kind: str, begin: int, end: int, inputs: object, outputs: object, error: object = None, **more: object
    ) -> dict[str, object]:
        times = {"start_time": at(begin).removesuffix("Z"), "end_time": at(end).removesuffix("Z")}
        ids = {"id": f"{name}{begin}", "trace_id": "r1", "parent_run_id": "r1"}
        return {**ids, "name": name, "run_type": kind, **times, "inputs": inputs, "outputs": outputs, "error": error, **more}

    asks = stored("AIMessage", content="", tool_calls=[{"name": "refund", "args": REFUND, "id": "c1", "type": "tool_call"}])
    replied = {"generations": [[{"text": "", "message": asks}]]}
    first, then = (
        {"messages": [[stored("HumanMessage", content="Refund.")]]},
        {"messages": [[stored("HumanMessage", content="Refund."), asks]]},
    )
    counted = {"prompt_tokens": 50, "completion_tokens": 9, "total_cost": 0.25}
    children = [
        child("ChatOpenAI", "llm", 0, 1, first, replied, **counted),
        child("refund", "tool", 2, 32, {"input": ARGUMENTS}, None, "TimeoutError('timeout after 30 s')"),
        child("ChatOpenAI", "llm", 33, 34, then, replied, **counted),
        child("refund", "tool", 35, 36, {"input": ARGUMENTS}, {"output": "refunded"}),
    ]
    return json.dumps({**child("agent", "chain", 0, 37, {}, {}), "id": "r1", "parent_run_id": None, "child_runs": children})


def mlflow() -> str:
    def span(
        id_: str,
        kind: str,
        begin: int,
        end: int,
        code: object = "STATUS_CODE_OK",
        problem: object = "",
        name: object = "refund",
        **more: object,
    ) -> dict[str, object]:
        nano, zero = 10**9, 1795944869 * 10**9
        values = {f"mlflow.{key}": json.dumps(value) for key, value in {"spanType": kind, **more}.items()}
        times = {"start_time_unix_nano": zero + begin * nano, "end_time_unix_nano": zero + end * nano}
        ids = {"trace_id": "fEUXXftd3O82Zv61Q/kVAg==", "span_id": id_, "parent_span_id": "root", "name": name}
        return {**ids, **times, "events": [], "status": {"code": code, "message": problem}, "attributes": values}

    reply, usage = {"choices": [{"message": ASKS}]}, {"input_tokens": 50, "output_tokens": 9}
    listed = [
        span("root", "AGENT", 0, 37, name="agent", spanInputs={}, spanOutputs={"ok": True}),
        span(
            "g1",
            "CHAT_MODEL",
            0,
            1,
            name="ask",
            spanInputs={"messages": [USER]},
            spanOutputs=reply,
            **{"chat.tokenUsage": usage},
        ),
        span("f1", "TOOL", 2, 32, "STATUS_CODE_ERROR", "TimeoutError: timeout after 30 s", spanInputs=REFUND),
        span(
            "g2",
            "CHAT_MODEL",
            33,
            34,
            name="ask",
            spanInputs={"messages": [USER, ASKS]},
            spanOutputs=reply,
            **{"chat.tokenUsage": usage},
        ),
        span("f2", "TOOL", 35, 36, spanInputs=REFUND, spanOutputs="refunded"),
    ]
    return json.dumps({"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": listed}})


def claude_code() -> str:
    """Lines of a session. A reply has a line for each of its parts, with the usage of the whole in each."""

    def line(seconds: int, kind: str, message: dict[str, object], **more: object) -> dict[str, object]:
        ids = {
            "uuid": f"u{seconds}",
            "parentUuid": None,
            "sessionId": "s",
            "isSidechain": False,
            "version": "2.1.0",
            "cwd": "/w",
        }
        return {**ids, "type": kind, "timestamp": at(seconds), "message": message, **more}

    usage = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 20, "output_tokens": 9}

    def asks(seconds: int, id_: str) -> list[dict[str, object]]:
        reply = {"id": f"msg{seconds}", "role": "assistant", "model": "m", "usage": usage}
        use = {"type": "tool_use", "id": id_, "name": "mcp__bank__refund", "input": REFUND}
        text = {"type": "text", "text": "I refund."}
        return [line(seconds, "assistant", {**reply, "content": [each]}) for each in (text, use)]

    def result(seconds: int, id_: str, text: str, **more: object) -> dict[str, object]:
        part = {"type": "tool_result", "tool_use_id": id_, "content": [{"type": "text", "text": text}], **more}
        return line(seconds, "user", {"role": "user", "content": [part]})

    lines = [
        {"type": "summary", "summary": "Refunds", "leafUuid": "u0"},
        line(0, "user", {"role": "user", "content": "Refund order 17."}),
        *asks(1, "t1"),
        result(32, "t1", "timeout after 30 s", is_error=True),
        *asks(34, "t2"),
        result(36, "t2", "refunded", is_error=False),
        line(
            37, "assistant", {"id": "end", "role": "assistant", "content": [{"type": "text", "text": "Done."}], "usage": usage}
        ),
    ]
    return "\n".join(map(json.dumps, lines))


def codex() -> str:
    def line(seconds: int, kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": at(seconds), "type": kind, "payload": payload}

    def asks(seconds: int, id_: str) -> list[dict[str, object]]:
        call = line(seconds, "response_item", type="function_call", name="refund", arguments=ARGUMENTS, call_id=id_)
        usage = {"last_token_usage": {"input_tokens": 50, "cached_input_tokens": 40, "output_tokens": 9}}
        return [call, line(seconds, "event_msg", type="token_count", info=usage)]

    words = [{"type": "input_text", "text": "Refund order 17."}]
    lines = [
        line(0, "session_meta", id="s", cwd="/w", originator="codex_cli"),
        line(0, "response_item", type="message", role="user", content=words),
        line(0, "event_msg", type="user_message", message="Refund order 17."),
        *asks(1, "t1"),
        line(
            32,
            "response_item",
            type="function_call_output",
            call_id="t1",
            output={"content": "timeout after 30 s", "success": False},
        ),
        *asks(34, "t2"),
        line(36, "response_item", type="function_call_output", call_id="t2", output="refunded"),
        line(37, "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
    ]
    return "\n".join(map(json.dumps, lines))


FORMS = {
    "agents": agents_sdk,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "mlflow": mlflow,
    "claude": claude_code,
    "codex": codex,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_incident_is_told_from_each_form_with_its_tokens_and_seconds(tmp_path: Path, form: str) -> None:
    log, _ = read_log(written(tmp_path, FORMS[form]()))
    calls = calls_of(log)
    [(first, again)] = repeated_pairs(calls)
    assert [json.loads(call.call.arguments) for call in calls] == [REFUND, REFUND]
    assert (first.step, again.step, first.answer_shows, again.answer_shows) == (1, 2, "open", "done")
    assert [entry.tokens for entry in log if isinstance(entry, StepCost)][:2] == [59, 59]
    lines = "\n".join(run_report_lines(log))
    assert "1 call of tools, 1 call of a model, 59 tokens, as the provider counted them, 4.0 s" in lines
    assert ("$0.2500" in lines) == (form in ("langfuse", "langsmith")) and ("dollars" in lines) != ("$" in lines)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_becomes_steps_of_a_pack_with_the_words_and_the_calls(tmp_path: Path, form: str) -> None:
    run = read(tmp_path, FORMS[form]())
    assert [call.tool.rpartition("__")[2] for step in run.steps for call in step.calls] == ["refund", "refund"]
    assert "Refund" in run.prompt(1) and all("refund" in step.reply for step in run.steps[:2])
    assert run.steps[1].calls[0].result == "refunded"


def test_a_log_whose_models_words_were_not_kept_is_told_and_makes_no_pack(tmp_path: Path) -> None:
    """The Agents SDK keeps of a response only its id and its usage."""
    lines = [json.loads(line) for line in agents_sdk().splitlines()]
    for line in lines:
        if line.get("span_data", {}).get("type") == "generation":
            line["span_data"] = {"type": "response", "response_id": "resp_1", "usage": line["span_data"]["usage"]}
    path = written(tmp_path, json.dumps({"data": lines}))
    log, left_out = read_log(path)
    assert len(repeated_pairs(calls_of(log))) == 1 and "2 × call of a model without a recorded reply" in left_out
    with pytest.raises(Exception, match="no call of a model whose words were recorded"):
        read(tmp_path, json.dumps({"data": lines}))


def test_a_session_of_more_steps_than_a_pack_may_have_is_told(tmp_path: Path) -> None:
    head, *lines = claude_code().splitlines()
    many = [json.loads(line) for _ in range(300) for line in lines]
    for number, line in enumerate(many):
        if line["type"] == "assistant" and line["message"]["id"] != "end":
            line["message"]["id"] = f"m{number // 2}"
    log, _ = read_log(written(tmp_path, "\n".join((head, *map(json.dumps, many)))))
    assert sum(isinstance(entry, OpenCall) for entry in log) == 600
