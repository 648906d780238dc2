"""The events of a trial, one small type for each kind, in the order in which they happened.

A trial's record holds nothing else about its course: the ledger, every statistic and every figure is computed from these.
Seconds are on the trial's clock and count from its start. Texts are named by digest; the store keeps each text once. An event's
number is its place among the trial's events, from 0.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, Tag
from pydantic_core import CoreSchema

from bench.common.bounds import BoundedTable, Lookup, Many
from bench.common.numbers import Count, Seconds, Seed
from bench.common.registry import Part, Registry
from bench.common.values import dataclass, kept
from bench.record.messages import OptionalText, StoredMessage

EventType = TypeVar("EventType")
Cause = Literal["first", "step", "sample", "retry", "rerun", "judge"]
"""Why a call is made.

first    nobody asked for these outputs before
step     a further turn before the proposer's output is there
sample   planned redundancy: votes, best of n
retry    the last output of these subtasks was rejected, or a paid reply to them was lost
rerun    neither, but an earlier rejection or loss in the trial made the call necessary
judge    a judgment on outputs is asked for, not an output
"""
ViolationKind = Literal["cut_off", "missing_field", "form", "vocabulary", "content", "insufficient"]
"""What a rejected output violates; of several kinds the first of these.

cut_off        it breaks off inside its JSON object, a code block, or a draft
missing_field  a field that its schema requires is not there: the paper's kind
form           there is no JSON object in it, its code blocks cannot be assigned, or a field's form differs from its schema
vocabulary     its form is right, but a field holds a word outside of its closed list
content        its form is right, but a check or a later validation refused its content
insufficient   it is right as far as it goes, and too weak to build on
"""
Stage = Literal["planned", "delivered", "not_applicable", "detected", "recovered", "gave_up", "undetected"]
View = Literal["told", "undamaged", "shadow"]
"""What a verdict is on: a reply whose proposer is told of it; the reply before a fault struck it; a reply whose proposer judges
by itself and is told nothing."""


@dataclass(frozen=True)
class Called:
    """One request to the model and its outcome. A fault can have kept the request from being sent.

    attempt      counts the attempts at these subtasks, from 1; `try_` counts the requests for one reply
    sample       which of the samples of this attempt
    caused_by    number of the event (a rejection, a lost call) that made a retry, a rerun or a judge call necessary; else None
    inferred     whether the cause is inferred from what the proposer sent, not known from what it was told
    seconds      seconds in flight; `delay` is the part of them that a fault added
    client       the time that this process took besides: its own work on the call, a connection, other work while bytes lay
                 ready; 0 if it is not measured separately
    asked        whether the model was asked: false if a fault kept the request from being sent
    reply        digest of the model's text; None if nothing came
    delivered    digest of the text that the architecture got, if a fault changed the reply; else None
    tokens_*     tokens paid, by our tokenizer: the model's own reply, before any fault touched it; of a reply that was cut off,
                 the part that came
    usage_*      the provider's own count; None if it sent none; `usage_cached` is the part of `usage_in` that its prompt cache
                 held already
    failure      None, or the `kind` of the CallFailed that the call ended in
    reused       whether this is the earlier reply to the same request, with its seconds
    retry_after  the seconds after which the server that refused the call asked for the next
    by           the model that answered, if the trial's model passed the request on; else ""
    tool_calls   digest of the JSON of the model's tool calls; None if it made none
    options      digest of the JSON of the other options, such as tools; None if there were none
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
    """Seconds in which the trial waited for a `slot` at the endpoint or for a `backoff` after a failed call."""

    why: Literal["slot", "backoff"]
    started: Seconds
    seconds: Seconds
    kind: Literal["wait"] = "wait"


@dataclass(frozen=True)
class Refused:
    """A request that the measuring endpoint refused: no model was asked, no token was paid. `status` is the HTTP status."""

    status: Count
    detail: str
    started: Seconds
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True)
class SetAside:
    """Settings that an outside agent sent with its requests and that were not passed on: settings that the experiment sets
    itself, and hints that change no reply. `settings` has the last value of each, as JSON."""

    settings: Lookup[str, str]
    kind: Literal["set_aside"] = "set_aside"


@dataclass(frozen=True)
class Faulted:
    """One stage in the receipt of one planned fault; `fault` numbers the planned faults of the trial.

    `call` is the call that carried it. A fault is not applicable if nothing could carry it.
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
    """The verifier's verdict on one subtask's output, which `calls` made. If the output was accepted, `reason` is empty and
    `violation` is None. `detail` is for readers.

    `fault` numbers the fault that struck the reply, if its undamaged form is judged.
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
    """A version of an output was written to the state, verified or not. `calls` made it; empty if code wrote it.

    made_from   (name, version, digest) of each input; a document's version is 0
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
    """The versions that form the final answer: (subtask, version)."""

    versions: Many[tuple[str, Count]]
    kind: Literal["answer"] = "answer"


class OfAKind(Protocol):
    """An event of a known kind."""

    @property
    def kind(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class EventPart(Part):
    """The entry of a kind of event. `form` is its dataclass, whose field `kind` names it."""

    form: type[OfAKind]

    @classmethod
    def of(cls, *forms: type[OfAKind]) -> tuple[EventPart, ...]:
        """Return the entries of these dataclasses."""
        return tuple(cls(str(form.kind), form) for form in forms)


ENTRIES = EventPart.of(Called, Waited, Refused, SetAside, Faulted, Judged, Committed, Answered)
EVENTS = Registry("kind of event", EventPart, plural="events")


class _ReadEvent:
    """Validates an event by its kind. An event of an unregistered kind, which a later version can add, is kept unchanged and
    ignored."""

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
    """A trial's events in order. They are sorted by kind once, since they are read by kind many times."""

    @kept
    def by_kind(self) -> Mapping[type, Sequence[Any]]:
        by_type: dict[type, list[Event]] = {}
        for event in self:
            by_type.setdefault(type(event), []).append(event)
        return by_type


def of_kind(events: Iterable[Event], kind: type[EventType]) -> Sequence[EventType]:
    """Return the events of one kind, in order."""
    if isinstance(events, Events):
        return events.by_kind.get(kind, ())
    return [event for event in events if isinstance(event, kind)]
