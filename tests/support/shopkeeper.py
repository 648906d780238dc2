"""An agent whose tools are functions of its own process. It looks, pays back and writes a mail, and makes a call once more if
it fails. At its end it prints what its database holds. SHOP names that file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any


def look(order: str) -> dict[str, Any]:
    with closing(sqlite3.connect(os.environ["SHOP"])) as shop:
        return {"cents": shop.execute("SELECT cents FROM orders WHERE id = ?", (order,)).fetchone()[0], "note": "a coat"}


def refund(order: str, cents: int) -> str:
    with closing(sqlite3.connect(os.environ["SHOP"])) as shop, shop:
        shop.execute("INSERT INTO refunds (order_id, cents) VALUES (?, ?)", (order, cents))
    return "refunded"


def mail(to: str) -> str:
    with closing(sqlite3.connect(os.environ["SHOP"])) as shop, shop:
        shop.execute("INSERT INTO mails (recipient) VALUES (?)", (to,))
    return "sent"


TOOLS: dict[str, Callable[..., Any]] = {"look": look, "refund": refund, "mail": mail}


def call(name: str, **arguments: Any) -> Any:
    try:
        return TOOLS[name](**arguments)
    except (TimeoutError, ConnectionError):
        return TOOLS[name](**arguments)


if __name__ == "__main__":
    call("refund", order="o-17", cents=call("look", order="o-17")["cents"])
    call("mail", to="ada@example.com")
    if Path(os.environ["SHOP"]).exists():
        with closing(sqlite3.connect(os.environ["SHOP"])) as shop:
            counts = [shop.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("refunds", "mails")]
        print("refunds and mails:", *counts)
