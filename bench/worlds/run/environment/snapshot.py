"""A snapshot of a world, from whose bytes the world is restored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from bench.common.errors import BenchError
from bench.worlds.run.environment.database import Connection


@dataclass(frozen=True)
class Snapshot:
    """A copy of a world's database. `digest` identifies the content of the pack's tables; `content` is the whole database, with
    journal and clock."""

    digest: str
    content: bytes


class CannotRestore(BenchError):
    """The bytes are no database of a world."""


def load(connection: Connection, content: bytes) -> None:
    """Replace the database with this content. Raises CannotRestore, and changes nothing, if the bytes are no world."""
    source = sqlite3.connect(":memory:")
    try:
        source.deserialize(content)
        if source.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise CannotRestore("the snapshot is damaged; take it from a copy")
        source.execute("SELECT now, life FROM world_clock").fetchone()
        source.backup(connection)
    except sqlite3.Error as error:
        raise CannotRestore(f"the snapshot is not the database of a world: {error}; take it from a copy") from error
    finally:
        source.close()


class PastStates:
    """The state of a world before each thing's last change. Without `keeps` no state is stored."""

    def __init__(self, connection: sqlite3.Connection, keeps: bool):
        self._connection, self.keeps = connection, keeps
        self._before: dict[str, bytes] = {}

    def now(self) -> bytes:
        """Return the world's present content; empty without `keeps`."""
        return self._connection.serialize() if self.keeps else b""

    def note_change(self, things: Iterable[str], before: bytes) -> None:
        """Store the world as it was before these things changed."""
        if self.keeps:
            self._before.update(dict.fromkeys(things, before))

    def before(self, things: Iterable[str]) -> tuple[str, bytes] | None:
        """Return the first of these things that has changed, and the world before that change; None if none has changed."""
        return next(((thing, self._before[thing]) for thing in things if thing in self._before), None)
