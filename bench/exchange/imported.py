"""Read a run that another program recorded as steps: a trajectory of ATIF, or a trace of OpenTelemetry's GenAI spans.

A step is one call of the model with its tool calls. The program need not know this suite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from bench.bounds import BoundedTable, Listed, crowded
from bench.errors import ResultsError, nearest, whole_text
from bench.files import content_of
from bench.wording import first_violation

LARGEST = 2**26
"""Bytes of the largest file."""
MOST_STEPS = 500
CHATS = ("chat", "generate_content", "text_completion")
"""The operations of spans that are calls of a model."""


@dataclass(frozen=True)
class ImportedCall:
    """A tool call. `reads`: it changes nothing."""

    tool: str
    arguments: str
    result: str
    reads: bool


@dataclass(frozen=True)
class ImportedStep:
    """A call of the model.

    shown   all that it was shown; `new` is the part that no earlier step was shown, without the agent's replies
    reply   its text, or its tool calls if there is no text
    """

    shown: str
    new: str
    reply: str
    calls: tuple[ImportedCall, ...] = ()


def read_trace(path: Path, reading_tools: Sequence[str] = (), trace: str | None = None) -> list[ImportedStep]:
    """Read a recorded run.

    Args:
        path: A file of ATIF, or of OTLP's JSON: one object, or one a line.
        reading_tools: The tools that change nothing.
        trace: The id of the trace, or its beginning, if the file holds several.

    Raises:
        ResultsError: The file is neither, it is damaged or too large, or it has no step with text.
    """
    try:
        content = content_of(path, LARGEST)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
    if why := crowded(content, 2):
        raise ResultsError(f"{path}: is not read: {why}")
    try:
        steps = list(_steps(content, trace, path))
    except ValidationError as error:
        raise ResultsError(f"{path}: is not a trace: {first_violation(error).line}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: is not JSON in the form of ATIF or OTLP: {' '.join(str(error).split())[:200]}") from error
    if not steps:
        raise ResultsError(f"{path}: has no call of a model whose words were recorded; tell the recorder to keep the messages")
    if len(steps) > MOST_STEPS:
        raise ResultsError(f"{path}: has {len(steps)} steps, and at most {MOST_STEPS} are read; shorten it")
    known = {call.tool for step in steps for call in step.calls}
    for tool in reading_tools:
        if tool not in known:
            raise ResultsError(f"{path}: calls no tool '{tool}'; {nearest(tool, sorted(known))}")
    return [_marked(step, reading_tools) for step in steps]


def _marked(step: ImportedStep, reading_tools: Sequence[str]) -> ImportedStep:
    calls = tuple(replace(call, reads=call.reads or call.tool in reading_tools) for call in step.calls)
    return ImportedStep(whole_text(step.shown), whole_text(step.new), whole_text(step.reply), calls)


def _steps(content: bytes, trace: str | None, path: Path) -> Iterator[ImportedStep]:
    lines = [content] if content.lstrip()[:1] == b"{" and _is_whole(content) else content.splitlines()
    values = [json.loads(line) for line in lines if line.strip()]
    if len(values) == 1 and isinstance(values[0], dict) and "steps" in values[0]:
        return _of_trajectory(Trajectory.model_validate(values[0]))
    return _of_spans(_chosen([span for value in values for span in _spans(value)], trace, path))


def _is_whole(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


class AtifToolCall(BaseModel):
    tool_call_id: str
    function_name: str
    arguments: BoundedTable[str, Any]


class AtifResult(BaseModel):
    source_call_id: str | None = None
    content: str | Listed[BoundedTable[str, Any]] | None = None

    @property
    def text(self) -> str:
        return _text_of(self.content)


class AtifObservation(BaseModel):
    results: Listed[AtifResult] = Field(default_factory=list)


class AtifStep(BaseModel):
    source: str
    message: str | Listed[BoundedTable[str, Any]] | None = None
    tool_calls: Listed[AtifToolCall] | None = None
    observation: AtifObservation | None = None


class Trajectory(BaseModel):
    """The parts of a trajectory that are read here."""

    steps: Listed[AtifStep]


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    """Return the text of a message; for a message in parts, the text parts."""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content or ())


def _of_trajectory(trajectory: Trajectory) -> Iterator[ImportedStep]:
    shown, new = list[str](), list[str]()
    for step in trajectory.steps:
        text = _text_of(step.message)
        results = step.observation.results if step.observation else []
        if step.source == "agent":
            calls = [(call.function_name, json.dumps(call.arguments), call.tool_call_id) for call in step.tool_calls or ()]
            answers = {result.source_call_id: result.text for result in results}
            reply = text or _called(calls)
            if reply:
                made = [ImportedCall(tool, arguments, answers.get(id_, ""), reads=False) for tool, arguments, id_ in calls]
                yield ImportedStep("\n\n".join(shown + new), "\n\n".join(new), reply, tuple(made))
                shown, new = [*shown, *new, f"[assistant]\n{reply}"], []
        elif text:
            new.append(f"[{step.source}]\n{text}")
        new += [f"[tool]\n{result.text}" for result in results if result.text]


def _called(calls: Iterable[tuple[str, str, str]]) -> str:
    """Return the text of a reply that has only tool calls."""
    return "\n".join(f"{tool}({arguments})" for tool, arguments, _ in calls)


@dataclass(frozen=True)
class TracedSpan:
    """A span, with its attributes by name."""

    trace: str
    start: int
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        return str(self.attributes.get("gen_ai.operation.name", ""))

    def text(self, name: str) -> str:
        value = self.attributes.get(name, "")
        return value if isinstance(value, str) else json.dumps(value)


class OtlpSpan(BaseModel):
    trace_id: str = Field(alias="traceId")
    start: int = Field(alias="startTimeUnixNano")
    attributes: Listed[BoundedTable[str, Any]] = Field(default_factory=list)


class OtlpScope(BaseModel):
    spans: Listed[OtlpSpan] = Field(default_factory=list)


class OtlpResource(BaseModel):
    scopes: Listed[OtlpScope] = Field(default_factory=list, alias="scopeSpans")


class OtlpRequest(BaseModel):
    """The parts of spans in OTLP's JSON that are read here."""

    resources: Listed[OtlpResource] = Field(alias="resourceSpans")


def _spans(value: Any) -> Iterator[TracedSpan]:
    for resource in OtlpRequest.model_validate(value).resources:
        for scope in resource.scopes:
            for span in scope.spans:
                pairs = [(str(pair.get("key")), pair.get("value")) for pair in span.attributes]
                flat = {key: next(iter(inner.values()), None) for key, inner in pairs if isinstance(inner, dict)}
                yield TracedSpan(span.trace_id, span.start, flat)


def _chosen(spans: Sequence[TracedSpan], trace: str | None, path: Path) -> list[TracedSpan]:
    """Return the spans of one trace, in order."""
    ids = dict.fromkeys(span.trace for span in spans)
    fitting = [id_ for id_ in ids if id_.startswith(trace or "")]
    if len(fitting) != 1 and ids:
        shown = ", ".join(list(fitting or ids)[:5])
        raise ResultsError(f"{path}: holds {len(ids)} traces; name one with --trace, such as {shown}")
    return sorted((span for span in spans if span.trace in fitting), key=lambda span: span.start)


def _of_spans(spans: Sequence[TracedSpan]) -> Iterator[ImportedStep]:
    """Yield the steps. A tool call belongs to the last call of the model that began before it."""
    chats = [span for span in spans if span.operation in CHATS and span.text("gen_ai.output.messages")]
    seen = set[str]()
    for chat, later in zip(chats, [*chats[1:], None], strict=False):
        messages = [_rendered(message) for message in _messages(chat, "gen_ai.input.messages")]
        reply = "\n".join(_rendered(message)[1] for message in _messages(chat, "gen_ai.output.messages"))
        lines = [f"[{role}]\n{text}" for role, text in messages]
        new = [line for (role, _), line in zip(messages, lines, strict=True) if role != "assistant" and line not in seen]
        tools = [span for span in spans if span.operation == "execute_tool" and chat.start <= span.start]
        calls = [_tool_call(span) for span in tools if later is None or span.start < later.start]
        seen.update(lines)
        if reply:
            yield ImportedStep("\n\n".join(lines), "\n\n".join(new), reply, tuple(calls))


def _tool_call(span: TracedSpan) -> ImportedCall:
    arguments, result = span.text("gen_ai.tool.call.arguments"), span.text("gen_ai.tool.call.result")
    reads = span.attributes.get("recovery_bench.access") == "read"
    return ImportedCall(span.text("gen_ai.tool.name") or "tool", arguments, result, reads)


def _messages(span: TracedSpan, name: str) -> list[dict[str, Any]]:
    value = json.loads(span.text(name) or "[]")
    return [message for message in value if isinstance(message, dict)] if isinstance(value, list) else []


def _rendered(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the role and the text of a message in the form of the semantic conventions."""
    parts = [part for part in message.get("parts") or () if isinstance(part, dict)]
    texts = [str(part.get("content") or part.get("response") or "") for part in parts]
    calls = _called(
        (str(part.get("name")), str(part.get("arguments")), "") for part in parts if part.get("type") == "tool_call"
    )
    return str(message.get("role", "user")), "\n".join(filter(None, (*texts, calls)))


def tool_names(steps: Sequence[ImportedStep]) -> Iterator[tuple[int, ImportedCall, str]]:
    """Yield each tool call with the number of its step and a unique name, such as `step_07_refund`."""
    for number, step in enumerate(steps, 1):
        for place, call in enumerate(step.calls, 1):
            word = re.sub(r"[^a-z0-9]+", "_", call.tool.lower()).strip("_")[:40] or "tool"
            yield number, call, f"{step_name(number)}_{word}{'' if place == 1 else f'_{place}'}"


def step_name(number: int) -> str:
    return f"step_{number:02}"
