"""What a fault does in a world: one function and one row of WORLD_EFFECTS each.

At `tool` an effect stands around a call: it makes the call, or not, or twice, and says what the agent is told of it; None where
the call could not carry it. At `event` it says when the agent is told of what happened. At `process` the agent dies: at one of
the four points of an effect, or, `mid_stream`, when half of a reply of the model is there; the row's name is that point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bench.environment import Acted, Moment
from bench.environment.calling import Code
from bench.environment.schedule import Told
from bench.runtime.effects import EFFECTS, Point

Places = Literal["tool", "event", "process"]
DAY = 24 * 60


class ToolCall(Protocol):
    """One call of a tool, as an effect has it in hand."""

    writes: bool

    def first(self) -> Acted:
        """Make the call; however often it is asked for, once."""

    def again(self) -> Acted:
        """The same request arrives at the tool once more."""

    def past(self) -> Acted | None:
        """What it would have shown before the last change."""

    def unanswered(self, reason: str, code: Code = "unanswered") -> Acted:
        """What the agent is told where no result comes."""

    def pass_time(self, minutes: int) -> None: ...


Strike = Callable[[ToolCall, int], Acted | None]
Tell = Callable[[Moment, Moment | None, int], Sequence[Told] | None]
"""(when an event happened, when the next does, minutes) -> when the agent is told; None where it cannot be carried."""


@dataclass(frozen=True)
class WorldEffect:
    """A row of WORLD_EFFECTS. `on`: which tools it can strike; "" where it strikes none."""

    point: Places
    strike: Strike | None = None
    tell: Tell | None = None
    on: Literal["", "read", "write", "any"] = ""


def error(call: ToolCall, _: int) -> Acted | None:
    """The tool refuses service. Nothing happened; the agent cannot know."""
    return call.unanswered("503 service unavailable", "unavailable")


def slow(call: ToolCall, minutes: int) -> Acted | None:
    """So many minutes of world time pass before the call is made."""
    call.pass_time(minutes or 60)
    return call.first()


def stale_read(call: ToolCall, _: int) -> Acted | None:
    """What is read is as it was before its last change."""
    return call.past()


def duplicate(call: ToolCall, _: int) -> Acted | None:
    """The network delivers the request twice."""
    first = call.first()
    if not first.ok:
        return None
    call.again()
    return first


def lost_ack(call: ToolCall, _: int) -> Acted | None:
    """It happens, and its receipt is lost."""
    return call.unanswered("no answer came") if call.first().ok else None


def late(at: Moment, _: Moment | None, minutes: int) -> Sequence[Told] | None:
    """The agent hears of it later; the world has changed already."""
    return (Told(at.after(minutes=minutes or DAY), held=True),)


def doubled(at: Moment, _: Moment | None, __: int) -> Sequence[Told] | None:
    return (Told(at), Told(at))


def reordered(_: Moment, following: Moment | None, __: int) -> Sequence[Told] | None:
    """The agent hears of it behind the next event."""
    return (Told(following, held=True),) if following else None


WORLD_EFFECTS: dict[str, WorldEffect] = {
    "error": WorldEffect("tool", error, on="any"),
    "slow": WorldEffect("tool", slow, on="any"),
    "stale_read": WorldEffect("tool", stale_read, on="read"),
    "duplicate": WorldEffect("tool", duplicate, on="write"),
    "lost_ack": WorldEffect("tool", lost_ack, on="write"),
    "late": WorldEffect("event", tell=late),
    "doubled": WorldEffect("event", tell=doubled),
    "reordered": WorldEffect("event", tell=reordered),
    "before": WorldEffect("process", on="write"),
    "unacknowledged": WorldEffect("process", on="write"),
    "unrecorded": WorldEffect("process", on="write"),
    "recorded": WorldEffect("process", on="write"),
    "mid_stream": WorldEffect("process"),
}
WORLD_POINTS: frozenset[Point] = frozenset({"tool", "event", "process"})


def points_of(effect: str) -> frozenset[Point]:
    """Where an effect of this name can strike; empty where there is none."""
    points = set(EFFECTS[effect].points) if effect in EFFECTS else set()
    if effect in WORLD_EFFECTS:
        points.add(WORLD_EFFECTS[effect].point)
    return frozenset(points)
