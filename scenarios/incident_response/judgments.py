"""What each judgment gives. Whatever is graded is a number, a name, or a word of a closed vocabulary. What it only notes
(`NOTES`) is neither right nor wrong, and nothing follows from it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.scenario import Output

from .forms import Outcome, Severity
from .wordings import Cause

NOTES = ("line", "note")
Action = Literal[
    "roll_back",
    "restart",
    "scale",
    "reboot_node",
    "renew_certificate",
    "free_disk",
    "raise_limit",
    "page_owner",
    "page_provider",
    "wait",
]


class Triage(Output):
    service: str = Field(description="that of the alert")
    error_pct: int = Field(ge=0, le=100, description="of this service, from the metrics")
    severity: Severity


class Suspect(Output):
    last_line: str = Field(description="that of the service at fault, copied")
    service: str = Field(description="the service at fault")


class Diagnosis(Output):
    line: str = Field(description="the line of the log that shows it, copied")
    cause: Cause
    node: str = Field(description='the node that the line names, or "none"')


class Chosen(Output):
    action: Action
    target: str = Field(description='the service or the node it is done to, or "none"')
    amount: int = Field(ge=0, le=10_000, description="0 where the action takes none")


class Recovered(Output):
    not_well: list[str] = Field(description="the names of the services that are not well; empty where all are")
    recovered: bool


class ClosingNote(Output):
    outcome: Outcome
    postmortem: bool
    note: str = Field(description="one sentence")
