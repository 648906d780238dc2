"""The tools of a shop, as plain functions over the SQLite database that SHOP names. If REFUNDS names a service, it pays."""

import json
import os
import sqlite3
import urllib.request
from contextlib import closing


def look(order: str) -> str:
    """Say what an order cost, in cents.

    Args:
        order: The order's number.
    """
    with closing(sqlite3.connect(os.environ["SHOP"])) as shop:
        return str(shop.execute("SELECT cents FROM orders WHERE id = ?", (order,)).fetchone()[0])


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
    with closing(sqlite3.connect(os.environ["SHOP"])) as shop, shop:
        shop.execute("INSERT INTO refunds (order_id, cents) VALUES (?, ?)", (order, cents))
    return "paid back"


def mail(recipient: str, text: str) -> str:
    """Send a mail.

    Args:
        recipient: Its address.
        text: What it says.
    """
    with closing(sqlite3.connect(os.environ["SHOP"])) as shop, shop:
        shop.execute("INSERT INTO mails (recipient, text) VALUES (?, ?)", (recipient, text))
    return "sent"


TASK = "Look at order o-17, pay it back, and write to ada@example.com."
