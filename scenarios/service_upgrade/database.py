"""The production database of the service, stored as the SQL that creates it, under the digest of that text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing

from .story import Row

SCHEMA = "CREATE TABLE orders (id INTEGER, customer TEXT, price TEXT, quantity INTEGER, placed INTEGER, due INTEGER)"
MIGRATION = "ALTER TABLE orders ADD COLUMN currency TEXT NOT NULL DEFAULT 'EUR'"
BACK = "ALTER TABLE orders DROP COLUMN currency"


def holding(orders: Iterable[Row]) -> str:
    """Return the SQL of a database with these orders, before the migration."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(SCHEMA)
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", [tuple(row.values()) for row in orders])
        return _dumped(database)


def migrated(sql: str, back: bool = False) -> str:
    """Return the SQL of a database after the migration, or after its reversal; unchanged if that was done already."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(sql)
        columns = [row[1] for row in database.execute("PRAGMA table_info(orders)")]
        if ("currency" in columns) == back:
            database.execute(BACK if back else MIGRATION)
        return _dumped(database)


def _dumped(database: sqlite3.Connection) -> str:
    return "\n".join(database.iterdump()) + "\n"
