"""Inspect's log, in JSON or as .eval: a zip archive with a header and a file for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import AliasPath, Field, TypeAdapter

from bench.common.bounds import BoundedTable, Many
from bench.elsewhere.formats.members import Arguments, ItemId, Read
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import AskedCall, RecordedRun, RecordedTurn, require_unique, trial_of
from bench.record.messages import MessageRole


class InspectText(Read):
    text: str = ""


class InspectCall(Read):
    id: ItemId
    function: str
    arguments: Arguments = Field(default_factory=dict)


class InspectUsage(Read):
    input_tokens: int = 0
    output_tokens: int = 0


class InspectMessage(Read):
    role: MessageRole
    content: str | Many[InspectText] = ""
    tool_calls: Many[InspectCall] | None = None
    tool_call_id: ItemId | None = None
    function: str | None = None
    error: Any = None


class InspectScore(Read):
    value: Any = None


class InspectSample(Read):
    id: ItemId
    epoch: int = 1
    messages: Many[InspectMessage]
    scores: BoundedTable[str, InspectScore] | None = None
    model_usage: BoundedTable[str, InspectUsage] = Field(default_factory=dict)


class InspectHeader(Read):
    model: str = Field("", validation_alias=AliasPath("eval", "model"))


class InspectLog(InspectHeader):
    """A log in JSON, in one file."""

    samples: Many[InspectSample] = ()


RIGHT, WRONG = ("C", 1, 1.0, True), ("I", 0, 0.0, False)
"""What a score of Inspect says if a sample is solved or not. Any other value is no outcome."""


def inspect_run(file_name: str, header: InspectHeader, samples: Sequence[InspectSample]) -> RecordedRun:
    """Return the samples of an Inspect log as trials. A sample is solved if all its scores say so, and unsolved if one score
    says so."""
    trials = []
    for sample in samples:
        values = [score.value for score in (sample.scores or {}).values()]
        has_outcome = values and not any(isinstance(value, dict | list) or value not in (*RIGHT, *WRONG) for value in values)
        turns = [_inspect_turn(message) for message in sample.messages]
        usage = sample.model_usage.values()
        if usage and turns:
            tokens = (
                sum(usage_entry.input_tokens for usage_entry in usage),
                sum(usage_entry.output_tokens for usage_entry in usage),
            )
            turns.append(RecordedTurn("system", provider=tokens))
        solved = all(value in RIGHT for value in values) if has_outcome else None
        trials.append(trial_of(file_name, turns, sample.id, str(sample.epoch), solved=solved))
    return RecordedRun("Inspect", require_unique(file_name, trials), header.model)


def inspect_log_run(file_name: str, log: InspectLog) -> RecordedRun:
    """Return the samples of a log in JSON."""
    return inspect_run(file_name, log, log.samples)


def _inspect_turn(message: InspectMessage) -> RecordedTurn:
    """Return a message of an Inspect log in the common form."""
    content = message.content
    text = content if isinstance(content, str) else "\n".join(part.text for part in content if part.text)
    if message.role == "tool":
        failed = message.error is not None
        return RecordedTurn("tool", text, answers=message.tool_call_id or "", tool=message.function, failed=failed)
    calls = tuple(AskedCall(call.id, call.function, call.arguments) for call in message.tool_calls or ())
    return RecordedTurn(message.role, text, calls)


FORMATS = (RecordedFormat("Inspect", frozenset({"eval", "samples"}), TypeAdapter(InspectLog), inspect_log_run),)
