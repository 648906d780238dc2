"""What each judgment gives. Whatever is graded is a number, a name, or a word of a closed vocabulary."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.scenario import Output

Mark = Literal["good", "bad"]


class Risk(Output):
    usage: Mark
    network: Mark
    billing: Mark
    support: Mark
    risk: Literal["low", "medium", "high"] = Field(description="by the number of bad signals")


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
    merger: bool
    decision: Literal["accept", "person", "churned", "expire"]
