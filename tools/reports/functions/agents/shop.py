"""The tools of a shop, as plain functions over the database that SHOP names: a file of SQLite, or the address of one of
PostgreSQL. If REFUNDS names a service, it pays."""

import json
import os
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any


@contextmanager
def shop() -> Iterator[Any]:
    """Yield what executes SQL with positional values; it is committed at the end."""
    where = os.environ["SHOP"]
    if "://" in where:
        import psycopg  # noqa: PLC0415  only one of the two shops needs it

        with psycopg.connect(where) as session:
            yield lambda sql, *values: session.execute(sql.replace("?", "%s"), values)
    else:
        with closing(sqlite3.connect(where)) as session, session:
            yield lambda sql, *values: session.execute(sql, values)


def look(order: str) -> str:
    """Say what an order cost, in cents.

    Args:
        order: The order's number.
    """
    with shop() as execute:
        return str(execute("SELECT cents FROM orders WHERE id = ?", order).fetchone()[0])


def refund(order: str, cents: int) -> str:
    """Pay the customer of an order back.

    Args:
        order: The order's number.
        cents: How much is paid.
    """
    if address := os.environ.get("REFUNDS"):
        body = json.dumps({"order": order, "cents": cents}).encode()
        with urllib.request.urlopen(f"{address}/refunds", body, timeout=2) as answer:
            return str(answer.read().decode())
    with shop() as execute:
        execute("INSERT INTO refunds (order_id, cents) VALUES (?, ?)", order, cents)
    return "paid back"


def mail(recipient: str, text: str) -> str:
    """Send a mail.

    Args:
        recipient: Its address.
        text: What it says.
    """
    with shop() as execute:
        execute("INSERT INTO mails (recipient, text) VALUES (?, ?)", recipient, text)
    return "sent"


TASK = "Look at order o-17, pay it back, and write to ada@example.com."
