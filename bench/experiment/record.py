"""What is kept of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bench.runtime.events import Event
from bench.scenario import Grade

Outcome = Literal["solved", "wrong", "gave_up", "error"]


@dataclass(frozen=True)
class TrialRecord:
    """One trial, whole. `id` is the digest of all that determines it.

    tokens    the caller's own count, kept apart from the events: the ledger's accounts must add up to it
    virtual   the seconds of calls and waits were simulated; framework seconds are always real
    reason    why a trial gave up or ended in an error, in one line
    """

    id: str
    scenario: str
    architecture: str
    model: str
    plan: str
    repetition: int
    outcome: Outcome
    reason: str
    grade: Grade | None
    tokens: int
    api_seconds: float
    waiting_seconds: float
    framework_seconds: float
    virtual: bool
    events: tuple[Event, ...]
    kind: Literal["trial"] = "trial"


@dataclass(frozen=True)
class SessionRecord:
    """One `bench run` on a results folder: when it began or ended, and how. Times are UTC, ISO 8601."""

    at: str
    what: Literal["began", "ended"]
    detail: str
    kind: Literal["session"] = "session"


RECORD: TypeAdapter[TrialRecord | SessionRecord] = TypeAdapter(
    Annotated[TrialRecord | SessionRecord, Field(discriminator="kind")]
)
