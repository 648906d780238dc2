"""What a pack declares of its world: tools, events, people, a policy. Values only; `world.py` runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from bench.worlds.environment.database import Db
from bench.worlds.environment.moment import Moment

ToolAccess = Literal["read", "compensable", "final"]
"""read          changes nothing; one that does is refused, and what it wrote is taken back
compensable   changes the world, and its `undo` takes that back
final         changes the world for good"""
WRITES: tuple[ToolAccess, ...] = ("compensable", "final")
Payload = Mapping[str, Any]
"""JSON, by name."""


def about_nothing(_: Any) -> tuple[str, ...]:
    """Return no thing: what is about nothing that has a version.

    Args:
        _: A call's arguments, or an event's payload.

    Returns:
        Nothing.
    """
    return ()


@dataclass(frozen=True)
class Tool:
    """Something that an agent can do to the world, or read of it.

    run           (db, arguments, now) -> an instance of `result`; raises `bench.errors.ToolRefused` where the business refuses
    effect        the business key of what it changes, "refund of order 17": equal for two calls that mean the same effect.
                  Required of a tool that writes. An undo has the key of what it undoes.
    undo          the tool that takes a compensable one's effect back
    undoing       (arguments, result) -> the arguments of the undo; None where they are the same
    about         the things that it reads or changes, "order 17": each has a version, by which what is stale is found
    due           the last moment at which the effect is in time; None where any is
    minutes       of world time that a call takes
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
        """Return whether it changes the world."""
        return self.kind in WRITES


@dataclass(frozen=True)
class EventKind:
    """A kind of event. `apply` changes the world when one happens; `about` names the things that it changes."""

    name: str
    apply: Callable[[Db, Payload, Moment], None] | None = None
    about: Callable[[Payload], tuple[str, ...]] = about_nothing


@dataclass(frozen=True)
class Scheduled:
    """An event that comes whatever the agent does. `name` tells it from all others: faults are drawn by it."""

    name: str
    kind: str
    at: Moment
    payload: Payload = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """A notice of an event, as it reached the agent; `number` counts the notices, from 1. A doubled event has two."""

    number: int
    at: Moment
    kind: str
    name: str
    payload: Payload
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Person:
    """Someone who is asked. Answers come as events of kind `answer`, by a declared distribution.

    decides       (db, question, now) -> what a careful person would say when the answer is given
    record        writes the answer into the pack's tables, for a policy to see it
    minutes       until the answer; with chance `late` it takes `late_minutes` instead; with chance `silent` none ever comes
    wrong         the chance that the answer is the contrary of what a careful person would say
    contradicts   the chance that the answer is taken back by its contrary, `minutes` later
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
    """What a policy says of an effect.

    An effect that was denied, or needed a person who had not approved, and was done all the same, is unauthorised.

    decision   `person`: only with a person's approval
    rule       the rule that decided
    why        the reason, in one line
    """

    decision: Literal["allow", "warn", "person", "deny"] = "allow"
    rule: str = ""
    why: str = ""

    @property
    def allows(self) -> bool:
        """Return whether the effect may be made without a person."""
        return self.decision in ("allow", "warn")


@dataclass(frozen=True)
class Policy:
    """Rules over effects, under a version that stands in the journal beside each decision."""

    version: str
    decide: Callable[[Db, str, Any, Moment], PolicyVerdict]
    """(db, tool, arguments, now) -> its verdict; it is asked before each call of a tool that writes."""


@dataclass(frozen=True)
class Standing:
    """What the pack's tables say of one effect at the end, by its business key.

    times          how often it stands there: done less undone; below 0 where it was undone too often
    owed           True: it ought to stand there; False: it ought not to; None: either is right
    compensable    whether it could be taken back
    unauthorised   how often it stands there against the policy; None where the tables do not tell
    late           how often it came too late; None where the tables do not tell
    """

    effect: str
    times: int
    owed: bool | None = None
    compensable: bool = False
    unauthorised: int | None = None
    late: int | None = None
