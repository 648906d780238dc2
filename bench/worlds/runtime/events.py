"""What happens in a trial that has a world, one small type per kind of event; `bench.runtime.events` has all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.bounds import BoundedTable
from bench.numbers import Count, Seconds
from bench.runtime.events import EventPart


@dataclass(frozen=True, kw_only=True)
class EventOrigin:
    """What an event came from.

    request        the number of the last call of the model for the judgment of the step in hand; where it has none, for
                   those of the steps before it. Of an agent in a process of its own: its last call. None: nothing was asked
    plan_version   the version of the plan that was followed; 0 where no plan is kept
    """

    request: Count | None = None
    plan_version: Count = 0


@dataclass(frozen=True, kw_only=True)
class StepOrigin(EventOrigin):
    """`step` is the step of the procedure that was in hand; "" between two steps, or without a procedure."""

    step: str = ""


@dataclass(frozen=True)
class ToolCalled(StepOrigin):
    """A call of a world's tool, as the agent was told of it.

    effect       the business key of what it means to do; `try_` counts the tries of that key, from 1
    key          the idempotency key, where one was given
    entry        the number of its entry in the world's journal; 0 where no call reached the tool, or no answer the agent
    arguments, result   digests of their JSON; None where there is none
    outcome      done, replayed, refused or failed, and the `reason` of the last two
    decision, rule, policy   the policy's verdict, and its version, where the tool writes
    life         which process of the agent made it, from 1
    day, minute  in the world's time; `started` is the trial's
    before, after   digests of what the world's tables held
    code         why it was refused or failed (`bench.worlds.environment.calling.Code`); `role`: in which it was called
    """

    tool: str
    access: str
    effect: str
    try_: Count
    key: str | None
    entry: Count
    arguments: str
    result: str | None
    outcome: str
    reason: str
    decision: str
    rule: str
    policy: str
    life: Count
    day: int
    minute: Count
    started: Seconds
    before: str
    after: str
    code: str = ""
    role: str = ""
    kind: Literal["tool"] = "tool"


@dataclass(frozen=True)
class Arrived:
    """The agent was told of an event, or of a person's answer; `number` counts what it was told, and `payload` is a digest."""

    number: Count
    event: str
    what: str
    payload: str
    life: Count
    day: int
    minute: Count
    kind: Literal["arrival"] = "arrival"


@dataclass(frozen=True)
class PersonAsked(StepOrigin):
    """A person was asked. The answer comes as an arrival of kind `answer`. `shown` is what the person was shown of the effect
    that is to be approved: the rows that it would change, and its risks; "" where the question is about none."""

    person: str
    about: str
    ticket: str
    life: Count
    day: int
    minute: Count
    shown: str = ""
    kind: Literal["asked"] = "asked"


@dataclass(frozen=True)
class PersonDecided(StepOrigin):
    """Who asked has waited for a person: what was `said`, approved, denied, or late where nobody answered in time."""

    person: str
    ticket: str
    said: str
    life: Count
    day: int
    minute: Count
    kind: Literal["person_decided"] = "person_decided"


@dataclass(frozen=True)
class Stepped(EventOrigin):
    """A step of the procedure `began`, once for each attempt, or `ended`; `why` it came to nothing, or ""."""

    step: str
    stage: Literal["began", "ended"]
    why: str
    life: Count
    day: int
    minute: Count
    kind: Literal["step"] = "step"


@dataclass(frozen=True)
class Stored(StepOrigin):
    """The agent wrote to its own store; `value` is a digest."""

    name: str
    value: str
    life: Count
    kind: Literal["stored"] = "stored"


@dataclass(frozen=True)
class ProcessDied(StepOrigin):
    """The agent died at a `point` of an effect, in its `life`-th process."""

    point: str
    life: Count
    day: int
    minute: Count
    kind: Literal["crash"] = "crash"


@dataclass(frozen=True)
class WorldBegan:
    """`digest` names what its tables held, `policy` the version of its policy."""

    digest: str
    day: int
    minute: Count
    policy: str = ""
    kind: Literal["world_began"] = "world_began"


@dataclass(frozen=True)
class WorldEnded:
    """What became of the world: the digest of its tables, and of the whole as it is kept for its grader.

    damage    how often each kind happened, counted from the journal
    recount   the same, counted from the tables alone; None where they do not tell
    lives     how many processes of the agent there were
    """

    digest: str
    kept: str
    day: int
    minute: Count
    lives: Count
    damage: BoundedTable[str, int | None]
    recount: BoundedTable[str, int | None]
    kind: Literal["world_ended"] = "world_ended"


EVENTS = EventPart.of(ToolCalled, Arrived, PersonAsked, PersonDecided, Stepped, Stored, ProcessDied, WorldBegan, WorldEnded)
