"""What each subtask writes. Entities are named as ITBench names them: namespace/Kind/name."""

from __future__ import annotations

from pydantic import Field

from bench.scenario import Output


class Symptoms(Output):
    first_alert: str = Field(description="the earliest alert that tells of the incident: its line, copied")
    affected: list[str] = Field(min_length=1, description="entities that suffer, as namespace/Kind/name")


class RootCause(Output):
    because: str = Field(description="what shows it, in one or two sentences")
    entities: list[str] = Field(min_length=1, max_length=5, description="as namespace/Kind/name, independent causes alone")


class Link(Output):
    source: str = Field(description="namespace/Kind/name")
    target: str = Field(description="namespace/Kind/name")


class Propagation(Output):
    links: list[Link] = Field(description="from each root cause onward to what suffers")
