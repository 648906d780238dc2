"""The tools that read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .forms import Billing, Catalogue, Customer, Network, NoLongerSold, Price, Renewal, Reply, StandingOffer, Support, Usage
from .limits import price
from .replies import NO_ANSWER


def require(db: Db, customer: str) -> None:
    """Raise ToolRefused if the world has no such customer."""
    if db.value("SELECT 1 FROM customer WHERE id = ?", customer) is None:
        raise ToolRefused(f"there is no customer {customer}")


def offer_to(arguments: Any) -> tuple[str, ...]:
    """Return the names of the things that determine which offer is allowed: the catalogue, the score, and the offer itself."""
    return (f"offer to {arguments.customer}",)


def reply_of(arguments: Any) -> tuple[str, ...]:
    return (f"reply of {arguments.customer}",)


def _look_up(db: Db, arguments: Customer, _: Moment) -> Renewal:
    require(db, arguments.customer)
    row = db.row("SELECT * FROM customer JOIN product ON product.name = customer.product")
    assert row is not None, "each customer's product is in the catalogue"
    sold = row["retired_at"] is None
    return Renewal(
        name=db.value("SELECT name FROM customer"),
        product=row["product"],
        still_sold=sold,
        successor="" if sold else row["successor"],
        asks_discount=row["asks_discount"],
        asks_term_months=row["asks_term"],
        churn_risk=db.value("SELECT risk FROM score ORDER BY rowid DESC LIMIT 1") or "unknown",
    )


def _signal(kind: str, form: type[BaseModel]) -> Callable[[Db, Customer, Moment], BaseModel]:
    def read(db: Db, arguments: Customer, _: Moment) -> BaseModel:
        require(db, arguments.customer)
        return form.model_validate(json.loads(db.value("SELECT shown FROM signal WHERE kind = ?", kind)))

    return read


def _read_catalogue(db: Db, arguments: Customer, _: Moment) -> Catalogue:
    require(db, arguments.customer)
    gone = db.all("SELECT name, successor FROM product WHERE retired_at IS NOT NULL ORDER BY name")
    return Catalogue(no_longer_sold=[NoLongerSold(product=row["name"], successor=row["successor"]) for row in gone])


def _read_offer(db: Db, arguments: Customer, _: Moment) -> StandingOffer:
    require(db, arguments.customer)
    row = db.row("SELECT * FROM offer WHERE standing ORDER BY rowid DESC LIMIT 1")
    if row is None:
        return StandingOffer()
    published = db.value("SELECT 1 FROM publication WHERE product = ?", row["product"]) is not None
    return StandingOffer(product=row["product"], discount=row["discount"], term_months=row["term"], published=published)


def _read_reply(db: Db, arguments: Customer, _: Moment) -> Reply:
    require(db, arguments.customer)
    return Reply(text=db.value("SELECT text FROM reply ORDER BY rowid DESC LIMIT 1") or NO_ANSWER)


def _read_price(db: Db, arguments: Customer, _: Moment) -> Price:
    require(db, arguments.customer)
    amount = price_of_closing(db)
    if amount is None:
        raise ToolRefused("nothing is accepted, so that there is no price")
    return Price(amount=amount)


def price_of_closing(db: Db) -> int | None:
    """Return the price of the accepted renewal; None if none was accepted."""
    row = db.row("SELECT * FROM closing WHERE outcome IN ('renewed', 'restructured') ORDER BY rowid LIMIT 1")
    return price(db.value("SELECT yearly FROM customer"), row["discount"], row["term"]) if row else None


READING = (
    Tool("look_up", "read", Customer, Renewal, _look_up, about=offer_to),
    Tool("read_usage", "read", Customer, Usage, _signal("usage", Usage)),
    Tool("read_network", "read", Customer, Network, _signal("network", Network)),
    Tool("read_billing", "read", Customer, Billing, _signal("billing", Billing)),
    Tool("read_support", "read", Customer, Support, _signal("support", Support)),
    Tool("read_catalogue", "read", Customer, Catalogue, _read_catalogue, about=offer_to),
    Tool("read_offer", "read", Customer, StandingOffer, _read_offer, about=offer_to),
    Tool("read_reply", "read", Customer, Reply, _read_reply, about=reply_of),
    Tool("read_price", "read", Customer, Price, _read_price),
)
