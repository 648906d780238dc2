"""The events of a trial in a world, one small type for each kind. `bench.record.events` has the events of all trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.common.bounds import BoundedTable
from bench.common.numbers import Count, Seconds
from bench.record.events import EventPart

AGENT, COMPENSATION = "agent", "compensation"
"""The role of an agent without a declared role, and the role of an agent that takes an effect back."""
ASKED = "asked"
"""The name of a log in the agent's store. Each entry is one judgment, with the fields of `bench.run.models.bank.BankedReply`
that do not name the trial."""
REPAIRED = "repaired"
"""The name of a log in the agent's store. Each entry is one signal, with the fields of `every_judgment`'s log and the
`signal`."""


@dataclass(frozen=True, kw_only=True)
class EventOrigin:
    """The model call and the plan version that led to an event.

    request        the number of the last model call for the judgment of the present step, or else of the steps before it; for
                   an agent in a separate process, of its last call. None if the model was not asked
    plan_version   the version of the plan that was followed; 0 if no plan is kept
    """

    request: Count | None = None
    plan_version: Count = 0


@dataclass(frozen=True, kw_only=True)
class StepOrigin(EventOrigin):
    """The origin of an event within a procedure. `step` is the present step; "" between two steps, or without a procedure."""

    step: str = ""


@dataclass(frozen=True)
class ToolCalled(StepOrigin):
    """A tool call with its result, as the agent got it.

    effect       the business key of the intended effect; `try_` is the number of the try of that key, from 1
    key          the idempotency key, or None
    entry        its number in the world's journal; 0 if the call did not reach the tool, or no answer reached the agent
    arguments, result   digests of their JSON; None if there is no result
    outcome      done, replayed, refused or failed; `reason` says why it was refused or failed
    decision, rule, policy   the policy's verdict with its rule, and the policy's version, if the tool writes
    life         the number of the agent's process, from 1
    day, minute  world time; `started` is in the trial's seconds
    before, after   digests of the world's tables before and after the call
    code         the kind of a refusal or failure (`bench.worlds.run.environment.calling.RefusalCode`)
    role         the agent's role in which it made the call
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
    """The agent got a notice of an event, or of a person's answer. `number` is the notice's number; `payload` is a digest."""

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
    """The agent asked a person. The answer comes as an arrival of the event `answer`. `shown` is the preview of the effect that
    the person is to approve: the rows that it would change, and its risks; "" if the question is not about an effect."""

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
    """The wait for a person's answer ended. `said` is approved, denied, or late if no answer came in time."""

    person: str
    ticket: str
    said: str
    life: Count
    day: int
    minute: Count
    kind: Literal["person_decided"] = "person_decided"


@dataclass(frozen=True)
class Stepped(EventOrigin):
    """A step of the procedure `began` (once for each attempt) or `ended`. `why` says why it failed; "" if it did not fail."""

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
    """The agent's process died at a `point` of an effect. `life` is the number of the process, from 1."""

    point: str
    life: Count
    day: int
    minute: Count
    kind: Literal["crash"] = "crash"


@dataclass(frozen=True)
class WorldBegan:
    """The world began. `digest` is that of its tables, `policy` the version of its policy, `tools` the digest of its tools'
    contracts; an earlier record has no `tools`."""

    digest: str
    day: int
    minute: Count
    policy: str = ""
    tools: str = ""
    kind: Literal["world_began"] = "world_began"


@dataclass(frozen=True)
class WorldEnded:
    """The world ended. `digest` is that of its tables, `kept` that of their SQL, from which the world can be rebuilt.

    damage    kind of damage -> the number of damaged effects, counted from the journal
    recount   the same, counted from the tables alone; None for a kind that they do not show
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
