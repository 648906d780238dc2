"""The tools that read."""

from __future__ import annotations

import json
from typing import Any

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .forms import Account, Aside, Conversation, Line, OfTicket, Orders, ShownOrder, Sized, Stock, Ticket


def require(db: Db, given: Any) -> None:
    """Refuse a call about a ticket or an order that is not there."""
    for table, column, field in (("ticket", "id", "ticket"), ("purchase", "number", "order")):
        name = given.get(field)
        if name is not None and db.value(f"SELECT 1 FROM {table} WHERE {column} = ?", name) is None:
            raise ToolRefused(f"there is no {field} {name}")


def _read_conversation(db: Db, arguments: OfTicket, _: Moment) -> Conversation:
    require(db, arguments.model_dump())
    return Conversation(lines=[Line(who=row["who"], text=row["text"]) for row in db.all("SELECT * FROM line ORDER BY rowid")])


def _read_aside(db: Db, arguments: OfTicket, _: Moment) -> Aside:
    require(db, arguments.model_dump())
    return Aside(text=db.value("SELECT text FROM aside") or "")


def _read_orders(db: Db, arguments: OfTicket, _: Moment) -> Orders:
    require(db, arguments.model_dump())
    return Orders(
        orders=[
            ShownOrder(
                order=row["number"],
                days_since_delivery=row["days"],
                final_sale=bool(row["final_sale"]),
                **{name: row[name] for name in ("item", "size", "price", "state", "address")},
            )
            for row in db.all("SELECT * FROM purchase ORDER BY number")
        ]
    )


def _read_stock(db: Db, arguments: Sized, _: Moment) -> Stock:
    require(db, {"order": arguments.order})
    item = db.value("SELECT item FROM purchase WHERE number = ?", arguments.order)
    left = db.value("SELECT remaining FROM stock WHERE (item, size) = (?, ?) ORDER BY rowid DESC", item, arguments.size)
    return Stock(item=item, size=arguments.size, left=left or 0)


def _read_account(db: Db, arguments: OfTicket, _: Moment) -> Account:
    require(db, arguments.model_dump())
    row = db.row("SELECT * FROM account")
    assert row is not None, "each customer has one"
    return Account(name=row["name"], address=row["address"])


DONE_BY = {
    "refund": "refund",
    "ship": "exchange",
    "cancel_order": "cancel",
    "reserve": "reservation",
    "change_address": "address",
}
"""Tool -> what the ticket's record calls it."""


def _read_ticket(db: Db, arguments: OfTicket, _: Moment) -> Ticket:
    require(db, arguments.model_dump())
    deeds = db.all("SELECT tool, given FROM deed WHERE standing ORDER BY rowid")
    known: dict[str, Any] = {}
    for row in deeds:
        given = json.loads(row["given"])
        if row["tool"] == "note_request":
            known |= {name: given[name] for name in ("intent", "order", "size")}
        if row["tool"] == "reply" and given["turn"] == 2:
            known["offered"] = given["says"]
    return Ticket(**known, done=[DONE_BY[row["tool"]] for row in deeds if row["tool"] in DONE_BY])


def of(*things: str) -> Any:
    """Return what a tool is about."""
    return lambda _: things


READING = (
    Tool("read_conversation", "read", OfTicket, Conversation, _read_conversation, about=of("conversation")),
    Tool("read_aside", "read", OfTicket, Aside, _read_aside, about=of("aside")),
    Tool("read_orders", "read", OfTicket, Orders, _read_orders, about=of("orders")),
    Tool("read_stock", "read", Sized, Stock, _read_stock, about=of("stock")),
    Tool("read_account", "read", OfTicket, Account, _read_account, about=of("account")),
    Tool("read_ticket", "read", OfTicket, Ticket, _read_ticket, about=of("ticket")),
)
