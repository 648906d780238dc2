"""Check that a record has each tool call of a command's processes, and each of their planned kills, exactly once."""

from __future__ import annotations

from collections.abc import Sequence

from bench.record.events import Event, of_kind
from bench.record.probe_events import GatewayCall
from bench.record.process_events import ProcessEnded
from bench.record.world_events import ProcessDied, ToolCalled


def booking_gap(events: Sequence[Event]) -> str | None:
    """Return in words which counts of a trial do not agree; None if all do.

    Each call that the world's door took must be a call in the record, unless the agent was killed before it. Each process that
    a planned kill ended must be a crash in the record, and each crash must be such a process.
    """
    ended_processes = of_kind(events, ProcessEnded)
    if not ended_processes or of_kind(events, GatewayCall):  # a probe's gateway books its calls itself
        return None
    deaths = of_kind(events, ProcessDied)
    received = sum(end.requests for end in ended_processes)
    booked = len(of_kind(events, ToolCalled)) + sum(death.point == "before" for death in deaths)
    if received != booked:
        return f"the world's door took {received} calls, and {booked} are in the record"
    killed = sum((end.why == "crash") + end.parts_killed for end in ended_processes)
    if killed != len(deaths):
        return f"{killed} processes were killed as planned, and {len(deaths)} crashes are in the record"
    return None
