"""What the tools take and return. What is returned is shown to judgments as it is: it holds no number of a row and no time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

Risk = Literal["low", "medium", "high"]
Alarm = Literal["on", "off"]
"""Of a signal whose numbers are bad: the monitoring says so."""


class Customer(BaseModel):
    customer: str


class Usage(BaseModel):
    seats: int
    seats_used: int
    alarm: Alarm
    remark: str


class Network(BaseModel):
    outage_minutes: int
    alarm: Alarm
    remark: str


class Billing(BaseModel):
    days_overdue: int
    alarm: Alarm
    remark: str


class Support(BaseModel):
    severe_tickets_open: int
    tickets_closed: int
    alarm: Alarm
    remark: str


class Renewal(BaseModel):
    name: str
    product: str
    still_sold: bool
    successor: str = Field(description="of the product; empty where it is still sold")
    asks_discount: int
    asks_term_months: int
    churn_risk: str = Field(description='"unknown" before it is scored')


class NoLongerSold(BaseModel):
    product: str
    successor: str


class Catalogue(BaseModel):
    no_longer_sold: list[NoLongerSold]


class StandingOffer(BaseModel):
    """Empty and 0 where no offer stands."""

    product: str = ""
    discount: int = 0
    term_months: int = 0
    published: bool = False


class Reply(BaseModel):
    text: str


class Price(BaseModel):
    amount: int


class Note(Customer):
    text: str


class Score(Customer):
    risk: Risk


class OfProduct(Customer):
    product: str


class Draft(OfProduct):
    discount: int = Field(ge=0, le=100)
    term_months: int = Field(ge=1, le=120)


class Accept(Draft):
    merger: bool = False


class Close(Customer):
    outcome: Literal["churned", "escalated"]


class Invoice(Customer):
    amount: int = Field(ge=0)


class Done(BaseModel):
    done: bool = True


class Closing(BaseModel):
    outcome: Literal["renewed", "restructured", "churned", "escalated", "expired"]
