"""The form `inspect`: a log of Inspect AI (`.eval`) for each arm, written by Inspect's own writer, for its viewer and frames.

A task is a pack, its solver an architecture, a sample an instance, and an epoch a repetition. Each call is a model event,
followed by info events for its faults and verdicts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from inspect_ai.event import Event, InfoEvent, ModelEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalRevision,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from inspect_ai.tool import ToolCall

from bench.analysis.frames import Run
from bench.exchange.atif import arguments_of
from bench.exchange.trial_texts import SentCall, TrialTexts, fields_of, of_kinds, trials_of
from bench.models.base import Message
from bench.runtime.events import Faulted, Judged

STOPS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
"""OpenAI's finish reason -> Inspect's."""


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield a log for each arm."""

    def arm(trial: TrialTexts) -> tuple[str, str, str, str]:
        record = trial.record
        return record.scenario, record.architecture, record.model, record.plan

    with tempfile.TemporaryDirectory() as folder:
        for number, (named, trials) in enumerate(groupby(sorted(trials_of(run), key=arm), key=arm), 1):
            path = Path(folder, "log.eval")
            write_eval_log(log_of(list(trials), run, number), path)
            yield f"{'_'.join(named)}.eval", path.read_bytes()


def log_of(trials: Sequence[TrialTexts], run: Run, number: int) -> EvalLog:
    """Return the log of one arm's trials. `number` is its number in the run."""
    first = trials[0]
    pack, code = run.pack(first.record.scenario), run.manifest.code
    ended = [trial for trial in trials if trial.record.outcome != "error"]
    solved = sum(trial.record.outcome == "solved" for trial in ended)
    accuracy = EvalMetric(name="accuracy", value=solved / len(ended) if ended else 0.0)
    revision = EvalRevision(type="git", origin="", commit=code.commit) if code.commit else None
    spec = EvalSpec(
        eval_id=f"{run.sources[:40]}-{number}",
        run_id=run.name,
        created=first.began.isoformat(),
        task=first.record.scenario,
        task_version=pack.variant,
        task_args={"plan": first.record.plan, "seed": run.config.seed},
        solver=first.record.architecture,
        dataset=EvalDataset(name=first.record.scenario, samples=len(pack.instances), sample_ids=[*map(_sample_id, trials)]),
        model=first.label,
        model_generate_config=GenerateConfig(seed=run.config.seed),
        config=EvalConfig(epochs=run.config.repetitions),
        revision=revision,
        packages={"recovery-bench": code.version},
        metadata={"sources": run.sources, "simulated": first.is_simulated},
    )
    results = EvalResults(
        total_samples=len(trials),
        completed_samples=len(ended),
        scores=[EvalScore(name="grade", scorer="grade", scored_samples=len(ended), metrics={"accuracy": accuracy})],
    )
    began = first.began.isoformat()
    return EvalLog(
        status="success",
        eval=spec,
        results=results,
        stats=EvalStats(started_at=began, completed_at=began),
        samples=[_sample(trial) for trial in trials],
    )


def _sample_id(trial: TrialTexts) -> str:
    return trial.record.instance or trial.record.scenario


def _sample(trial: TrialTexts) -> EvalSample:
    record, calls = trial.record, trial.calls
    grade = record.grade
    value = CORRECT if record.outcome == "solved" else INCORRECT
    note = record.reason or (grade.note if grade else "")
    last, parts = calls[-1] if calls else None, dict(grade.parts) if grade else {}
    usage = sum((_usage(call) for call in calls), ModelUsage())
    seconds = record.api_seconds + record.waiting_seconds + record.framework_seconds
    return EvalSample(
        id=_sample_id(trial),
        epoch=record.repetition,
        input=[*map(_message, calls[0].messages)] if calls else "",
        target="",
        messages=[*map(_message, last.messages), _answer(trial, last).message] if last else [],
        output=_answer(trial, last) if last else ModelOutput(),
        scores={"grade": Score(value=value, explanation=note, metadata={"outcome": record.outcome, "parts": parts})},
        metadata=trial.attributes,
        events=[*_events(trial)],
        model_usage={trial.label: usage},
        started_at=trial.began.isoformat(),
        total_time=seconds,
        working_time=record.api_seconds + record.framework_seconds,
        uuid=record.id,
    )


def _events(trial: TrialTexts) -> Iterator[Event]:
    beside: dict[int, list[Any]] = {}
    for event in of_kinds(trial.record, Faulted, Judged):
        call = event.call if isinstance(event, Faulted) else max(event.calls, default=0)
        beside.setdefault(call or 0, []).append(event)
    yield from _told(trial, beside.pop(0, ()), 0.0)
    for sent in trial.calls:
        call = sent.event
        yield ModelEvent(
            uuid=sent.request,
            timestamp=trial.began + timedelta(seconds=call.started),
            working_start=call.started,
            model=trial.label,
            input=[*map(_message, sent.messages)],
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(seed=call.seed),
            output=_answer(trial, sent),
            error=f"{call.failure}: {call.detail}" if call.failure else None,
            retries=call.try_ - 1,
            working_time=call.seconds,
            completed=trial.began + timedelta(seconds=call.started + call.seconds),
            metadata={"subtasks": list(call.subtasks), "attempt": call.attempt, "cause": call.cause, "request": sent.request},
        )
        yield from _told(trial, beside.pop(call.call, ()), call.started + call.seconds)


def _told(trial: TrialTexts, events: Iterable[Any], seconds: float) -> Iterator[Event]:
    for event in events:
        when = trial.began + timedelta(seconds=seconds)
        yield InfoEvent(source=f"recovery_bench.{event.kind}", data=fields_of(event), timestamp=when, working_start=seconds)


def _answer(trial: TrialTexts, sent: SentCall) -> ModelOutput:
    calls = [ToolCall(id=call.id, function=call.name, arguments=arguments_of(call)) for call in sent.tool_calls]
    message = ChatMessageAssistant(content=sent.reply or "", tool_calls=calls or None, model=trial.label)
    stop: Any = STOPS.get(sent.event.finish or "", "unknown")
    return ModelOutput(
        model=trial.label,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=_usage(sent),
        time=sent.event.seconds,
        error=sent.event.failure,
    )


def _usage(sent: SentCall) -> ModelUsage:
    """Return the provider's count if there is one, else ours."""
    call = sent.event
    read, written = (call.tokens_in, call.tokens_out)
    if call.usage_in is not None and call.usage_out is not None:
        read, written = call.usage_in, call.usage_out
    return ModelUsage(
        input_tokens=read, output_tokens=written, total_tokens=read + written, input_tokens_cache_read=call.usage_cached
    )


def _message(message: Message) -> ChatMessage:
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.content)
        case "user":
            return ChatMessageUser(content=message.content)
        case "tool":
            return ChatMessageTool(content=message.content, tool_call_id=message.tool_call_id)
        case _:
            calls = [ToolCall(id=call.id, function=call.name, arguments=arguments_of(call)) for call in message.tool_calls]
            return ChatMessageAssistant(content=message.content, tool_calls=calls or None)
