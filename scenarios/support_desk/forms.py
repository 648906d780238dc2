"""What the tools take and return. What is returned is shown to judgments as it is: it holds no number of a row and no time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from .story import Action
from .wordings import NONE, Intent

Outcome = Literal["resolved", "refused", "unanswered", "declined"]
Says = Literal["which_order", "confirm", "refund", "exchange", "cancel", "refuse"]


class OfTicket(BaseModel):
    ticket: str


class OfOrder(BaseModel):
    order: str


class Sized(OfOrder):
    size: str


class Line(BaseModel):
    who: Literal["customer", "desk"]
    text: str


class Conversation(BaseModel):
    lines: list[Line]


class Aside(BaseModel):
    text: str = Field(description="empty where there is none")


class ShownOrder(BaseModel):
    order: str
    item: str
    size: str
    price: int
    state: Literal["packing", "shipped", "delivered"]
    days_since_delivery: int
    final_sale: bool
    address: str


class Orders(BaseModel):
    orders: list[ShownOrder]


class Stock(BaseModel):
    item: str
    size: str
    left: int


class Account(BaseModel):
    name: str
    address: str


class Ticket(BaseModel):
    """Empty where nothing is known yet. `done`: what stands, such as refund."""

    intent: str = ""
    order: str = ""
    size: str = ""
    offered: str = ""
    done: list[str] = []


class Request(OfTicket):
    intent: Intent
    order: str
    size: str


class Reply(OfTicket):
    turn: int = Field(ge=1, le=2, description="1 answers the first message, 2 makes the offer")
    says: Says
    amount: int = Field(0, ge=0)
    size: str = NONE


class Refund(OfOrder):
    amount: int = Field(ge=0)


class Shipment(Sized):
    address: str


class NewAddress(OfOrder):
    address: str


class Closing(OfTicket):
    outcome: Outcome
    note: str


class Done(BaseModel):
    done: bool = True


OFFERS: tuple[Action, ...] = ("refund", "exchange", "cancel", "refuse")
