"""What a grader is given of a world: its database and its journal as they were at the end, to read and not to write."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from dataclasses import dataclass

from bench.worlds.environment import journal
from bench.worlds.environment.database import STEPS, Db
from bench.worlds.environment.journal import JournalEntry
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.snapshot import CannotRestore

MAKING = frozenset(
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
"""What the SQL of a database does that is made again: it holds no question, no other file and no setting."""
SCHEMA = {
    (sqlite3.SQLITE_UPDATE, "sqlite_master"),
    (sqlite3.SQLITE_DELETE, "sqlite_sequence"),
}
"""What SQLite itself does for such statements."""
LONGEST_VALUE, MOST_PAGES = 2**24, 2**16
"""Bytes of one value; pages of 4 KiB of the whole."""
MOST_LOOKS = 10_000
"""Times STEPS of SQLite's own instructions that reading a world may take in all: some ten seconds. A view need not end."""


@dataclass(frozen=True)
class FinalWorld:
    """`db` reads the pack's tables; `journal` is all that happened, in order. What the agent says is nowhere in it."""

    db: Db
    journal: tuple[JournalEntry, ...]
    now: Moment


def final_world(content: bytes) -> FinalWorld:
    """The world that these bytes of a snapshot hold. Raises CannotRestore where they hold none."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        connection.deserialize(content)
        connection.execute("PRAGMA query_only=ON")
        looks = itertools.count()
        connection.set_progress_handler(lambda: int(next(looks) > MOST_LOOKS), STEPS)
        now = Moment.of(connection.execute("SELECT now FROM world_clock").fetchone()[0])
        return FinalWorld(Db(connection), tuple(journal.read(connection)), now)
    except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        connection.close()
        raise CannotRestore(f"what is kept of the world is none: {' '.join(str(error).split())[:200]}") from error


def content_of(dump: str) -> bytes:
    """The bytes of the database that this SQL makes (`World.dump`). It comes from a run's files, which may be a stranger's: it
    makes tables and rows in memory, and nothing else. Raises CannotRestore for any other SQL."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.execute(f"PRAGMA max_page_count={MOST_PAGES}")
        connection.set_authorizer(_may)
        try:
            connection.executescript(dump)
            connection.set_authorizer(None)
            return connection.serialize()
        except (sqlite3.Error, ValueError) as error:
            raise CannotRestore(f"what is kept of the world is none: {' '.join(str(error).split())[:200]}") from error


def _may(action: int, what: str | None, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in MAKING or (action, what) in SCHEMA else sqlite3.SQLITE_DENY
