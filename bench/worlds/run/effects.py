"""The fault effects of a world: on a tool call, a notice, a person's answer, the agent's process or a worker's report.

`bench.worlds.run.runtime.effects` defines the types that the runtime uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.worlds.run.environment import Acted, Moment
from bench.worlds.run.environment.schedule import NoticeTime
from bench.worlds.run.runtime.effects import (
    AnswerEffect,
    ClaimEffect,
    NoticeEffect,
    ProcessEffect,
    ReportEffect,
    StepReport,
    StruckToolCall,
    ToolEffect,
)

DAY = 24 * 60


def error(call: StruckToolCall, _: int) -> Acted | None:
    """Fail the call as unavailable. Nothing happens in the world, but the agent cannot know this."""
    return call.without_result("503 service unavailable", "unavailable")


def slow(call: StruckToolCall, minutes: int) -> Acted | None:
    """Let this many minutes of world time pass before the call is made. 0 means 60."""
    call.pass_time(minutes or 60)
    return call.first()


def stale_read(call: StruckToolCall, _: int) -> Acted | None:
    """Return the result that the read would have had before the last change."""
    return call.past()


def duplicate(call: StruckToolCall, _: int) -> Acted | None:
    """Make the call twice, as if the network delivered the request twice. Return the first answer."""
    first = call.first()
    if not first.ok:
        return None
    call.again()
    return first


def lost_ack(call: StruckToolCall, _: int) -> Acted | None:
    """Make the call and lose its answer."""
    return call.without_result("no answer came") if call.first().ok else None


def second_writer(call: StruckToolCall, _: int) -> Acted | None:
    """Let another writer change the thing that the call is about, after the agent read it and before the call."""
    return call.first() if call.change_elsewhere() else None


def throttle(call: StruckToolCall, minutes: int) -> Acted | None:
    """Refuse calls of this tool for this many minutes of world time (0 means 10), and say when calls are accepted again."""
    return call.refused_until(minutes or 10)


def late(at: Moment, _: Moment | None, minutes: int) -> Sequence[NoticeTime] | None:
    """Deliver the notice later (0 minutes means one day). The world has changed at the event's own time."""
    return (NoticeTime(at.after(minutes=minutes or DAY), held=True),)


def deliver_twice(at: Moment, _: Moment | None, __: int) -> Sequence[NoticeTime] | None:
    """Deliver the notice twice."""
    return (NoticeTime(at), NoticeTime(at))


def deliver_after_next(_: Moment, following: Moment | None, __: int) -> Sequence[NoticeTime] | None:
    """Deliver the notice after the next event."""
    return (NoticeTime(following, held=True),) if following else None


def never_deliver(_: Moment, __: Moment | None, ___: int) -> Sequence[NoticeTime] | None:
    """Never deliver the notice."""
    return ()


def report_contradicted(report: StepReport) -> StepReport | None:
    """Let a second report arrive that contradicts the first: it says that a finished step has failed, or that any other step is
    finished."""
    return StepReport("failed", wanting=True) if report.is_done else StepReport()


EFFECTS = (
    ToolEffect("error", error, on="any"),
    ToolEffect("slow", slow, on="any"),
    ToolEffect("stale_read", stale_read, on="read", needs_past=True),
    ToolEffect("duplicate", duplicate, on="write"),
    ToolEffect("lost_ack", lost_ack, on="write"),
    ToolEffect("second_writer", second_writer, on="write"),
    ToolEffect("throttled", throttle, on="any"),
    NoticeEffect("late", late),
    NoticeEffect("doubled", deliver_twice),
    NoticeEffect("reordered", deliver_after_next),
    NoticeEffect("missed", never_deliver),
    AnswerEffect("says_yes", "says_yes"),
    AnswerEffect("answers_late", "answers_late"),
    AnswerEffect("contradicts", "contradicts"),
    AnswerEffect("never_answers", "never_answers"),
    AnswerEffect("model_answers", "model_answers"),
    ProcessEffect("before", "before", on="write"),
    ProcessEffect("unacknowledged", "unacknowledged", on="write"),
    ProcessEffect("unrecorded", "unrecorded", on="write"),
    ProcessEffect("recorded", "recorded", on="write"),
    ProcessEffect("approval_pending", "asked", on="ask"),
    ProcessEffect("mid_stream", "mid_reply"),
    ClaimEffect("worker_dies", "dies"),
    ClaimEffect("claimed_twice", "is shared"),
    ReportEffect("report_contradicted", report_contradicted),
)
