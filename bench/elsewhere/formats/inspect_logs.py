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


def inspect_run(where: str, header: InspectHeader, samples: Sequence[InspectSample]) -> RecordedRun:
    """Return the samples of an Inspect log. A sample is solved if all its scores say that it is, and unsolved if one of them
    says that it is not."""
    trials = []
    for sample in samples:
        values = [score.value for score in (sample.scores or {}).values()]
        known = values and not any(isinstance(value, dict | list) or value not in (*RIGHT, *WRONG) for value in values)
        turns = [_inspect_turn(message) for message in sample.messages]
        usage = sample.model_usage.values()
        if usage and turns:
            counted = sum(each.input_tokens for each in usage), sum(each.output_tokens for each in usage)
            turns.append(RecordedTurn("system", provider=counted))
        solved = all(value in RIGHT for value in values) if known else None
        trials.append(trial_of(where, turns, sample.id, str(sample.epoch), solved=solved))
    return RecordedRun("Inspect", require_unique(where, trials), header.model)


def inspect_log_run(where: str, log: InspectLog) -> RecordedRun:
    """Return the samples of a log in JSON."""
    return inspect_run(where, log, log.samples)


def _inspect_turn(message: InspectMessage) -> RecordedTurn:
    content = message.content
    text = content if isinstance(content, str) else "\n".join(part.text for part in content if part.text)
    if message.role == "tool":
        failed = message.error is not None
        return RecordedTurn("tool", text, answers=message.tool_call_id or "", tool=message.function, failed=failed)
    asked = tuple(AskedCall(call.id, call.function, call.arguments) for call in message.tool_calls or ())
    return RecordedTurn(message.role, text, asked)


FORMATS = (RecordedFormat("Inspect", frozenset({"eval", "samples"}), TypeAdapter(InspectLog), inspect_log_run),)
