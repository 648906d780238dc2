"""What faults do in a world: to a call of a tool, to a notice, to a person's answer, to the agent's process.

`bench.worlds.runtime.effects` has what the runtime knows of an effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.worlds.environment import Acted, Moment
from bench.worlds.environment.schedule import NoticeTime
from bench.worlds.runtime.effects import AnswerEffect, ClaimEffect, NoticeEffect, ProcessEffect, StruckToolCall, ToolEffect

DAY = 24 * 60


def error(call: StruckToolCall, _: int) -> Acted | None:
    """The tool refuses service. Nothing happened; the agent cannot know."""
    return call.unanswered("503 service unavailable", "unavailable")


def slow(call: StruckToolCall, minutes: int) -> Acted | None:
    """So many minutes of world time pass before the call is made."""
    call.pass_time(minutes or 60)
    return call.first()


def stale_read(call: StruckToolCall, _: int) -> Acted | None:
    """What is read is as it was before its last change."""
    return call.past()


def duplicate(call: StruckToolCall, _: int) -> Acted | None:
    """The network delivers the request twice."""
    first = call.first()
    if not first.ok:
        return None
    call.again()
    return first


def lost_ack(call: StruckToolCall, _: int) -> Acted | None:
    """Let the effect happen, and lose its receipt."""
    return call.unanswered("no answer came") if call.first().ok else None


def second_writer(call: StruckToolCall, _: int) -> Acted | None:
    """Somebody else saves what the call is about, between the agent's reading and its call."""
    return call.first() if call.change_elsewhere() else None


def throttled(call: StruckToolCall, minutes: int) -> Acted | None:
    """The tool takes no call for so many minutes of world time, and says when it takes one again."""
    return call.turned_away(minutes or 10)


def late(at: Moment, _: Moment | None, minutes: int) -> Sequence[NoticeTime] | None:
    """The agent hears of it later; the world has changed already."""
    return (NoticeTime(at.after(minutes=minutes or DAY), held=True),)


def doubled(at: Moment, _: Moment | None, __: int) -> Sequence[NoticeTime] | None:
    return (NoticeTime(at), NoticeTime(at))


def reordered(_: Moment, following: Moment | None, __: int) -> Sequence[NoticeTime] | None:
    """The agent hears of it behind the next event."""
    return (NoticeTime(following, held=True),) if following else None


def missed(_: Moment, __: Moment | None, ___: int) -> Sequence[NoticeTime] | None:
    """The agent never hears of it."""
    return ()


EFFECTS = (
    ToolEffect("error", error, on="any"),
    ToolEffect("slow", slow, on="any"),
    ToolEffect("stale_read", stale_read, on="read", needs_past=True),
    ToolEffect("duplicate", duplicate, on="write"),
    ToolEffect("lost_ack", lost_ack, on="write"),
    ToolEffect("second_writer", second_writer, on="write"),
    ToolEffect("throttled", throttled, on="any"),
    NoticeEffect("late", late),
    NoticeEffect("doubled", doubled),
    NoticeEffect("reordered", reordered),
    NoticeEffect("missed", missed),
    AnswerEffect("says_yes", "says_yes"),
    AnswerEffect("answers_late", "answers_late"),
    AnswerEffect("contradicts", "contradicts"),
    AnswerEffect("never_answers", "never_answers"),
    ProcessEffect("before", "before", on="write"),
    ProcessEffect("unacknowledged", "unacknowledged", on="write"),
    ProcessEffect("unrecorded", "unrecorded", on="write"),
    ProcessEffect("recorded", "recorded", on="write"),
    ProcessEffect("approval_pending", "asked", on="ask"),
    ProcessEffect("mid_stream", "mid_reply"),
    ClaimEffect("worker_dies", "dies"),
    ClaimEffect("claimed_twice", "is shared"),
)
