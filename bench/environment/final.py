"""What a grader is given of a world: its database and its journal as they were at the end, to read and not to write."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from bench.environment import journal
from bench.environment.database import Db
from bench.environment.journal import Entry
from bench.environment.moment import Moment
from bench.environment.snapshot import CannotRestore


@dataclass(frozen=True)
class FinalWorld:
    """`db` reads the pack's tables; `journal` is all that happened, in order. What the agent says is nowhere in it."""

    db: Db
    journal: tuple[Entry, ...]
    now: Moment


def final_world(content: bytes) -> FinalWorld:
    """The world that these bytes of a snapshot hold. Raises CannotRestore where they hold none."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        connection.deserialize(content)
        connection.execute("PRAGMA query_only=ON")
        [clock] = connection.execute("SELECT now FROM world_clock").fetchall()
        return FinalWorld(Db(connection), tuple(journal.read(connection)), Moment.of(clock[0]))
    except (sqlite3.Error, ValueError) as error:
        connection.close()
        raise CannotRestore(f"what was kept is no world's database: {error}; take it from a copy") from error


def content_of(dump: str) -> bytes:
    """The bytes of the database that this SQL makes (`World.dump`). Raises CannotRestore where it makes none."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(dump)
        return connection.serialize()
    except (sqlite3.Error, ValueError) as error:
        raise CannotRestore(f"what was kept makes no database: {error}; take it from a copy") from error
    finally:
        connection.close()
