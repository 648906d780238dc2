"""The form `inspect`: a log of Inspect AI (`.eval`) for each arm, written by Inspect's own writer, for its viewer and frames.

A task is a pack, its solver an architecture, a sample an instance, and an epoch a repetition. Each call is a model event,
followed by info events for its faults and verdicts.

A log counts as our reports do. A trial that ended in an error is a sample with an error and without a score, and makes the
log's status `error`, as it makes `bench run` exit with 1. The accuracy is the share solved of the scored trials: no reducer
makes one score of an instance's epochs first. Inspect's own functions work the metrics out, and find the same again later.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from inspect_ai import event as events
from inspect_ai import log as logs
from inspect_ai import model as models
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from inspect_ai.tool import ToolCall

from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.export.atif import arguments_of
from bench.read.export.trial_texts import SentCall, TrialTexts, fields_of, of_kinds, trials_of
from bench.record.events import Faulted, Judged
from bench.record.messages import Message
from bench.record.record import TrialRecord

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
            logs.write_eval_log(log_of(list(trials), run, number), path)
            yield f"{'_'.join(named)}.eval", path.read_bytes()


def log_of(trials: Sequence[TrialTexts], run: Run, number: int) -> logs.EvalLog:
    """Return the log of one arm's trials. `number` is its number in the run."""
    first = trials[0]
    pack, code = run.pack(first.record.scenario), run.manifest.code
    epochs = max(run.config.repetitions, *(trial.record.repetition for trial in trials))
    errors = [trial.error for trial in trials if trial.error]
    samples = list(dict.fromkeys(map(_sample_id, trials)))
    revision = logs.EvalRevision(type="git", origin="", commit=code.commit) if code.commit else None
    spec = logs.EvalSpec(
        eval_id=f"{run.sources[:40]}-{number}",
        run_id=run.name,
        created=first.began.isoformat(),
        task=first.record.scenario,
        task_version=pack.variant,
        task_args={"plan": first.record.plan, "seed": run.config.seed},
        solver=first.record.architecture,
        dataset=logs.EvalDataset(name=first.record.scenario, samples=len(pack.instances), sample_ids=samples),
        model=first.label,
        model_generate_config=models.GenerateConfig(seed=run.config.seed),
        config=logs.EvalConfig(epochs=epochs, epochs_reducer=[], fail_on_error=True, continue_on_fail=True),
        metrics=_metrics(samples),
        revision=revision,
        packages={"recovery-bench": code.version},
        metadata={"sources": run.sources, "simulated": first.is_simulated},
    )
    began = first.began.isoformat()
    log = logs.EvalLog(eval=spec, stats=logs.EvalStats(started_at=began, completed_at=began), samples=[*map(_sample, trials)])
    logs.recompute_metrics(log)
    assert log.results
    log.results.scores = [score for score in log.results.scores if score.scored_samples]
    log.results.total_samples = len(pack.instances) * epochs
    if log.results.total_samples > len(trials):
        log.status = "cancelled" if run.sessions and run.sessions[-1].what == "ended" else "started"
    else:
        log.status = "error" if errors else "success"
    if errors:
        log.error = _error(f"{len(errors)} of {len(trials)} trials ended in an error, the first: {errors[0]}")
    return log


def _metrics(samples: Sequence[str]) -> Any:
    """Return the accuracy and its standard error. The error clusters by instance if there are several, as our intervals do."""
    return [{"name": "accuracy"}, {"name": "stderr", "options": {"cluster": "instance"} if len(samples) > 1 else {}}]


def _error(message: str) -> logs.EvalError:
    return logs.EvalError(message=message, traceback="", traceback_ansi="")


def _sample_id(trial: TrialTexts) -> str:
    return trial.record.instance or trial.record.scenario


def _sample(trial: TrialTexts) -> logs.EvalSample:
    record, calls = trial.record, trial.calls
    last = calls[-1] if calls else None
    usage = sum((_usage(call) for call in calls), models.ModelUsage())
    seconds = record.api_seconds + record.waiting_seconds + record.framework_seconds
    return logs.EvalSample(
        id=_sample_id(trial),
        epoch=record.repetition,
        input=[*map(_message, calls[0].messages)] if calls else "",
        target="",
        messages=[*map(_message, last.messages), _answer(trial, last).message] if last else [],
        output=_answer(trial, last) if last else models.ModelOutput(),
        scores=None if record.outcome in UNUSABLE else {"grade": _score(record)},
        metadata=trial.attributes,
        events=[*_events(trial)],
        model_usage={trial.label: usage},
        started_at=trial.began.isoformat(),
        total_time=seconds,
        working_time=record.api_seconds + record.framework_seconds,
        uuid=record.id,
        error=_error(trial.error) if trial.error else None,
    )


def _score(record: TrialRecord) -> Score:
    grade = record.grade
    parts: Mapping[str, Any] = dict(grade.parts) if grade else {}
    value = CORRECT if record.outcome == "solved" else INCORRECT
    note = record.reason or (grade.note if grade else "")
    return Score(value=value, explanation=note, metadata={"outcome": record.outcome, "parts": parts})


def _events(trial: TrialTexts) -> Iterator[events.Event]:
    beside: dict[int, list[Any]] = {}
    for event in of_kinds(trial.record, Faulted, Judged):
        call = event.call if isinstance(event, Faulted) else max(event.calls, default=0)
        beside.setdefault(call or 0, []).append(event)
    yield from _told(trial, beside.pop(0, ()), 0.0)
    for sent in trial.calls:
        call = sent.event
        yield events.ModelEvent(
            uuid=sent.request,
            timestamp=trial.began + timedelta(seconds=call.started),
            working_start=call.started,
            model=trial.label,
            input=[*map(_message, sent.messages)],
            tools=[],
            tool_choice="auto",
            config=models.GenerateConfig(seed=call.seed),
            output=_answer(trial, sent),
            error=f"{call.failure}: {call.detail}" if call.failure else None,
            retries=call.try_ - 1,
            working_time=call.seconds,
            completed=trial.began + timedelta(seconds=call.started + call.seconds),
            metadata={"subtasks": list(call.subtasks), "attempt": call.attempt, "cause": call.cause, "request": sent.request},
        )
        yield from _told(trial, beside.pop(call.call, ()), call.started + call.seconds)


def _told(trial: TrialTexts, happened: Iterable[Any], seconds: float) -> Iterator[events.Event]:
    for event in happened:
        when = trial.began + timedelta(seconds=seconds)
        yield events.InfoEvent(
            source=f"recovery_bench.{event.kind}", data=fields_of(event), timestamp=when, working_start=seconds
        )


def _answer(trial: TrialTexts, sent: SentCall) -> models.ModelOutput:
    calls = [ToolCall(id=call.id, function=call.name, arguments=arguments_of(call)) for call in sent.tool_calls]
    message = models.ChatMessageAssistant(content=sent.reply or "", tool_calls=calls or None, model=trial.label)
    stop: Any = STOPS.get(sent.event.finish or "", "unknown")
    return models.ModelOutput(
        model=trial.label,
        choices=[models.ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=_usage(sent),
        time=sent.event.seconds,
        error=sent.event.failure,
    )


def _usage(sent: SentCall) -> models.ModelUsage:
    read, written = sent.tokens
    cached = sent.event.usage_cached
    return models.ModelUsage(
        input_tokens=read, output_tokens=written, total_tokens=read + written, input_tokens_cache_read=cached
    )


def _message(message: Message) -> models.ChatMessage:
    match message.role:
        case "system":
            return models.ChatMessageSystem(content=message.content)
        case "user":
            return models.ChatMessageUser(content=message.content)
        case "tool":
            return models.ChatMessageTool(content=message.content, tool_call_id=message.tool_call_id)
        case _:
            calls = [ToolCall(id=call.id, function=call.name, arguments=arguments_of(call)) for call in message.tool_calls]
            return models.ChatMessageAssistant(content=message.content, tool_calls=calls or None)
