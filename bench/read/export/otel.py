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

OWN = "recovery_bench."
OF_A_TOOL = ("access", "effect", "key", "outcome", "life", "day", "minute", "step", "plan_version")
Attributes = Mapping[str, Any]


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield one file of OTLP's JSON, one line for each trial."""
    lines = (_json(encode_spans(spans_of(trial))) for trial in trials_of(run))
    yield "traces.jsonl", b"".join(lines)


def spans_of(trial: TrialTexts) -> list[ReadableSpan]:
    """Return the spans of a trial, the trial's own span first."""
    record = trial.record
    resource = Resource({"service.name": "recovery-bench", f"{OWN}run": trial.run})
    trace = int.from_bytes(hashlib.blake2b(record.id.encode(), digest_size=16).digest())
    inside = [*_chats(trial), *_tools(trial)]
    end = max((started + seconds for _, _, started, seconds, *_ in inside), default=0.0)
    root = {
        gen_ai.GEN_AI_OPERATION_NAME: "invoke_agent",
        gen_ai.GEN_AI_AGENT_NAME: record.architecture,
        gen_ai.GEN_AI_CONVERSATION_ID: record.id,
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(trial),
        "error.type": trial.error.partition(":")[0] or None,
        **{f"{OWN}{name}": value for name, value in trial.attributes.items()},
    }

    def span(number: int | None, name: str, started: float, seconds: float, attributes: Attributes, error: str) -> ReadableSpan:
        kind = SpanKind.INTERNAL if number is None else SpanKind.CLIENT
        return ReadableSpan(
            name,
            _context(trace, record.id, number),
            None if number is None else _context(trace, record.id, None),
            resource,
            {key: value for key, value in attributes.items() if value is not None},
            _events_of(trial, number),
            (),
            kind,
            InstrumentationScope("recovery-bench"),
            Status(StatusCode.ERROR, error) if error else Status(StatusCode.UNSET),
            _at(trial, started),
            _at(trial, started + seconds),
        )

    return [span(None, f"invoke_agent {record.architecture}", 0.0, end, root, trial.error), *(span(*child) for child in inside)]


def _chats(trial: TrialTexts) -> Iterator[tuple[int, str, float, float, Attributes, str]]:
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
            gen_ai.GEN_AI_OUTPUT_MESSAGES: _output(sent),
            "error.type": call.failure,
            f"{OWN}trial": trial.record.id,
            f"{OWN}plan": trial.record.plan,
            f"{OWN}request": sent.request,
            f"{OWN}subtasks": list(call.subtasks),
            f"{OWN}attempt": call.attempt,
            f"{OWN}cause": call.cause,
            f"{OWN}tokens_in": call.tokens_in,
            f"{OWN}tokens_out": call.tokens_out,
            f"{OWN}usage": sent.counted_by,
            f"{OWN}reached_model": call.asked,
        }
        error = f"{call.failure}: {call.detail}" if call.failure else ""
        yield sent.number, f"chat {trial.record.model}", call.started, call.seconds, attributes, error


def _tools(trial: TrialTexts) -> Iterator[tuple[int, str, float, float, Attributes, str]]:
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
                f"{OWN}request": requests.get(call.request),
                **{f"{OWN}{name}": getattr(call, name) for name in OF_A_TOOL},
            }
            error = f"{call.outcome}: {call.reason}" if call.outcome in ("refused", "failed") else ""
            yield number, f"execute_tool {call.tool}", call.started, 0.0, attributes, error


def _events_of(trial: TrialTexts, number: int | None) -> list[Event]:
    """Return the events of a call's span, or of the trial's span if they belong to no call. Events have no times, so each gets
    the end of the call before it."""
    happened, now, call = list[Event](), 0.0, {sent.event.call: sent.number for sent in trial.calls}
    for event in trial.record.events:
        if hasattr(event, "started"):
            now = max(now, event.started + getattr(event, "seconds", 0.0))
        match event:
            case Faulted():
                name, carrier = "fault", call.get(event.call or -1)
            case Judged():
                name, carrier = "verdict", call.get(event.calls[-1]) if event.calls else None
            case _ if (kind := getattr(event, "kind", "")) in ("crash", "asked"):
                name, carrier = kind, None
            case _:
                continue
        if carrier == number:
            attributes = {f"{OWN}{name}.{key}": value for key, value in fields_of(event).items()}
            happened.append(Event(f"{OWN}{name}", attributes, _at(trial, now)))
    return happened


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


def _output(sent: SentCall) -> str | None:
    if sent.reply is None:
        return None
    answer = {**_message(Message("assistant", sent.reply, sent.tool_calls)), "finish_reason": sent.event.finish or "stop"}
    return json.dumps([answer])


def _provider(trial: TrialTexts) -> str:
    return f"{OWN}simulated" if trial.is_simulated else "openai"


def _context(trace: int, trial: str, number: int | None) -> SpanContext:
    span = int.from_bytes(hashlib.blake2b(f"{trial}/{number}".encode(), digest_size=8).digest())
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _at(trial: TrialTexts, seconds: float) -> int:
    """Return a time in nanoseconds since 1970."""
    return round(trial.began.timestamp()) * 10**9 + timedelta(seconds=seconds) // timedelta(microseconds=1) * 1000


def _json(request: Any) -> bytes:
    """Return a line of OTLP's JSON: protobuf's JSON, but with ids in hex and enumerations as numbers."""
    value = MessageToDict(request, use_integers_for_enums=True)
    for span in (span for resource in value["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]):
        for key in span.keys() & {"traceId", "spanId", "parentSpanId"}:
            span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
