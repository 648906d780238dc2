"""The events of a trial that has a world, one small type for each kind. `bench.record.events` has all other events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.common.bounds import BoundedTable
from bench.common.numbers import Count, Seconds
from bench.record.events import EventPart

AGENT, COMPENSATION = "agent", "compensation"
"""The role of an agent without a declared role, and the role of an agent that takes an effect back."""
ASKED = "asked"
"""The log in the store. Each entry is one judgment, with the fields of `bench.run.models.bank.BankedReply` except the trial's
own."""
REPAIRED = "repaired"
"""The log in the store. Each entry is one signal: the fields of `every_judgment`'s log, and the `signal`."""


@dataclass(frozen=True, kw_only=True)
class EventOrigin:
    """The request and the plan version from which an event came.

    request        the number of the last model call for the judgment of the present step; if it has none, for the judgments of
                   the steps before it; for an agent in a separate process, its last call. None: nothing was asked
    plan_version   the version of the plan that was followed; 0 if no plan is kept
    """

    request: Count | None = None
    plan_version: Count = 0


@dataclass(frozen=True, kw_only=True)
class StepOrigin(EventOrigin):
    """`step` is the present step of the procedure; "" between two steps, or without a procedure."""

    step: str = ""


@dataclass(frozen=True)
class ToolCalled(StepOrigin):
    """A tool call, as the agent was told of it.

    effect       the business key of the intended effect; `try_` counts the tries of that key, from 1
    key          the idempotency key, or None
    entry        its number in the world's journal; 0 if the call did not reach the tool, or no answer reached the agent
    arguments, result   digests of their JSON; None if there is none
    outcome      done, replayed, refused or failed, and the `reason` of the last two
    decision, rule, policy   the policy's verdict, and its version, if the tool writes
    life         the number of the agent's process, from 1
    day, minute  world time; `started` is in the trial's seconds
    before, after   digests of the world's tables
    code         why it was refused or failed (`bench.worlds.run.environment.calling.RefusalCode`)
    role         the role in which it was called
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
    """The agent was told of an event or of a person's answer. `number` counts the notices; `payload` is a digest."""

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
    """A person was asked. The answer comes as an arrival of kind `answer`. `shown` is the preview that the person saw of the
    effect to approve: the rows that it would change, and its risks; "" if the question concerns no effect."""

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
    """The wait for a person's answer ended. `said` is approved, denied, or late if nobody answered in time."""

    person: str
    ticket: str
    said: str
    life: Count
    day: int
    minute: Count
    kind: Literal["person_decided"] = "person_decided"


@dataclass(frozen=True)
class Stepped(EventOrigin):
    """A step of the procedure `began` (once for each attempt) or `ended`. `why` says why it failed; "" if it did not."""

    step: str
    stage: Literal["began", "ended"]
    why: str
    life: Count
    day: int
    minute: Count
    kind: Literal["step"] = "step"


@dataclass(frozen=True)
class Stored(StepOrigin):
    """The agent wrote to its store. `value` is a digest."""

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
    """The world began. `digest` names the content of its tables, `policy` the version of its policy, `tools` the contracts of
    its tools; an earlier record has no `tools`."""

    digest: str
    day: int
    minute: Count
    policy: str = ""
    tools: str = ""
    kind: Literal["world_began"] = "world_began"


@dataclass(frozen=True)
class WorldEnded:
    """The end of a world: `digest` of its tables, and of the text `kept` for its grader.

    damage    how often each kind happened, counted from the journal
    recount   the same, counted from the tables alone; None if they do not tell
    lives     the number of the agent's processes
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
