"""What is kept of a trial, of a session, of a response and of a grade made anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from bench.bounds import Many
from bench.models.base import OptionalText, StoredMessage, Timing
from bench.numbers import Count, Seconds, Seed
from bench.runtime.events import Event, Events
from bench.scenario import Grade
from bench.values import dataclass

Outcome = Literal["solved", "wrong", "gave_up", "ungraded", "error"]
"""`ungraded`: its calls were only counted; it enters no rate and no mean."""


@dataclass(frozen=True)
class TrialRecord:
    """One trial, whole. `id` is the digest of all that determines it.

    instance   "" for the sole instance of a pack
    tokens     the caller's own count, kept apart from the events: the ledger's accounts must add up to it
    timing     whose the seconds of calls and waits are; framework seconds are always this machine's
    reason     why a trial gave up or ended in an error, in one line
    traceback  digest of the traceback of a trial that ended in a bug; None where it did not
    """

    id: str
    scenario: str
    architecture: str
    model: str
    plan: str
    repetition: Count
    outcome: Outcome
    reason: str
    grade: Grade | None
    tokens: Count
    api_seconds: Seconds
    waiting_seconds: Seconds
    framework_seconds: Seconds
    timing: Timing
    events: Annotated[Many[Event], AfterValidator(Events)]
    instance: str = ""
    traceback: str | None = None
    kind: Literal["trial"] = "trial"

    @property
    def arm(self) -> str:
        return arm_of(self.architecture, self.plan)


def arm_of(architecture: str, plan: str) -> str:
    """What a trial is called among those of the same scenario, model and repetition."""
    return f"{architecture}/{plan}"


def latest(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Yield the last record of each trial: one that ended in an error is run again on resume."""
    return list({record.id: record for record in records}.values())


@dataclass(frozen=True)
class EndpointTrouble:
    """What an endpoint did to a session: how often a 429 halved its limit on calls in flight, from what and to what at least;
    how often all calls to it were held back, and for how many seconds."""

    endpoint: str
    limit: Count
    fell: Count
    lowest: Count
    pauses: Count
    paused: Seconds


@dataclass(frozen=True)
class ClosingMark:
    """What a run held when all of it was there: how many trials, and the link of its last response, which names them all."""

    trials: Count
    responses: str


@dataclass(frozen=True)
class SessionRecord:
    """One `bench run` on a results folder: when it began or ended, and how; at its end, of the endpoints that were in trouble,
    their `trouble`. Times are UTC, ISO 8601. A session after which the run is complete ends with a `mark`; where more trials
    are run later, the mark of their session takes its place."""

    at: str
    what: Literal["began", "ended"]
    detail: str
    trouble: Many[EndpointTrouble] = ()
    mark: ClosingMark | None = None
    kind: Literal["session"] = "session"


@dataclass(frozen=True)
class ResponseRecord:
    """What a model did on one request, written when it came.

    settings    digest of the settings that decide what the model may reply (`bench.experiment.recording.settings_digest`)
    seed, occurrence, answers   of the request: which seed, which time this trial sent it, how many replies it had had to it
    reply       digest of the reply's text; None where the call failed
    failure     the kind of the CallFailed that it ended in; "" where a reply came; `partial` is the digest of what did arrive
    tool_calls, options   as in the event of the call
    extra       digest of what else the provider gave with the reply; None for nothing
    usage_*     the provider's own count, of a reply or of a failure that was paid; None where it told none
    """

    model: str
    settings: str
    messages: Many[StoredMessage]
    seed: Seed
    occurrence: Count
    answers: Count
    scenario: str
    instance: str
    repetition: Count
    arm: str
    seconds: Seconds
    reply: str | None = None
    finish: str = "stop"
    usage_in: Count | None = None
    usage_out: Count | None = None
    by: str = ""
    reused: bool = False
    failure: str = ""
    detail: str = ""
    retry_after: Seconds | None = None
    partial: str | None = None
    usage_cached: Count | None = None
    tool_calls: OptionalText = None
    options: OptionalText = None
    extra: OptionalText = None


def outcome_of(grade: Grade) -> Outcome:
    """How a trial that ended with an answer of this grade has ended."""
    return "solved" if grade.correct else "wrong"


RESPONSE: TypeAdapter[ResponseRecord] = TypeAdapter(ResponseRecord)


@dataclass(frozen=True)
class Regrade:
    """The answers of one scenario were graded anew: when (UTC, ISO 8601), by the grader of which digest, and what changed.

    unguarded   the guards of the sandbox that were missing while a model's code was run, as the user had said
    """

    at: str
    scenario: str
    graded_by: str
    answers: Count
    changed: Count
    unguarded: Many[str] = ()
    kind: Literal["regrade"] = "regrade"


@dataclass(frozen=True)
class NewGrade:
    """A trial's grade in place of the one in its record."""

    trial: str
    outcome: Outcome
    grade: Grade
    kind: Literal["grade"] = "grade"


GRADE: TypeAdapter[Regrade | NewGrade] = TypeAdapter(Annotated[Regrade | NewGrade, Field(discriminator="kind")])
RECORD: TypeAdapter[TrialRecord | SessionRecord] = TypeAdapter(
    Annotated[TrialRecord | SessionRecord, Field(discriminator="kind")]
)
