"""What happens in a trial, one small type per kind of event, in the order in which it happened.

A trial's record holds nothing else about its course: the ledger, every statistic and every figure is computed from these.
Seconds are on the trial's clock and count from its start. Texts are named by digest; the store keeps each text once. An event
is named by its number: its place among the trial's events, from 0.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, Tag
from pydantic_core import CoreSchema

from bench.bounds import BoundedTable, Many
from bench.models.base import OptionalText, StoredMessage
from bench.numbers import Count, Seconds, Seed
from bench.registry import Part, Registry
from bench.runtime.verification import ViolationKind
from bench.values import dataclass, kept

EventType = TypeVar("EventType")
Cause = Literal["first", "step", "sample", "retry", "rerun", "judge"]
"""Why a call is made.

first    nobody asked for these outputs before
step     a further turn before the output that the proposer works on is there
sample   redundancy that was planned: votes, best of n
retry    the last output of these subtasks was rejected, or a paid reply to them was lost
rerun    it was not, but an earlier rejection or loss in the trial made it necessary
judge    a judgment on outputs is asked for, not an output
"""
Stage = Literal["planned", "delivered", "not_applicable", "detected", "recovered", "gave_up", "undetected"]
View = Literal["told", "undamaged", "shadow"]
"""What a verdict is on: a reply whose proposer is told of it; the reply as it was before a fault struck it; a reply whose
proposer judges by itself and is told nothing."""


@dataclass(frozen=True)
class Called:
    """One request that was sent, or that a fault kept from being sent, and what came of it.

    attempt      counts the attempts at these subtasks, from 1; `try_` counts the requests for one reply
    sample       which of the samples of this attempt
    caused_by    number of the event (a rejection, a lost call) that made a retry, a rerun or a judge call necessary; else None
    inferred     the cause is inferred from what the proposer sent, not known from what it was told
    seconds      in flight; `delay` are those of them that a fault added
    client       what this process took beside: its own work on the call, a connection, what it was busy with while bytes lay
                 ready; 0 where that is not told apart
    asked        whether the model was asked: false where a fault kept the request from being sent
    reply        digest of what the model said; None where nothing came
    delivered    digest of what the architecture was given, where a fault changed the reply; else None
    tokens_*     by our tokenizer, of what was paid: the model's own reply, before any fault touched it; of a reply that was
                 cut off, the part that came
    usage_*      the provider's own count; None where it told none; `usage_cached` are those of `usage_in` that its prompt cache
                 held already
    failure      None, or the `kind` of the CallFailed that the call ended in
    reused       the same request had been answered before: this is that reply, with its seconds
    retry_after  the seconds after which the server that refused the call asked for the next
    by           the model that answered, where the trial's model had passed the request on to it; else ""
    tool_calls   digest of the JSON of the tool calls in what the model said; None where it made none
    options      digest of the JSON of what was asked beside the messages, tools among it; None for nothing
    """

    call: Count
    subtasks: Many[str]
    attempt: Count
    try_: Count
    cause: Cause
    started: Seconds
    seconds: Seconds
    seed: Seed
    messages: Many[StoredMessage]
    reply: str | None
    delivered: str | None
    tokens_in: Count
    tokens_out: Count
    usage_in: Count | None
    usage_out: Count | None
    finish: str | None
    failure: str | None
    detail: str = ""
    delay: Seconds = 0.0
    asked: bool = True
    retry_after: Seconds | None = None
    reused: bool = False
    by: str = ""
    sample: Count = 1
    caused_by: Count | None = None
    inferred: bool = False
    usage_cached: Count | None = None
    client: Seconds = 0.0
    tool_calls: OptionalText = None
    options: OptionalText = None
    kind: Literal["call"] = "call"


@dataclass(frozen=True)
class Waited:
    """Seconds in which the trial stood still for a `slot` at the endpoint or for a `backoff` after a failed call."""

    why: Literal["slot", "backoff"]
    started: Seconds
    seconds: Seconds
    kind: Literal["wait"] = "wait"


@dataclass(frozen=True)
class Refused:
    """A request that the measuring endpoint did not take: no model was asked, no token paid. `status` is that of HTTP."""

    status: Count
    detail: str
    started: Seconds
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True)
class Faulted:
    """One entry in the receipt of one planned fault; `fault` numbers the planned faults of the trial.

    `call` is the call that carried it. A fault is not applicable where nothing could carry it.
    """

    fault: Count
    point: str
    effect: str
    subtask: str
    attempt: Count
    stage: Stage
    call: Count | None = None
    detail: str = ""
    kind: Literal["fault"] = "fault"


@dataclass(frozen=True)
class Judged:
    """What the verifier said of one subtask's output, which `calls` made; `reason` is empty, and `violation` None, where it was
    accepted. `detail` is for people.

    `fault` numbers the fault that struck the reply, where its undamaged form is judged.
    """

    calls: Many[Count]
    subtask: str
    accepted: bool
    reason: str = ""
    detail: str = ""
    view: View = "told"
    fault: Count | None = None
    violation: ViolationKind | None = None
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True)
class Committed:
    """A version was written to the state, verified or not. `calls` made it, all of them; none where code wrote it.

    made_from   (name, version, digest) of each thing read; a document's version is 0
    """

    subtask: str
    version: Count
    calls: Many[Count]
    verified: bool
    digest: str
    made_from: Many[tuple[str, Count, str]]
    kind: Literal["commit"] = "commit"


@dataclass(frozen=True)
class Answered:
    """The versions that make the final answer: (subtask, version)."""

    versions: Many[tuple[str, Count]]
    kind: Literal["answer"] = "answer"


class OfAKind(Protocol):
    """An event of a kind that is known here."""

    @property
    def kind(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class EventPart(Part):
    """A kind of event. `form` is its dataclass, whose field `kind` names it."""

    form: type[OfAKind]

    @classmethod
    def of(cls, *forms: type[OfAKind]) -> tuple[EventPart, ...]:
        """Return the entries of these dataclasses."""
        return tuple(cls(str(form.kind), form) for form in forms)


ENTRIES = EventPart.of(Called, Waited, Refused, Faulted, Judged, Committed, Answered)
EVENTS = Registry("kind of event", EventPart, f"{__name__}:ENTRIES", plural="events")


class _ReadEvent:
    """Reads an event as that of its kind. One of a kind that nobody registers, as a later version may add one, is kept as it
    stands and read over."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        forms: Any = functools.reduce(operator.or_, (part.form for part in EVENTS))
        known: Any = Annotated[forms, Field(discriminator="kind"), Tag("event")]
        other = Annotated[BoundedTable[str, Any], AfterValidator(_of_another_kind), Tag("other")]
        return handler.generate_schema(Annotated[known | other, Field(union_mode="left_to_right")])


def _of_another_kind(event: dict[str, Any]) -> dict[str, Any]:
    kind = event.get("kind")
    if isinstance(kind, str) and kind in EVENTS:
        raise ValueError("is of a kind that this version knows")
    return event


Event = Annotated[OfAKind | BoundedTable[str, Any], _ReadEvent]


class Events(tuple[Event, ...]):
    """A trial's events in order, sorted by kind once: they are asked for by kind many times."""

    @kept
    def by_kind(self) -> Mapping[type, Sequence[Any]]:
        by_type: dict[type, list[Event]] = {}
        for event in self:
            by_type.setdefault(type(event), []).append(event)
        return by_type


def of_kind(events: Iterable[Event], kind: type[EventType]) -> Sequence[EventType]:
    """The events of one kind, in order."""
    if isinstance(events, Events):
        return events.by_kind.get(kind, ())
    return [event for event in events if isinstance(event, kind)]
