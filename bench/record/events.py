"""The events of a trial, one small type for each kind, in the order in which they happened.

A trial's record has nothing else on what happened: the ledger, every statistic and every figure is computed from its events.
Seconds are on the trial's clock and count from its start. Texts are named by digest; the store keeps each text once. An
event's number is its index among the trial's events, from 0.
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

first    no call asked for these outputs before
step     a further turn of the agent, before its output is there
sample   planned redundancy: votes, best of n
retry    the last output of these subtasks was rejected, or a paid reply to them was lost
rerun    none of these, but an earlier rejection or loss in the trial made the call necessary
judge    the call asks for a judgment on outputs, not for an output
"""
ViolationKind = Literal["cut_off", "missing_field", "form", "vocabulary", "content", "insufficient"]
"""What a rejected output violates; of several kinds the first of these.

cut_off        it breaks off inside its JSON object, a code block, or a draft
missing_field  a field that its schema requires is missing: the paper's kind
form           it has no JSON object, its code blocks cannot be assigned, or a field's form differs from its schema
vocabulary     its form is right, but a field has a word outside of its closed list
content        its form is right, but a check or a later validation refused its content
insufficient   it is right, but too weak to build on
"""
Stage = Literal["planned", "delivered", "not_applicable", "detected", "recovered", "gave_up", "undetected"]
View = Literal["told", "undamaged", "shadow"]
"""What a verdict is about: `told`, the reply that the agent got, and the agent is told the verdict; `undamaged`, the reply
before a fault struck it; `shadow`, the reply of an agent that judges by itself and is not told the verdict."""


@dataclass(frozen=True)
class Called:
    """One request to the model and its outcome. A fault can have kept the request from being sent.

    attempt      the number of the attempt at these subtasks, from 1; `try_` numbers the requests for one reply
    sample       the number of the sample of this attempt
    caused_by    number of the event (a rejection, a lost call) that made a retry, a rerun or a judge call necessary; else None
    inferred     whether the cause was inferred from the agent's request, and is not known from what the agent was told
    seconds      the seconds in flight; `delay` is the part of them that a fault added
    client       the seconds that this process took besides: its own work on the call, a connection, other work while bytes were
                 ready; 0 if they are not measured separately
    asked        whether the model was asked: false if a fault kept the request from being sent
    reply        digest of the model's text; None if no reply came
    delivered    digest of the text that the architecture got, if a fault changed the reply; else None
    tokens_*     the tokens paid, by our tokenizer, of the model's own reply, before any fault changed it; if the reply was cut
                 off, of the part that came
    usage_*      the provider's own count; None if it sent none; `usage_cached` is the part of `usage_in` that its prompt cache
                 had already
    failure      the `kind` of the CallFailed that the call ended in; None if it did not fail
    reused       whether this is the earlier reply to the same request, with its seconds
    retry_after  the seconds that the server which refused the call asked to wait
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
    """The trial waited for a `slot` at the endpoint, or as a `backoff` after a failed call."""

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
    """Settings that an outside agent sent with its requests and that were not passed on: the experiment sets them itself, or
    they are hints that change no reply. `settings` has the last value of each, as JSON."""

    settings: Lookup[str, str]
    kind: Literal["set_aside"] = "set_aside"


@dataclass(frozen=True)
class Faulted:
    """One stage in the receipt of one planned fault. `fault` is the fault's number in the trial.

    `call` is the struck call. A fault is not applicable if there was nothing that it could strike.
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
    """The verifier's verdict on one subtask's output. `calls` are the calls that made the output. If it was accepted, `reason`
    is empty and `violation` is None. `detail` is for readers.

    `fault` is the number of the fault that struck the reply, if the verdict is on the reply without the fault.
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
    """A version of an output was written to the state, verified or not. `calls` are the calls that made it; none if code did.

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
    """The final answer. `versions` has (subtask, version) of each output in it."""

    versions: Many[tuple[str, Count]]
    kind: Literal["answer"] = "answer"


class OfAKind(Protocol):
    """An event of a known kind."""

    @property
    def kind(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class EventPart(Part):
    """The registry entry of a kind of event. `form` is its dataclass, whose field `kind` has the kind's name."""

    form: type[OfAKind]

    @classmethod
    def of(cls, *forms: type[OfAKind]) -> tuple[EventPart, ...]:
        """Return the entries of these dataclasses."""
        return tuple(cls(str(form.kind), form) for form in forms)


ENTRIES = EventPart.of(Called, Waited, Refused, SetAside, Faulted, Judged, Committed, Answered)
EVENTS = Registry("kind of event", EventPart, plural="events")


class _ReadEvent:
    """Validates an event by its kind. An event of an unregistered kind, which a later version can add, is kept as a dict and
    ignored by readers."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        forms: Any = functools.reduce(operator.or_, (part.form for part in EVENTS))
        known: Any = Annotated[forms, Field(discriminator="kind"), Tag("event")]
        other = Annotated[BoundedTable[str, Any], AfterValidator(_of_another_kind), Tag("other")]
        return handler.generate_schema(Annotated[known | other, Field(union_mode="left_to_right")])


def _of_another_kind(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of an unregistered kind. Raises ValueError for an event of a registered kind, which did not fit its
    type."""
    kind = event.get("kind")
    if isinstance(kind, str) and kind in EVENTS:
        raise ValueError("is of a kind that this version knows")
    return event


Event = Annotated[OfAKind | BoundedTable[str, Any], _ReadEvent]


class Events(tuple[Event, ...]):
    """A trial's events in order. They are grouped by kind once, since they are read by kind many times."""

    @kept
    def by_kind(self) -> Mapping[type, Sequence[Any]]:
        """Type of event -> the events of this type, in order."""
        by_type: dict[type, list[Event]] = {}
        for event in self:
            by_type.setdefault(type(event), []).append(event)
        return by_type


def of_kind(events: Iterable[Event], kind: type[EventType]) -> Sequence[EventType]:
    """Return the events of one kind, in order."""
    if isinstance(events, Events):
        return events.by_kind.get(kind, ())
    return [event for event in events if isinstance(event, kind)]
