"""Two formats. In mcp-chaos a file has a line for each event of a session. Inspect's .eval is a zip archive with a header and a
file for each sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import AliasPath, Field, TypeAdapter

from bench.common.bounds import BoundedTable, Many
from bench.common.errors import one_line
from bench.elsewhere.formats.members import Arguments, ItemId, Read, name_of
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import AGENT, AskedCall, RecordedRun, RecordedTurn, require_unique, trial_of
from bench.record.messages import MessageRole


class ChaosLine(Read):
    kind: str
    tool: str | None = None
    id: ItemId | None = Field(None, validation_alias=AliasPath("detail", "id"))
    ok: bool | None = Field(None, validation_alias=AliasPath("detail", "ok"))
    type: str | None = Field(None, validation_alias=AliasPath("detail", "type"))
    args_hash: str = Field("", validation_alias=AliasPath("detail", "args_hash"))


SLOW = "slow"
"""The fault of mcp-chaos that only delays an answer: its call is answered by a line of its own."""


def chaos_run(where: str, lines: Sequence[ChaosLine]) -> RecordedRun:
    """Return the sessions of mcp-chaos. A fault is recorded as the answer of its call; only `slow` delays the answer instead. A
    call without an answer is counted as left out."""
    sessions, left_out = list[list[RecordedTurn]](), Counter[str]()
    for line in lines:
        if line.kind == "session_start" or not sessions:
            sessions.append([])
        turns, id_ = sessions[-1], line.id or ""
        if line.kind == "tool_call":
            turns.append(RecordedTurn(AGENT, "", (AskedCall(id_, line.tool or "", {"hash": line.args_hash}),)))
        elif line.kind == "tool_result" or (line.kind == "fault" and line.type != SLOW):
            turns.append(RecordedTurn("tool", line.type or "", answers=id_, tool=line.tool, failed=line.ok is not True))
        elif line.kind != "session_start":
            left_out[f"event of the kind {one_line(line.kind, 40)}"] += 1
    name = name_of(where, ".jsonl")
    trials = [trial_of(where, _without_open(turns, left_out), name, str(n)) for n, turns in enumerate(sessions)]
    return RecordedRun("mcp-chaos", require_unique(where, trials), left_out=left_out)


def _without_open(turns: Sequence[RecordedTurn], left_out: Counter[str]) -> Sequence[RecordedTurn]:
    """Return the turns in order. An answer stands behind its call even if calls of one client overlap."""
    answers: dict[str, list[RecordedTurn]] = {}
    for turn in turns:
        if turn.answers is not None:
            answers.setdefault(turn.answers, []).append(turn)
    ordered = list[RecordedTurn]()
    for turn in turns:
        if turn.asked:
            here = answers.get(turn.asked[0].id) or []
            left_out["call without an answer"] += not here
            ordered += [turn, here.pop(0)] if here else []
    ordered += [turn for left in answers.values() for turn in left]  # an answer without its call is refused
    return ordered


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


FORMATS = (
    RecordedFormat("Inspect", frozenset({"eval", "samples"}), TypeAdapter(InspectLog), inspect_log_run),
    RecordedFormat("mcp-chaos", frozenset({"kind", "detail"}), TypeAdapter(Many[ChaosLine]), chaos_run, each=True),
)
