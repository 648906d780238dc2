"""Traces that platforms export, read as spans with OpenTelemetry's names: the OpenAI Agents SDK's own log, Langfuse,
LangSmith and MLflow. The fields of a platform are renamed; their values are read as in any other span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bench.elsewhere.runs.messages import as_text, tables_in, value_of
from bench.elsewhere.runs.spans import TracedSpan, nanoseconds

MAX_RUN_DEPTH = 200
"""The most levels of runs within runs, as LangSmith nests them."""
SPAN_KINDS = {
    **dict.fromkeys(("generation", "response", "llm", "chat_model", "chat"), "chat"),
    **dict.fromkeys(("function", "tool"), "execute_tool"),
}
"""A platform's word for a call of a model or of a tool -> the name of the operation in OpenTelemetry."""
SPAN_LIST_KEYS = ("observations", "data", "spans", "runs")
"""The keys under which a trace's list of spans can be."""


def is_of_platform(value: Any) -> bool:
    """Return whether a value is a span of a platform, or contains a list of spans, so that `platform_spans` can read it."""
    return any(True for _ in _rows(value, ""))


def platform_spans(value: Any) -> Iterator[TracedSpan]:
    """Yield the spans of a value."""
    for row, trace in _rows(value, ""):
        yield _span(row, trace)


def _rows(value: Any, trace: str, depth: int = 0) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each table that is a span, with the id of its trace."""
    if not isinstance(value, dict) or depth > MAX_RUN_DEPTH:
        return
    if _is_span(value):
        trace = _first_text(value, "trace_id", "traceId") or trace or _first_text(value, "id")
        yield value, trace
        for child in tables_in(value.get("child_runs")):
            yield from _rows(child, trace, depth + 1)
        return
    trace_fields = {**value, **_table(value.get("trace")), **_table(value.get("info"))}
    trace = _first_text(trace_fields, "trace_id", "request_id", "id")
    for holder in (value, _table(value.get("data"))):
        for key in SPAN_LIST_KEYS:
            for row in tables_in(holder.get(key)):
                if _is_span(row):
                    yield from _rows(row, trace, depth + 1)


def _is_span(value: Mapping[str, Any]) -> bool:
    """Return whether a table is a span of a known platform."""
    return (
        "span_data" in value
        or ("startTime" in value and "traceId" in value and "type" in value)
        or ("run_type" in value and "inputs" in value)
        or _is_mlflow(value)
    )


def _is_mlflow(value: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a span of MLflow."""
    attributes = value.get("attributes")
    return isinstance(attributes, dict) and any(str(key).startswith("mlflow.span") for key in attributes)


def _span(row: Mapping[str, Any], trace: str) -> TracedSpan:
    """Return a table as a span with OpenTelemetry's names."""
    attributes = _table(row.get("attributes"))
    fields = {**row, **_table(row.get("span_data"))}
    if attributes:
        fields |= {name: value_of(attributes.get(f"mlflow.{key}")) for name, key in MLFLOW_KEYS.items()}
    platform_kind = _first_text(fields, "run_type", "type").lower()
    kind = SPAN_KINDS.get(platform_kind, platform_kind)
    name = _first_text(fields, "name")
    failed = _has_failed(fields)
    id_ = _first_text({**row, **_table(row.get("context"))}, "span_id", "id")
    parent = _first_text(row, "parent_id", "parentObservationId", "parent_run_id", "parent_span_id")
    start, end = _time(row, *START_FIELDS), _time(row, *END_FIELDS)
    span_attributes = {"gen_ai.operation.name": kind or "span"}
    if kind == "execute_tool":
        span_attributes |= _tool_attributes(fields, name, failed)
    elif kind == "chat":
        span_attributes |= _call_attributes(fields)
    return TracedSpan(trace, id_, parent, name, start, span_attributes, [], end, failed)


MLFLOW_KEYS = {"type": "spanType", "inputs": "spanInputs", "outputs": "spanOutputs", "usage": "chat.tokenUsage"}
START_FIELDS = ("started_at", "startTime", "start_time", "start_time_unix_nano", "start_time_ns")
END_FIELDS = ("ended_at", "endTime", "end_time", "end_time_unix_nano", "end_time_ns")


def _tool_attributes(fields: Mapping[str, Any], name: str, failed: bool | None) -> dict[str, Any]:
    """Return the name, arguments and result of a tool's span as attributes with OpenTelemetry's names."""
    arguments, result = _field(fields, "input", "inputs"), _field(fields, "output", "outputs")
    if isinstance(arguments, dict) and len(arguments) == 1 and isinstance(arguments.get("input"), str | dict):
        arguments = arguments["input"]  # LangChain writes the arguments as one text
    if isinstance(result, dict) and len(result) == 1 and "output" in result:
        result = result["output"]
    if isinstance(result, dict) and "tool_call_id" in result and "content" in result:
        result = result["content"]
    if failed and result in (None, "", {}):
        result = _error_text(fields)
    answer = {} if result is None else {"gen_ai.tool.call.result": result}
    return {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": "" if arguments is None else arguments, **answer}


def _call_attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the messages, tokens and cost of a model's call as attributes with OpenTelemetry's names."""
    usage = next(filter(None, (_table(fields.get(key)) for key in ("usage", "usageDetails", "usage_metadata"))), _table(None))
    outputs = _field(fields, "output", "outputs")
    if isinstance(outputs, dict) and isinstance(outputs.get("generations"), list):
        outputs = _langchain_messages(outputs["generations"])
    read = {
        "gen_ai.input.messages": _plain_messages(_field(fields, "input", "inputs")),
        "gen_ai.output.messages": outputs,
        "gen_ai.usage.input_tokens": _first_number(usage, "input_tokens", "input", "promptTokens", "prompt_tokens")
        or _first_number(fields, "prompt_tokens", "promptTokens"),
        "gen_ai.usage.output_tokens": _first_number(usage, "output_tokens", "output", "completionTokens", "completion_tokens")
        or _first_number(fields, "completion_tokens", "completionTokens"),
        "gen_ai.usage.cost": _first_number(
            {**fields, **_table(fields.get("costDetails"))}, "calculatedTotalCost", "total_cost", "totalCost", "total"
        ),
    }
    return {name: value for name, value in read.items() if value not in (None, "", [], {})}


def _langchain_messages(generations: Any) -> Any:
    """Return the messages of LangChain's generations, which are in a list of lists."""
    messages = []
    for row in generations:
        for generation in row if isinstance(row, list) else [row]:
            if isinstance(generation, dict):
                messages.append(_plain_message(generation.get("message") or {"content": generation.get("text", "")}))
    return messages


def _plain_messages(value: Any) -> Any:
    """Return messages without LangChain's serialization format."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
        value = value[0] if len(value) == 1 and isinstance(value[0], list) else value
    return [_plain_message(message) for message in value] if isinstance(value, list) else value


def _plain_message(value: Any) -> Any:
    """Return a message without LangChain's serialization format."""
    if not isinstance(value, dict):
        return value
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        role = str((value.get("id") or ["", "human"])[-1]).removesuffix("Chunk").removesuffix("Message").lower()
        value = {"role": role, **value["kwargs"]}
    elif value.get("type") in ("human", "ai", "system", "tool") and "role" not in value:
        value = {"role": value["type"], **(value["data"] if isinstance(value.get("data"), dict) else value)}
    return {key: inner for key, inner in value.items() if key not in ("type", "usage_metadata", "id") or "role" not in value}


def _has_failed(fields: Mapping[str, Any]) -> bool | None:
    """Return whether a span failed; None if it does not say."""
    status = fields.get("status")
    code = status.get("code") if isinstance(status, dict) else status or fields.get("status_code")
    word = str(code or "").upper().removeprefix("STATUS_CODE_")
    if fields.get("error") or str(fields.get("level", "")).upper() == "ERROR" or word == "ERROR":
        return True
    return False if word in ("OK", "SUCCESS") else None


def _error_text(fields: Mapping[str, Any]) -> str:
    """Return the text of a span's error."""
    status = _table(fields.get("status"))
    error = fields.get("error") or fields.get("statusMessage") or status.get("message") or fields.get("status_message") or ""
    return as_text(error.get("message", error)) if isinstance(error, dict) else as_text(error)


def _field(fields: Mapping[str, Any], *names: str) -> Any:
    """Return the value of the first of these fields that is set."""
    return value_of(next((fields[name] for name in names if fields.get(name) is not None), None))


def _table(value: Any) -> Mapping[str, Any]:
    """Return a value that is a table; otherwise an empty table."""
    return value if isinstance(value, dict) else {}


def _first_number(fields: Mapping[str, Any], *names: str) -> Any:
    """Return the first of these fields that is a number."""
    return next((fields[name] for name in names if isinstance(fields.get(name), int | float)), None)


def _first_text(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is a text."""
    return next((fields[name] for name in names if isinstance(fields.get(name), str) and fields[name]), "")


def _time(fields: Mapping[str, Any], *names: str) -> int:
    """Return the time in the first of these fields that is set, in nanoseconds; 0 if there is none. A number counts seconds,
    milliseconds or nanoseconds, by its size."""
    value = next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
    if isinstance(value, str):
        try:
            return nanoseconds(datetime.fromisoformat(value))
        except (ValueError, OverflowError):
            return int(value) if value.isdecimal() and len(value) < 20 else 0
    if not isinstance(value, int | float) or not 0 < value < 1e20:
        return 0
    if value < 1e11:  # seconds
        return int(value * 1e9)
    return int(value * 1e6) if value < 1e14 else int(value)
