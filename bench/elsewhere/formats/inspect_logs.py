"""Inspect's log, in JSON or as .eval: a zip archive with a header and a file for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import AliasPath, Field, TypeAdapter

from bench.common.bounds import BoundedTable, Many
from bench.elsewhere.formats.members import Arguments, ChatRole, ItemId, MemberModel
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import AskedCall, RecordedRun, RecordedTurn, require_unique, trial_of


class InspectText(MemberModel):
    text: str = ""


class InspectCall(MemberModel):
    id: ItemId
    function: str
    arguments: Arguments = Field(default_factory=dict)


class InspectUsage(MemberModel):
    input_tokens: int = 0
    output_tokens: int = 0


class InspectMessage(MemberModel):
    role: ChatRole
    content: str | Many[InspectText] = ""
    tool_calls: Many[InspectCall] | None = None
    tool_call_id: ItemId | None = None
    function: str | None = None
    error: Any = None


class InspectScore(MemberModel):
    value: Any = None


class InspectSample(MemberModel):
    id: ItemId
    epoch: int = 1
    messages: Many[InspectMessage]
    scores: BoundedTable[str, InspectScore] | None = None
    model_usage: BoundedTable[str, InspectUsage] = Field(default_factory=dict)


class InspectHeader(MemberModel):
    model: str = Field("", validation_alias=AliasPath("eval", "model"))


class InspectLog(InspectHeader):
    """A log in JSON, in one file."""

    samples: Many[InspectSample] = ()


SOLVED_VALUES, UNSOLVED_VALUES = ("C", 1, 1.0, True), ("I", 0, 0.0, False)
"""The values of a score of Inspect for a solved and for an unsolved sample. Any other value is no outcome."""


def inspect_run(file_name: str, header: InspectHeader, samples: Sequence[InspectSample]) -> RecordedRun:
    """Return the samples of an Inspect log as trials. A sample is solved if all its scores mean solved, and unsolved if one of
    them means unsolved."""
    trials = []
    for sample in samples:
        values = [score.value for score in (sample.scores or {}).values()]
        has_outcome = values and not any(
            isinstance(value, dict | list) or value not in (*SOLVED_VALUES, *UNSOLVED_VALUES) for value in values
        )
        turns = [_turn_of(message) for message in sample.messages]
        usage = sample.model_usage.values()
        if usage and turns:
            tokens_in, tokens_out = sum(used.input_tokens for used in usage), sum(used.output_tokens for used in usage)
            turns.append(RecordedTurn("system", provider=(tokens_in, tokens_out)))
        solved = all(value in SOLVED_VALUES for value in values) if has_outcome else None
        trials.append(trial_of(file_name, turns, sample.id, str(sample.epoch), solved=solved))
    return RecordedRun("Inspect", require_unique(file_name, trials), header.model)


def inspect_log_run(file_name: str, log: InspectLog) -> RecordedRun:
    """Return the samples of a log in JSON."""
    return inspect_run(file_name, log, log.samples)


def _turn_of(message: InspectMessage) -> RecordedTurn:
    """Return a message of an Inspect log in the common form."""
    content = message.content
    text = content if isinstance(content, str) else "\n".join(part.text for part in content if part.text)
    if message.role == "tool":
        failed = message.error is not None
        return RecordedTurn("tool", text, answers=message.tool_call_id or "", tool=message.function, failed=failed)
    calls = tuple(AskedCall(call.id, call.function, call.arguments) for call in message.tool_calls or ())
    return RecordedTurn(message.role, text, calls)


FORMATS = (RecordedFormat("Inspect", frozenset({"eval", "samples"}), TypeAdapter(InspectLog), inspect_log_run),)
