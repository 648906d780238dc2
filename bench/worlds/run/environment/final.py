"""A world's final database and journal for its grader, read-only."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from dataclasses import dataclass

from bench.record import journal
from bench.record.journal import JournalEntry
from bench.record.moment import Moment
from bench.worlds.run.environment.database import CHECK_INTERVAL, Db
from bench.worlds.run.environment.snapshot import CannotRestore

REBUILD_ACTIONS = frozenset(
    {
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
    }
)
"""The actions of SQL that rebuilds a database. Queries, other files and settings are not among them."""
SCHEMA_ACTIONS = {
    (sqlite3.SQLITE_UPDATE, "sqlite_master"),
    (sqlite3.SQLITE_DELETE, "sqlite_sequence"),
}
"""(action, table) of SQLite's own changes when it executes such SQL."""
MAX_VALUE_BYTES, MAX_PAGES = 2**24, 2**16
"""The most bytes of one value, and the most pages, of 4 KiB each, of the whole database."""
MAX_CALLBACKS = 10_000
"""The most progress callbacks, each after `CHECK_INTERVAL` SQLite instructions, before the reading of a world is stopped: about
ten seconds. A view can run forever."""


@dataclass(frozen=True)
class FinalWorld:
    """The final state of a world. `db` reads the pack's tables; `journal` contains all that happened, in order. It contains
    none of the agent's own claims."""

    db: Db
    journal: tuple[JournalEntry, ...]
    now: Moment


def final_world(content: bytes) -> FinalWorld:
    """Return the world in a snapshot's bytes. Raises CannotRestore if they contain no world."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        connection.deserialize(content)
        connection.execute("PRAGMA query_only=ON")
        callbacks = itertools.count()
        connection.set_progress_handler(lambda: int(next(callbacks) > MAX_CALLBACKS), CHECK_INTERVAL)
        now = Moment.of(connection.execute("SELECT now FROM world_clock").fetchone()[0])
        return FinalWorld(Db(connection), tuple(journal.read(connection)), now)
    except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        connection.close()
        raise CannotRestore(f"what is kept of the world cannot be read: {' '.join(str(error).split())[:200]}") from error


def content_of(dump: str) -> bytes:
    """Return the bytes of the database that this SQL makes (`World.dump`). Raises CannotRestore for any other SQL.

    The SQL comes from a run's files, which can be a stranger's. It can make tables and rows in memory, and nothing else.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.execute(f"PRAGMA max_page_count={MAX_PAGES}")
        connection.set_authorizer(_authorize)
        try:
            connection.executescript(dump)
            connection.set_authorizer(None)
            return connection.serialize()
        except (sqlite3.Error, ValueError) as error:
            raise CannotRestore(f"what is kept of the world cannot be read: {' '.join(str(error).split())[:200]}") from error


def _authorize(action: int, what: str | None, *_: str | None) -> int:
    """Allow only the actions of SQL that rebuilds a database."""
    return sqlite3.SQLITE_OK if action in REBUILD_ACTIONS or (action, what) in SCHEMA_ACTIONS else sqlite3.SQLITE_DENY
