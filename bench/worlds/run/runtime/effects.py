"""The types of fault effects in a world. The effects themselves are in `bench.worlds.run.effects`.

An effect at `tool` wraps a call: it makes the call once, twice or not at all, and returns what the agent is told, or None if
the call cannot carry it. An effect at `event` says when the agent is told of an event, or in which manner a person answers. At
`process` the agent dies, or a message between it and its workers is lost, doubled or contradicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from bench.common.registry import module_of
from bench.record.plan_entries import Point
from bench.run.trial.effects import Effect
from bench.worlds.run.environment import Acted, Moment
from bench.worlds.run.environment.calling import RefusalCode
from bench.worlds.run.environment.people import Manner
from bench.worlds.run.environment.schedule import NoticeTime


class StruckToolCall(Protocol):
    """One tool call, as a fault effect handles it. `writes` says that the tool changes the world."""

    writes: bool

    def first(self) -> Acted:
        """Make the call once; a later call of this method returns the same result.

        Returns:
            What the tool did.
        """

    def again(self) -> Acted:
        """Deliver the same request to the tool once more.

        Returns:
            What the tool did this time.
        """

    def past(self) -> Acted | None:
        """Return the result that the call would have had before the last change.

        Returns:
            The older result; None if there was no change.
        """

    def without_result(self, reason: str, code: RefusalCode = "unanswered") -> Acted:
        """Return the call as failed, without a result.

        Args:
            reason: Why, in one line.
            code: The reason as a code.

        Returns:
            A failed call.
        """

    def refused_until(self, minutes: int) -> Acted:
        """Return the call as refused because the tool accepts no calls yet.

        Nothing happened, and the agent knows this.

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
        """Let another writer change what the call is about, unnoticed by the agent.

        Returns:
            False if it is about nothing that has a version.
        """


ToolStrike = Callable[[StruckToolCall, int], Acted | None]
NoticeStrike = Callable[[Moment, Moment | None, int], Sequence[NoticeTime] | None]
"""(moment of an event, moment of the next event, minutes) -> the times of its notices; None if the event cannot carry the
effect."""
Death = Literal["before", "unacknowledged", "unrecorded", "recorded", "asked", "mid_reply"]
"""The moment of the death: one of the four points of an effect, after a question to a person, or when half of a model's reply
has arrived."""
ClaimFate = Literal["", "dies", "is shared"]
"""What happens to a claim: nothing; its worker dies after it; a second worker has read that the step is free, and claims it."""


@dataclass(frozen=True)
class StepReport:
    """A worker's report on a step.

    why       why the step failed, or ""
    wanting   whether one of its effects is not known to have happened
    """

    why: str = ""
    wanting: bool = False

    @property
    def is_done(self) -> bool:
        """Return whether the report says that all of the step is done."""
        return not self.why and not self.wanting

    def __str__(self) -> str:
        return self.why or ("an effect is not known to be made" if self.wanting else "all of it is done")


ReportStrike = Callable[[StepReport], StepReport | None]
"""A worker's report -> the report that arrives after it; None if the report cannot carry the effect."""


@dataclass(frozen=True)
class ToolEffect(Effect):
    """An effect on a call of a tool.

    strike       (call, minutes) -> what the agent is told; None if the call cannot carry the effect
    needs_past   whether the world must remember its state before each last change
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
    """An effect on the time when the agent is told of an event.

    strike   (when the event happened, when the next does, minutes) -> the times when the agent is told; None if the event
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
    """An effect on the manner in which a person answers."""

    possible: ClassVar[tuple[Point, ...]] = ("event",)
    manner: Manner
    points: tuple[Point, ...] = field(default=("event",), kw_only=True)
    on: Literal["answer"] = field(default="answer", kw_only=True)


@dataclass(frozen=True)
class ProcessEffect(Effect):
    """The death of the agent's process. `on` is "" if it strikes neither a tool call nor a question.

    dies   where the process dies: at a point of an effect, after a question, or in the middle of a reply
    """

    possible: ClassVar[tuple[Point, ...]] = ("process",)
    dies: Death
    points: tuple[Point, ...] = field(default=("process",), kw_only=True)


@dataclass(frozen=True)
class ClaimEffect(Effect):
    """An effect on a worker who claims a step of the procedure, if several workers take steps from a queue."""

    possible: ClassVar[tuple[Point, ...]] = ("process",)
    befalls: ClaimFate
    points: tuple[Point, ...] = field(default=("process",), kw_only=True)
    on: Literal["claim"] = field(default="claim", kw_only=True)


@dataclass(frozen=True)
class ReportEffect(Effect):
    """An effect on the report of a worker who has claimed a step, on its way to the sender of the worker.

    strike   the worker's report -> the report that arrives after it; None, or the same report, if it cannot carry the effect
    """

    possible: ClassVar[tuple[Point, ...]] = ("process",)
    strike: ReportStrike
    points: tuple[Point, ...] = field(default=("process",), kw_only=True)
    on: Literal["claim"] = field(default="claim", kw_only=True)

    @property
    def modules(self) -> Sequence[str]:
        """Return the module of `strike`."""
        return (module_of(self.strike),)
