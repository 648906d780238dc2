"""The records in a run's files: of trials, of sessions, of responses and of new grades."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from bench.common.bounds import Many
from bench.common.numbers import Count, Seconds, Seed
from bench.common.values import dataclass, kept
from bench.record.events import Event, Events
from bench.record.grade import Grade
from bench.record.messages import OptionalText, StoredMessage, Timing

TrialId = Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]
"""A trial's id in a file. It becomes part of the names of exported files, so its pattern allows no path."""
Outcome = Literal["solved", "wrong", "gave_up", "ungraded", "error"]
"""How a trial ended. `ungraded`: its calls were only counted; it is in no rate and in no mean."""


@dataclass(frozen=True)
class TrialRecord:
    """The record of one trial. `id` is the digest of all that determines the trial.

    instance   the name of the instance; "" for the only instance of a pack
    tokens     the tokens as the caller counted them, separately from the events: the ledger's accounts must add up to them
    timing     the kind of the seconds of calls and waits; framework seconds are always real seconds
    reason     why the trial gave up or ended in an error, in one line
    traceback  digest of the traceback of a trial that ended in a bug; else None
    """

    id: TrialId
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

    @kept
    def place(self) -> str:
        """The digest of the trial's place in its run."""
        return place_in_run(self.scenario, self.instance, self.architecture, self.model, self.plan, self.repetition)


def arm_of(architecture: str, plan: str) -> str:
    """Return a trial's name among the trials of the same scenario, model and repetition."""
    return f"{architecture}/{plan}"


def place_in_run(scenario: str, instance: str, architecture: str, model: str, plan: str, repetition: int) -> str:
    """Return the digest of a trial's place in its run. A run has one trial at each place, whatever code runs it.

    Args:
        scenario: The pack, with its variant.
        instance: The task.
        architecture: The architecture's name in the config.
        model: The model's name in the config.
        plan: The fault plan's name.
        repetition: The number of the repetition, from 1.

    Returns:
        Twenty hexadecimal digits.
    """
    place = "\0".join((scenario, instance, architecture, model, plan, str(repetition)))
    return hashlib.blake2b(place.encode(errors="surrogatepass"), digest_size=10).hexdigest()


class FailedTrials:
    """The trials of a run whose last record ended in an error. When the run continues, another record replaces each of them:
    with the same id, or with another id if other code ran it."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def replaced_by(self, record: TrialRecord) -> str:
        """Take in the next record of the run, and return the id of the failed trial that it replaces; "" if it replaces
        none."""
        replaced = self._ids.pop(record.place, "")
        if record.outcome == "error":
            self._ids[record.place] = record.id
        return replaced


def latest(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Return the last record of each trial, without failed trials that another record replaces."""
    last, failed = dict[str, TrialRecord](), FailedTrials()
    for record in records:
        if (replaced := failed.replaced_by(record)) not in ("", record.id):
            del last[replaced]
        last[record.id] = record
    return list(last.values())


@dataclass(frozen=True)
class EndpointTrouble:
    """How an endpoint was slowed down in a session. A 429 halved its `limit` on calls in flight `fell` times, to `lowest` at
    least. All calls to it were held back `pauses` times, for `paused` seconds in all."""

    endpoint: str
    limit: Count
    fell: Count
    lowest: Count
    pauses: Count
    paused: Seconds


@dataclass(frozen=True)
class ClosingMark:
    """The mark of a complete run: the number of its trials, and the link of its last response, which is a digest of all
    responses."""

    trials: Count
    responses: str


@dataclass(frozen=True)
class SessionRecord:
    """The beginning or the end of one `bench run` on a run's folder. Times are UTC, ISO 8601.

    detail   how it began or ended
    trouble  at its end: the endpoints that slowed it down
    mark     at its end, if all planned trials are recorded; a later session with more trials has a new mark
    harmed   whether a probe ended because a store itself had changed, so that nothing can be concluded from the run
    """

    at: str
    what: Literal["began", "ended"]
    detail: str
    trouble: Many[EndpointTrouble] = ()
    mark: ClosingMark | None = None
    harmed: bool = False
    kind: Literal["session"] = "session"


@dataclass(frozen=True)
class ResponseRecord:
    """The record of a model's response to one request, written when the response came.

    settings    digest of the settings that determine the model's reply (`bench.run.experiment.recording.settings_digest`)
    seed        the seed of the request; `occurrence`: how often this trial had sent the request before; `answers`: how many
                replies it had got
    reply       digest of the reply's text; None if the call failed
    failure     the kind of the CallFailed that it ended in; "" if a reply came; `partial` is the digest of the part that came
    tool_calls, options   as in the event of the call
    extra       digest of the provider's other fields; None for none
    usage_*     the provider's own count, of a reply or of a failure that was paid; None if it sent none
    account     an identifier of the account that was asked (`bench.run.openai.settings.account_of`); "" without a key
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
    account: str = ""


def outcome_of(grade: Grade) -> Outcome:
    """Return the outcome of a trial whose answer got this grade."""
    return "solved" if grade.correct else "wrong"


RESPONSE: TypeAdapter[ResponseRecord] = TypeAdapter(ResponseRecord)


@dataclass(frozen=True)
class Regrade:
    """The record that the answers of one scenario were graded again: the time (UTC, ISO 8601), the grader's digest, and how
    many grades changed.

    unguarded   the missing guards of the sandbox despite which the user let a model's code run
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
    """A new grade of a trial. It replaces the grade in the trial's record."""

    trial: TrialId
    outcome: Outcome
    grade: Grade
    kind: Literal["grade"] = "grade"


GRADE: TypeAdapter[Regrade | NewGrade] = TypeAdapter(Annotated[Regrade | NewGrade, Field(discriminator="kind")])
RECORD: TypeAdapter[TrialRecord | SessionRecord] = TypeAdapter(
    Annotated[TrialRecord | SessionRecord, Field(discriminator="kind")]
)
