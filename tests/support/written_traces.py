"""Traces and trajectories as text, for the tests of their readers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.elsewhere.runs import ImportedRun, read_trace

Json = dict[str, Any]


def value(of: Any) -> Json:
    """Return a value as OTLP writes it."""
    match of:
        case bool():
            return {"boolValue": of}
        case int():
            return {"intValue": str(of)}
        case list():
            return {"arrayValue": {"values": [value(item) for item in of]}}
        case dict():
            return {"kvlistValue": {"values": attributes(of)}}
        case None:
            return {}
    return {"stringValue": of}


def attributes(of: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": value(item)} for key, item in of.items()]


def span(start: int, of: Mapping[str, Any], trace: str = "a1", **more: Any) -> Json:
    return {"traceId": trace, "startTimeUnixNano": str(start), "attributes": attributes(of), **more}


def spans(*given: Json) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(given)}]}]})


def chat(start: int, sent: Any, reply: Any, more: Mapping[str, Any] | None = None, **fields: Any) -> Json:
    """Return a span of a call by the semantic conventions, its messages as JSON in a text."""
    words = {"gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": json.dumps(reply)}
    return span(start, {"gen_ai.operation.name": "chat", **words, **(more or {})}, **fields)


def message(role: str, *parts: str | Json, **more: Any) -> Json:
    """Return a message in the form of the conventions. A text is a part of type text."""
    listed = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "parts": listed, **more}


def trajectory(*steps: Json, **more: Any) -> str:
    return json.dumps({"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": list(steps), **more})


def acting(tool: str, result: Any, message: str = "", id_: str = "1", **arguments: Any) -> Json:
    """Return a step of an agent that calls a tool."""
    call = {"tool_call_id": id_, "function_name": tool, "arguments": arguments}
    observation = {"results": [{"source_call_id": id_, "content": result}]}
    return {"source": "agent", "message": message, "tool_calls": [call], "observation": observation}


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.json"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str, trace: str | None = None) -> ImportedRun:
    return read_trace(written(folder, text), trace=trace)
