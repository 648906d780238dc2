"""What the tools take and return. What is returned is shown to judgments as it is: it holds no number of a row and no time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

Severity = Literal["critical", "major", "minor", "noise"]
Who = Literal["lead", "owner", "provider"]
Outcome = Literal["noise", "resolved", "handed_over"]


class Incident(BaseModel):
    incident: str


class OfService(BaseModel):
    service: str


class OfNode(BaseModel):
    node: str


class Everything(BaseModel):
    pass


class Alert(BaseModel):
    service: str
    text: str


class Metric(BaseModel):
    service: str
    error_pct: int
    p95_ms: int


class Metrics(BaseModel):
    services: list[Metric]


class Overseen(BaseModel):
    service: str
    calls: list[str]
    last_line: str


class Overview(BaseModel):
    services: list[Overseen]


class Log(BaseModel):
    service: str
    lines: list[str]


class Change(BaseModel):
    service: str
    change: str


class Changes(BaseModel):
    changes: list[Change]


class Deployment(BaseModel):
    service: str
    version: str
    previous: str
    previous_withdrawn: bool = Field(description="whether the version before this one was found bad and replaced")
    schema_changed: bool
    migration_running: bool
    stateful: bool
    replicas: int
    connections: int


class Capacity(BaseModel):
    ready: list[str]
    drained: list[str]
    needed: int


class Standing(BaseModel):
    """A remedy that stands."""

    tool: str
    target: str


class State(BaseModel):
    """Empty where nothing is known yet."""

    severity: str = ""
    service: str = ""
    cause: str = ""
    node: str = ""
    done: list[Standing] = []
    paged: list[str] = []


class Graded(Incident):
    severity: Severity


class Found(Incident):
    service: str
    cause: str
    node: str


class Announcement(Incident):
    status: Literal["investigating", "resolved"]


class Page(Incident):
    who: Who


class Scaling(OfService):
    replicas: int = Field(ge=1)


class Limit(OfService):
    connections: int = Field(ge=1)


class Closing(Incident):
    outcome: Outcome
    postmortem: bool
    note: str


class Done(BaseModel):
    done: bool = True
