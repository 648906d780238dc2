"""What each judgment gives. Whatever is graded is a number, a name, or a word of a closed vocabulary. What it only notes
(`NOTES`) is neither right nor wrong, and nothing follows from it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.scenario import Output

from .forms import Outcome
from .story import Action
from .wordings import Answer, Intent

NOTES = ("quote", "note")


class Wanted(Output):
    quote: str = Field(description="the customer's line that says it, copied")
    intent: Intent
    order: str = Field(description='the number of the order, or "none" where the customer names none')
    size: str = Field(description='the size that is wanted in exchange, or "none"')


class Decision(Output):
    action: Action
    amount: int = Field(ge=0, le=10_000, description="0 for all but refund")
    size: str = Field(description='the size that is sent in exchange, or "none"')


class Answered(Output):
    quote: str = Field(description="the last line, copied")
    answer: Answer


class AsideDecision(Output):
    action: Literal["change_address", "refuse"]
    order: str = Field(description='the number of the order, or "none"')
    address: str = Field(description='the new address, or "none"')


class ClosingNote(Output):
    outcome: Outcome
    note: str = Field(description="one sentence")
