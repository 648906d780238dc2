"""The data frames of trials in worlds. `run.steps` has a row for each step of a procedure that began. `run.tool_calls` has a
row for each tool call, with the outcome that the agent was told."""

from __future__ import annotations

from bench.read.analysis.rows import Column, FramePart, FrameRows
from bench.record.events import of_kind
from bench.record.world_events import ToolCalled
from bench.worlds.read.workflow import StepTaken, steps_of

STEPS: tuple[Column[StepTaken], ...] = (
    Column("step", "str", "name"),
    Column("attempts", "int64", "attempts"),
    Column("done", "bool", "done"),
    Column("why", "str", "why"),
    Column("minutes", "Int64", "minutes"),
)


TOOL_CALLS: tuple[Column[ToolCalled], ...] = (
    Column("tool", "str", "tool"),
    Column("kind", "str", "access"),
    Column("effect", "str", "effect"),
    Column("try", "int64", "try_"),
    Column("key", "str", lambda call, _: call.key or ""),
    Column("outcome", "str", "outcome"),
    Column("code", "str", "code"),
    Column("reason", "str", "reason"),
    Column("decision", "str", "decision"),
    Column("rule", "str", "rule"),
    Column("life", "int64", "life"),
    Column("day", "int64", "day"),
    Column("minute", "int64", "minute"),
    Column("started", "float64", "started"),
    Column("entry", "int64", "entry"),
    Column("changed", "bool", lambda call, _: call.before != call.after),
)
FRAMES = (
    FramePart("tool_calls", FrameRows(lambda trial: of_kind(trial.record.events, ToolCalled), TOOL_CALLS)),
    FramePart("steps", FrameRows(lambda trial: trial.once(steps_of), STEPS)),
)
