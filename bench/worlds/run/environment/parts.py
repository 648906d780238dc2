"""The parts that a pack declares for its world: tools, events, people, a policy.

They are values; `world.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from bench.record.moment import Moment
from bench.worlds.run.environment.database import Db

ToolAccess = Literal["read", "compensable", "final"]
"""read          changes nothing; a read that writes is refused and rolled back
compensable   changes the world; its `undo` takes the change back
final         changes the world for good"""
WRITES: tuple[ToolAccess, ...] = ("compensable", "final")
Payload = Mapping[str, Any]
"""JSON values by name."""


def about_nothing(_: Any) -> tuple[str, ...]:
    """Return an empty tuple, for a tool or event that concerns nothing with a version.

    Args:
        _: A call's arguments, or an event's payload.

    Returns:
        An empty tuple.
    """
    return ()


@dataclass(frozen=True)
class Tool:
    """A tool with which an agent changes or reads the world.

    run           (db, arguments, now) -> an instance of `result`; raises `bench.common.errors.ToolRefused` if the
                  business refuses
    effect        (arguments) -> the business key of the call's effect, "refund of order 17": equal for two calls that mean the
                  same effect. Required for a tool that writes. An undo has the key of the effect that it undoes.
    undo          the tool that takes back the effect of a compensable tool
    undoing       (arguments, result) -> the arguments of the undo; None if they are the same as the tool's
    about         (arguments) -> the things that the call reads or changes, "order 17": the version of each shows whether the
                  call is stale
    due           (db, arguments) -> the last moment at which the effect is in time; None if any moment is
    minutes       minutes of world time that a call takes
    """

    name: str
    kind: ToolAccess
    arguments: type[BaseModel]
    result: type[BaseModel]
    run: Callable[[Db, Any, Moment], BaseModel]
    effect: Callable[[Any], str] | None = None
    undo: str = ""
    undoing: Callable[[Any, Any], Payload] | None = None
    about: Callable[[Any], tuple[str, ...]] = about_nothing
    due: Callable[[Db, Any], Moment | None] | None = None
    minutes: int = 0
    description: str = ""

    @property
    def writes(self) -> bool:
        """Return whether the tool changes the world."""
        return self.kind in WRITES


@dataclass(frozen=True)
class EventKind:
    """A kind of event.

    `apply` changes the world when the event happens; `about` names the things that it changes.
    """

    name: str
    apply: Callable[[Db, Payload, Moment], None] | None = None
    about: Callable[[Payload], tuple[str, ...]] = about_nothing


@dataclass(frozen=True)
class Scheduled:
    """An event that comes whatever the agent does. Its unique `name` is a key of the faults' draws."""

    name: str
    kind: str
    at: Moment
    payload: Payload = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """A notice of an event, as it reached the agent.

    `number` counts the notices from 1. A doubled event has two notices.
    """

    number: int
    at: Moment
    kind: str
    name: str
    payload: Payload
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Person:
    """A person who can be asked. Answers come as events of kind `answer`, by declared chances.

    decides       (db, question, now) -> whether a careful person would approve at that moment
    record        (db, question, approved, now): writes the answer into the pack's tables, so that a policy can see it
    minutes       minutes of world time until the answer; with chance `late` the answer takes `late_minutes` instead; with
                  chance `silent` no answer ever comes
    wrong         the chance that the answer is the contrary of a careful person's answer
    contradicts   the chance that the contrary answer follows, `minutes` later
    """

    decides: Callable[[Db, Payload, Moment], bool]
    record: Callable[[Db, Payload, bool, Moment], None] | None = None
    minutes: int = 60
    late: float = 0.0
    late_minutes: int = 3 * 24 * 60
    silent: float = 0.0
    wrong: float = 0.0
    contradicts: float = 0.0


@dataclass(frozen=True)
class PolicyVerdict:
    """A policy's verdict on an effect.

    An effect that happens although it was denied, or without an approval that it needed, is unauthorised.

    decision   `person`: only with a person's approval
    rule       the rule that decided
    why        the reason, in one line
    """

    decision: Literal["allow", "warn", "person", "deny"] = "allow"
    rule: str = ""
    why: str = ""

    @property
    def allows(self) -> bool:
        """Return whether the effect needs no person's approval and is not denied."""
        return self.decision in ("allow", "warn")


@dataclass(frozen=True)
class Policy:
    """Rules over effects. The journal stores the version beside each decision."""

    version: str
    decide: Callable[[Db, str, Any, Moment], PolicyVerdict]
    """(db, tool, arguments, now) -> the verdict; called before each call of a tool that writes."""


@dataclass(frozen=True)
class Standing:
    """The final state of one effect in the pack's tables, by its business key.

    times          how often it stands: done minus undone; below 0 if undone too often
    owed           True: it ought to stand; False: it ought not to; None: either is right
    compensable    whether it could be taken back
    unauthorised   how often it stands against the policy; None if the tables do not tell
    late           how often it came too late; None if the tables do not tell
    """

    effect: str
    times: int
    owed: bool | None = None
    compensable: bool = False
    unauthorised: int | None = None
    late: int | None = None
