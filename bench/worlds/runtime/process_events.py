"""What happens to an agent that is a command: its processes, one small type per kind of event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.numbers import Count, Seconds
from bench.runtime.events import EventPart


@dataclass(frozen=True)
class ProcessStarted:
    """The command was started, for the `life`-th time. `started` is the trial's second."""

    life: Count
    started: Seconds
    kind: Literal["process_started"] = "process_started"


@dataclass(frozen=True)
class ProcessEnded:
    """A process ended, with an exit code or by a signal.

    seconds     real ones, from its start
    why         "" where it ended by itself; else what ended it: crash, time limit, folder, error, cancelled; or that it is
                broken, and nobody saw how it ended
    requests    calls of tools that the world's door took from it
    output      digest of the last that it wrote to stdout and stderr, one stream; `written` counts all bytes of it
    own_log     digest of what stood in its own log, `log.jsonl` in its folder; None where there is none
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
    kind: Literal["process_ended"] = "process_ended"


EVENTS = EventPart.of(ProcessStarted, ProcessEnded)
