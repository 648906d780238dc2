"""The form `otel`: each trial as a trace of OpenTelemetry's GenAI spans, in a file of OTLP's JSON.

A trial is a span `invoke_agent`, each call of the model a span `chat` in it, each tool call in a world a span `execute_tool`.
Faults, verdicts, rejections, crashes and questions to people are events. Attributes have the names of the semantic conventions,
or names that begin with `recovery_bench.` if there are none. Ids follow from the trial's id, so that a trial that is read
twice is one trace.

A record says when each call began on its trial's clock, but not when the trial began. So all trials begin when the run did.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import chain
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from bench.read.analysis.frames import Run
from bench.read.export.trial_texts import SentCall, TrialTexts, fields_of, trials_of
from bench.record.events import Faulted, Judged
from bench.record.messages import Message

OWN_PREFIX = "recovery_bench."
"""The beginning of attribute names that the semantic conventions do not have."""
TOOL_FIELDS = ("access", "effect", "key", "outcome", "life", "day", "minute", "step", "plan_version")
"""Fields of a tool call that are exported under their own names."""
Attributes = Mapping[str, Any]
ChildSpan = tuple[int, str, float, float, Attributes, str]
"""The span of a call: its number, name, start and duration in seconds, attributes, and its error or ""."""


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield one file of OTLP's JSON, one line for each trial."""
    lines = (_json_line(encode_spans(spans_of(trial))) for trial in trials_of(run))
    yield "traces.jsonl", b"".join(lines)


def spans_of(trial: TrialTexts) -> list[ReadableSpan]:
    """Return the spans of a trial, the trial's own span first."""
    record = trial.record
    resource = Resource({"service.name": "recovery-bench", f"{OWN_PREFIX}run": trial.run})
    trace_id = int.from_bytes(hashlib.blake2b(record.id.encode(), digest_size=16).digest())
    children = [*_chat_spans(trial), *_tool_spans(trial)]
    end = max((started + seconds for _, _, started, seconds, *_ in children), default=0.0)
    root = {
        gen_ai.GEN_AI_OPERATION_NAME: "invoke_agent",
        gen_ai.GEN_AI_AGENT_NAME: record.architecture,
        gen_ai.GEN_AI_CONVERSATION_ID: record.id,
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(trial),
        "error.type": trial.error.partition(":")[0] or None,
        **{f"{OWN_PREFIX}{name}": value for name, value in trial.attributes.items()},
    }

    def span(number: int | None, name: str, started: float, seconds: float, attributes: Attributes, error: str) -> ReadableSpan:
        """Return the span of a call, or the trial's own span if `number` is None."""
        kind = SpanKind.INTERNAL if number is None else SpanKind.CLIENT
        return ReadableSpan(
            name,
            _context(trace_id, record.id, number),
            None if number is None else _context(trace_id, record.id, None),
            resource,
            {key: value for key, value in attributes.items() if value is not None},
            _events_of(trial, number),
            (),
            kind,
            InstrumentationScope("recovery-bench"),
            Status(StatusCode.ERROR, error) if error else Status(StatusCode.UNSET),
            _nanoseconds(trial, started),
            _nanoseconds(trial, started + seconds),
        )

    own_name = f"invoke_agent {record.architecture}"
    return [span(None, own_name, 0.0, end, root, trial.error), *(span(*child) for child in children)]


def _chat_spans(trial: TrialTexts) -> Iterator[ChildSpan]:
    """Yield the span of each call of the model."""
    for sent in trial.calls:
        call = sent.event
        attributes = {
            gen_ai.GEN_AI_OPERATION_NAME: "chat",
            gen_ai.GEN_AI_PROVIDER_NAME: _provider(trial),
            gen_ai.GEN_AI_REQUEST_MODEL: trial.record.model,
            gen_ai.GEN_AI_RESPONSE_MODEL: call.by or None,
            gen_ai.GEN_AI_REQUEST_SEED: call.seed,
            gen_ai.GEN_AI_CONVERSATION_ID: trial.record.id,
            gen_ai.GEN_AI_USAGE_INPUT_TOKENS: sent.tokens[0],
            gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: sent.tokens[1],
            gen_ai.GEN_AI_RESPONSE_FINISH_REASONS: [call.finish] if call.finish else None,
            gen_ai.GEN_AI_INPUT_MESSAGES: json.dumps([*map(_message, sent.messages)]),
            gen_ai.GEN_AI_OUTPUT_MESSAGES: _reply_json(sent),
            "error.type": call.failure,
            f"{OWN_PREFIX}trial": trial.record.id,
            f"{OWN_PREFIX}plan": trial.record.plan,
            f"{OWN_PREFIX}request": sent.request,
            f"{OWN_PREFIX}subtasks": list(call.subtasks),
            f"{OWN_PREFIX}attempt": call.attempt,
            f"{OWN_PREFIX}cause": call.cause,
            f"{OWN_PREFIX}tokens_in": call.tokens_in,
            f"{OWN_PREFIX}tokens_out": call.tokens_out,
            f"{OWN_PREFIX}usage": sent.counted_by,
            f"{OWN_PREFIX}reached_model": call.asked,
        }
        error = f"{call.failure}: {call.detail}" if call.failure else ""
        yield sent.number, f"chat {trial.record.model}", call.started, call.seconds, attributes, error


def _tool_spans(trial: TrialTexts) -> Iterator[ChildSpan]:
    """Yield the span of each tool call in a world."""
    requests = {sent.event.call: sent.request for sent in trial.calls}
    for number, event in enumerate(trial.record.events):
        if getattr(event, "kind", "") == "tool":
            call: Any = event
            attributes = {
                gen_ai.GEN_AI_OPERATION_NAME: "execute_tool",
                gen_ai.GEN_AI_TOOL_NAME: call.tool,
                gen_ai.GEN_AI_TOOL_CALL_ID: f"{trial.record.id}/{number}",
                gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS: call.arguments,
                gen_ai.GEN_AI_TOOL_CALL_RESULT: call.result,
                f"{OWN_PREFIX}request": requests.get(call.request),
                **{f"{OWN_PREFIX}{name}": getattr(call, name) for name in TOOL_FIELDS},
            }
            error = f"{call.outcome}: {call.reason}" if call.outcome in ("refused", "failed") else ""
            yield number, f"execute_tool {call.tool}", call.started, 0.0, attributes, error


def _events_of(trial: TrialTexts, number: int | None) -> list[Event]:
    """Return the events of a call's span, or, if `number` is None, of the trial's span: those that belong to no call. Our
    events have no times, so each gets the end of the call before it."""
    events, now, span_of_call = list[Event](), 0.0, {sent.event.call: sent.number for sent in trial.calls}
    for event in trial.record.events:
        if hasattr(event, "started"):
            now = max(now, event.started + getattr(event, "seconds", 0.0))
        match event:
            case Faulted():
                name, span = "fault", span_of_call.get(event.call or -1)
            case Judged():
                name, span = "verdict", span_of_call.get(event.calls[-1]) if event.calls else None
            case _ if (kind := getattr(event, "kind", "")) in ("crash", "asked"):
                name, span = kind, None
            case _:
                continue
        if span == number:
            attributes = {f"{OWN_PREFIX}{name}.{key}": value for key, value in fields_of(event).items()}
            events.append(Event(f"{OWN_PREFIX}{name}", attributes, _nanoseconds(trial, now)))
    return events


def _message(message: Message) -> dict[str, Any]:
    """Return a message in the form of the semantic conventions."""
    if message.role == "tool":
        response = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        return {"role": "tool", "parts": [response]}
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.content}] if message.content else []
    parts += (
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
    )
    return {"role": message.role, "parts": parts}


def _reply_json(sent: SentCall) -> str | None:
    """Return the model's reply as JSON in the form of the semantic conventions; None if no reply came."""
    if sent.reply is None:
        return None
    answer = {**_message(Message("assistant", sent.reply, sent.tool_calls)), "finish_reason": sent.event.finish or "stop"}
    return json.dumps([answer])


def _provider(trial: TrialTexts) -> str:
    """Return the name of the provider of the trial's model."""
    return f"{OWN_PREFIX}simulated" if trial.is_simulated else "openai"


def _context(trace_id: int, trial: str, number: int | None) -> SpanContext:
    """Return the ids of a call's span, or of the trial's own span if `number` is None."""
    span_id = int.from_bytes(hashlib.blake2b(f"{trial}/{number}".encode(), digest_size=8).digest())
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(trial: TrialTexts, seconds: float) -> int:
    """Return a second of the trial as nanoseconds since 1970."""
    return round(trial.began.timestamp()) * 10**9 + timedelta(seconds=seconds) // timedelta(microseconds=1) * 1000


def _json_line(request: Any) -> bytes:
    """Return a line of OTLP's JSON: protobuf's JSON, but with ids in hex and enumerations as numbers."""
    value = MessageToDict(request, use_integers_for_enums=True)
    scopes = chain.from_iterable(resource["scopeSpans"] for resource in value["resourceSpans"])
    for span in chain.from_iterable(scope["spans"] for scope in scopes):
        for key in span.keys() & {"traceId", "spanId", "parentSpanId"}:
            span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
