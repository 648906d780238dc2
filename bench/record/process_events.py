"""The events of an agent that is a command: a small type for the start and for the end of its processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.common.numbers import Count, Seconds
from bench.record.events import EventPart


@dataclass(frozen=True)
class ProcessStarted:
    """The command was started for the `life`-th time. `started` is the time in seconds since the trial's start."""

    life: Count
    started: Seconds
    kind: Literal["process_started"] = "process_started"


@dataclass(frozen=True)
class ProcessEnded:
    """A process ended, with an exit code or by a signal.

    seconds     real seconds from its start
    why         "" if it ended by itself; else what ended it: crash, time limit, folder, error, cancelled; or a text which says
                that its end was not seen
    requests    the number of tool calls that the world received from it
    output      digest of the end of its stdout and stderr, which are one stream; `written` is the number of all bytes
    own_log     digest of the new content of its log, `log.jsonl` in its folder; None if there is none
    parts_killed   the number of the agent's processes that a planned kill ended while the others went on; 0 in older records
    """

    life: Count
    code: int | None
    signal: int | None
    seconds: Seconds
    why: str
    requests: Count
    output: str
    written: Count
    own_log: str | None
    parts_killed: Count = 0
    kind: Literal["process_ended"] = "process_ended"


EVENTS = EventPart.of(ProcessStarted, ProcessEnded)
