"""What is kept of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bench.models.base import Timing
from bench.runtime.events import Event
from bench.scenario import Grade

Outcome = Literal["solved", "wrong", "gave_up", "ungraded", "error"]
"""`ungraded`: its calls were only counted; it enters no rate and no mean."""


@dataclass(frozen=True)
class TrialRecord:
    """One trial, whole. `id` is the digest of all that determines it.

    tokens    the caller's own count, kept apart from the events: the ledger's accounts must add up to it
    timing    whose the seconds of calls and waits are; framework seconds are always this machine's
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
    timing: Timing
    events: tuple[Event, ...]
    kind: Literal["trial"] = "trial"

    @property
    def arm(self) -> str:
        return arm_of(self.architecture, self.plan)


def arm_of(architecture: str, plan: str) -> str:
    """What a trial is called among those of the same scenario, model and repetition."""
    return f"{architecture}/{plan}"


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
