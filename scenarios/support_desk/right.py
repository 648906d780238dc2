"""The right output of each judgment, by what it is shown: a document out of date gets the answer that is right for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.scenario import Json

from .story import action_of
from .wordings import NONE, answer_in, aside_in, wish_in

Shown = Mapping[str, Any]


def right(subtask: str, documents: Mapping[str, str]) -> Json:
    """Return the right output. `documents`: those that the judgment reads, by name, as texts."""
    shown = {name: json.loads(text) for name, text in documents.items() if not name.endswith(".md")}
    match subtask:
        case "request":
            return _request(customers(shown["conversation"]))
        case "decision":
            return _decision(shown["ticket"], shown["orders"], shown["stock"])
        case "answer":
            last = last_of(shown["conversation"])
            return {"quote": last, "answer": answer_in(last)}
        case "second":
            return _aside(shown["aside"], shown["orders"])
        case "closing":
            return _closing(shown["ticket"], shown["conversation"])
    raise KeyError(subtask)


def customers(conversation: Shown) -> Sequence[str]:
    """Return what the customer wrote, in order."""
    return [line["text"] for line in conversation["lines"] if line["who"] == "customer"]


def last_of(conversation: Shown) -> str:
    """Return the last line of the customer, or that none came."""
    return next(reversed(customers(conversation)), "")


def _request(texts: Sequence[str]) -> Json:
    """The last message that asks for something says what; the order is the last that is named."""
    wishes = [(text, wish) for text in texts if (wish := wish_in(text))]
    if not wishes:
        return {"quote": "", "intent": "refund", "order": NONE, "size": NONE}
    text, wish = wishes[-1]
    order = next((each.order for _, each in reversed(wishes) if each.order), NONE)
    return {"quote": text, "intent": wish.intent, "order": order, "size": wish.size or NONE}


def _decision(ticket: Shown, orders: Shown, stock: Shown) -> Json:
    order = order_in(orders, ticket["order"])
    if order is None:
        return {"action": "refuse", "amount": 0, "size": NONE}
    action = action_of(
        ticket["intent"], order["state"], order["days_since_delivery"], order["final_sale"], stock.get("left", 0)
    )
    amount = order["price"] if action == "refund" else 0
    return {"action": action, "amount": amount, "size": ticket["size"] if action == "exchange" else NONE}


def order_in(orders: Shown, number: str) -> Shown | None:
    """Return the order of this number; None where there is none."""
    return next((order for order in orders["orders"] if order["order"] == number), None)


def _aside(aside: Shown, orders: Shown) -> Json:
    number, address = aside_in(aside["text"])
    order = order_in(orders, number)
    action = "change_address" if order and order["state"] == "packing" else "refuse"
    return {"action": action, "order": number, "address": address}


def _closing(ticket: Shown, conversation: Shown) -> Json:
    answer = answer_in(last_of(conversation))
    outcome = "declined"
    if set(ticket["done"]) & {"refund", "exchange", "cancel"}:
        outcome = "resolved"
    elif ticket["offered"] == "refuse" or answer == "yes":
        outcome = "refused"
    elif answer == "silent":
        outcome = "unanswered"
    return {"outcome": outcome, "note": f"{ticket['order'] or 'no order'}: {outcome}"}
