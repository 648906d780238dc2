"""The output of each judgment. All graded values are numbers, names, or words of a closed vocabulary.

A small model that writes down what it sees before it decides is right more often: so `risk` counts,
and `close` says first what the answer is. What it only notes (`NOTES`) is neither right nor wrong, and nothing follows from it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.scenario import Output

Alarm = Literal["on", "off"]
NOTES = ("answer", "reason")


class Risk(Output):
    usage: Alarm
    network: Alarm
    billing: Alarm
    support: Alarm
    alarms_on: int = Field(ge=0, le=4, description="how many of the four are on")
    risk: Literal["low", "medium", "high"]


class Offer(Output):
    product: str = Field(description="the name of what is offered")
    discount: int = Field(ge=0, le=100, description="percent, without the sign")
    term_months: int = Field(ge=1, le=120)
    reason: str


class AfterChange(Output):
    product: str = Field(description="that of the standing offer")
    no_longer_sold: bool
    action: Literal["keep", "withdraw"]


class Close(Output):
    answer: Literal["agrees", "merger", "discount", "leaves", "none"]
    term_months: int = Field(description="that of the standing offer")
    merger: bool
    decision: Literal["accept", "person", "churned", "expire"]
