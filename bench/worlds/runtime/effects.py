"""What a fault can do in a world, as the runtime knows it. The effects themselves are parts: `bench.worlds.effects` has ours.

At `tool` an effect stands around a call: it makes the call, or not, or twice, and says what the agent is told of it; None where
the call could not carry it. At `event` it says when the agent is told of what happened, or in which manner a person answers. At
`process` the agent dies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from bench.registry import module_of
from bench.runtime.effects import Effect, Point
from bench.worlds.environment import Acted, Moment
from bench.worlds.environment.calling import RefusalCode
from bench.worlds.environment.people import Manner
from bench.worlds.environment.schedule import NoticeTime


class StruckToolCall(Protocol):
    """One call of a tool, as an effect has it in hand. `writes`: the tool changes the world."""

    writes: bool

    def first(self) -> Acted:
        """Make the call; however often it is asked for, once.

        Returns:
            What the tool did.
        """

    def again(self) -> Acted:
        """Let the same request arrive at the tool once more.

        Returns:
            What the tool did this time.
        """

    def past(self) -> Acted | None:
        """Return what the call would have shown before the last change.

        Returns:
            The older result; None where there was no change.
        """

    def unanswered(self, reason: str, code: RefusalCode = "unanswered") -> Acted:
        """Return what the agent is told where no result comes.

        Args:
            reason: Why, in one line.
            code: The same, for code to branch on.

        Returns:
            A failed call.
        """

    def turned_away(self, minutes: int) -> Acted:
        """Return what the agent is told where the tool takes no call yet; nothing happened, and the agent knows it.

        Args:
            minutes: Minutes of world time after which a call is taken.

        Returns:
            A refused call with the code `throttled`, and when such a call is taken again.
        """

    def pass_time(self, minutes: int) -> None:
        """Let world time pass.

        Args:
            minutes: Minutes of world time.
        """

    def change_elsewhere(self) -> bool:
        """Let somebody else save what the call is about, unnoticed.

        Returns:
            False where it is about nothing that has a version.
        """


ToolStrike = Callable[[StruckToolCall, int], Acted | None]
NoticeStrike = Callable[[Moment, Moment | None, int], Sequence[NoticeTime] | None]
"""(when an event happened, when the next does, minutes) -> when the agent is told; None where it cannot be carried."""
Death = Literal["before", "unacknowledged", "unrecorded", "recorded", "asked", "mid_reply"]
"""At one of the four points of an effect, when a person was asked, or when half of a reply of the model is there."""
ClaimFate = Literal["", "dies", "is shared"]
"""What befalls a claim: nothing; its worker dies behind it; a second worker has read that the step is free, and claims it."""


@dataclass(frozen=True)
class ToolEffect(Effect):
    """An effect on a call of a tool.

    strike       (call, minutes) -> what the agent is told; None where the call cannot carry the effect
    needs_past   the world must remember what was before its last change
    """

    possible: ClassVar[tuple[Point, ...]] = ("tool",)
    strike: ToolStrike
    needs_past: bool = False
    points: tuple[Point, ...] = field(default=("tool",), kw_only=True)

    @property
    def modules(self) -> Sequence[str]:
        """Return the module of `strike`."""
        return (module_of(self.strike),)


@dataclass(frozen=True)
class NoticeEffect(Effect):
    """An effect on when the agent is told of an event.

    strike   (when the event happened, when the next does, minutes) -> when the agent is told, each time; None where the event
             cannot carry the effect
    """

    possible: ClassVar[tuple[Point, ...]] = ("event",)
    strike: NoticeStrike
    points: tuple[Point, ...] = field(default=("event",), kw_only=True)

    @property
    def modules(self) -> Sequence[str]:
        """Return the module of `strike`."""
        return (module_of(self.strike),)


@dataclass(frozen=True)
class AnswerEffect(Effect):
    """An effect on a person who is asked: in which manner the question is answered."""

    possible: ClassVar[tuple[Point, ...]] = ("event",)
    manner: Manner
    points: tuple[Point, ...] = field(default=("event",), kw_only=True)
    on: Literal["answer"] = field(default="answer", kw_only=True)


@dataclass(frozen=True)
class ProcessEffect(Effect):
    """The agent's death. `on` is "" where neither a call of a tool nor a question is struck.

    dies   at which point of an effect, behind a question, or in which half of a reply
    """

    possible: ClassVar[tuple[Point, ...]] = ("process",)
    dies: Death
    points: tuple[Point, ...] = field(default=("process",), kw_only=True)


@dataclass(frozen=True)
class ClaimEffect(Effect):
    """An effect on a worker who claims a step of the procedure, where several take steps from a queue."""

    possible: ClassVar[tuple[Point, ...]] = ("process",)
    befalls: ClaimFate
    points: tuple[Point, ...] = field(default=("process",), kw_only=True)
    on: Literal["claim"] = field(default="claim", kw_only=True)
