"""The form `atif`: each trial as a trajectory in the Agent Trajectory Interchange Format, version 1.7 (Harbor's RFC 0001).

A call of the model is a step of the agent. Before it stand, as steps of the user or the system, those of its messages that no
earlier call of the trial had sent. A call that a fault kept from the model counts as no call. The step's `extra` says what a
fault or a verdict did to the reply, and the trajectory's `notes` that the trial ended in an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from importlib import metadata
from typing import Any

from bench.read.analysis.frames import Run
from bench.read.export.trial_texts import SentCall, TrialTexts, fields_of, of_kinds, trials_of
from bench.record.events import Faulted, Judged
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall

VERSION = "ATIF-v1.7"
JsonValues = dict[str, Any]


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield a file for each trial, named by the trial's id."""
    for trial in trials_of(run):
        yield f"{trial.record.id}.json", json.dumps(trajectory_of(trial, run), indent=1).encode() + b"\n"


def trajectory_of(trial: TrialTexts, run: Run) -> JsonValues:
    """Return the trajectory of a trial."""
    steps = [{"step_id": number, **step} for number, step in enumerate(_steps(trial, run), 1)]
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    totals = {f"total_{key}": sum(metric.get(key) or 0 for metric in metrics) for key in ("prompt_tokens", "completion_tokens")}
    costs = [metric.get("cost_usd") for metric in metrics]
    return {
        "schema_version": VERSION,
        "session_id": trial.run,
        "trajectory_id": trial.record.id,
        "agent": {"name": trial.record.architecture, "version": metadata.version("recovery-bench"), "model_name": trial.label},
        "steps": steps,
        "final_metrics": {
            **totals,
            **({"total_cost_usd": sum(costs)} if costs and None not in costs else {}),
            "total_steps": len(steps),
        },
        **({"notes": f"This trial ended in an error: {trial.error}"} if trial.error else {}),
        "extra": {**trial.attributes, "grade": trial.record.grade and asdict(trial.record.grade)},
    }


def _steps(trial: TrialTexts, run: Run) -> Iterator[JsonValues]:
    shown = set[Message]()
    for sent in trial.calls:
        for message in sent.messages:
            if message not in shown and message.role in ("system", "user"):
                yield {"source": message.role, "message": message.content, "timestamp": _time(trial, sent.event.started)}
            shown.add(message)
        if sent.reply is not None:
            shown.add(Message("assistant", sent.reply, sent.tool_calls))
        yield _step(trial, sent, run)


def _step(trial: TrialTexts, sent: SentCall, run: Run) -> JsonValues:
    call = sent.event
    step: JsonValues = {
        "source": "agent",
        "timestamp": _time(trial, call.started + call.seconds),
        "message": sent.reply or "",
        **({"metrics": _metrics(trial, sent, run), "llm_call_count": 1} if call.asked else {"llm_call_count": 0}),
        "extra": {
            "request": sent.request,
            "subtasks": list(call.subtasks),
            "attempt": call.attempt,
            "cause": call.cause,
            "seconds": call.seconds,
            "failure": call.failure,
            "faults": [fields_of(fault) for fault in of_kinds(trial.record, Faulted) if fault.call == call.call],
            "verdicts": [fields_of(verdict) for verdict in of_kinds(trial.record, Judged) if call.call in verdict.calls],
        },
    }
    if sent.tool_calls:
        step |= _tools(trial, sent)
    return step


def _tools(trial: TrialTexts, sent: SentCall) -> JsonValues:
    """Return the tool calls of a step, with their results from later messages."""
    ids = {call.id for call in sent.tool_calls}
    later = (message for call in trial.calls if call.number > sent.number for message in call.messages)
    results = {message.tool_call_id: message.content for message in later if message.tool_call_id in ids}
    calls = [{"tool_call_id": call.id, "function_name": call.name, "arguments": arguments_of(call)} for call in sent.tool_calls]
    observed = [{"source_call_id": call, "content": content} for call, content in results.items()]
    return {"tool_calls": calls, **({"observation": {"results": observed}} if observed else {})}


def arguments_of(call: ToolCall) -> JsonValues:
    """Return the arguments of a tool call. A text that is no JSON object stands under `text`."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"text": call.arguments}


def _metrics(trial: TrialTexts, sent: SentCall, run: Run) -> JsonValues:
    call, tokens = sent.event, sent.tokens
    answered: Any = run.parameters_of(trial.record.model).answering(call.by, call.subtasks)
    cost = answered.cost(*tokens, call.usage_cached) if answered else None
    metrics: Mapping[str, Any] = {
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "cached_tokens": call.usage_cached,
        "cost_usd": cost,
        "extra": {"counted_by": sent.counted_by},
    }
    return {key: value for key, value in metrics.items() if value is not None}


def _time(trial: TrialTexts, seconds: float) -> str:
    return (trial.began + timedelta(seconds=seconds)).isoformat()
