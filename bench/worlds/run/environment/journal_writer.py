"""Write a world's journal, the number of the agent's process, and the agent's knowledge."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace

from bench.common.errors import whole_text
from bench.record import journal
from bench.record.journal import JournalEntry
from bench.record.moment import Moment
from bench.worlds.run.environment.contracts import ANY
from bench.worlds.run.environment.knowledge import Knowledge
from bench.worlds.run.environment.schedule import Schedule


class JournalWriter:
    """Writes the journal of one world. `next` is the number of the next entry, `life` the number of the agent's present
    process, and `knowledge` has the versions that the agent has seen."""

    def __init__(self, connection: sqlite3.Connection, schedule: Schedule):
        self._connection, self._schedule = connection, schedule
        self.reopen()

    def reopen(self) -> None:
        """Read `next`, `life` and `knowledge` from the database after it was created, restored, or written by another
        process."""
        entries = self.entries()
        self.next = len(entries) + 1
        self.knowledge = Knowledge(entries)
        self.life: int = self._connection.execute("SELECT life FROM world_clock").fetchone()[0]
        for arrival in self._schedule.arrivals():
            self.knowledge.note_seen(arrival.versions)

    def write(self, entry: JournalEntry, about: Iterable[str] = ()) -> JournalEntry:
        """Append an entry and return it as stored. `about` names the things whose versions the entry was based on."""
        stored = replace(entry, seq=self.next, at=self._schedule.now, life=self.life, seen=self.knowledge.based_on(about))
        journal.append(self._connection, stored)
        self.next += 1
        self.knowledge.note(stored)
        return stored

    def entries(self, where: str = "1", *values: object) -> list[JournalEntry]:
        """Return the entries that fulfil an SQL condition, in order."""
        return journal.read(self._connection, where, *values)

    def entry(self, seq: int) -> JournalEntry | None:
        return next(iter(self.entries("seq = ?", seq)), None)

    def call_under_key(self, key: str) -> JournalEntry | None:
        """Return the call that was done under this idempotency key; None if there is none."""
        return next(iter(self.entries("key = ? AND outcome = 'done'", whole_text(key))), None)

    def count_accepted(self, tool: str, who: str, since: Moment | None) -> int:
        """Return the number of accepted calls of a tool by a role since a moment. "*" stands for any tool or role."""
        where, values = "what = 'call' AND outcome IN ('done', 'failed')", list[object]()
        for column, value in (("name", tool), ("who", who)):
            if value != ANY:
                where, values = f"{where} AND {column} = ?", [*values, value]
        if since is not None:
            where, values = f"{where} AND at >= ?", [*values, since.total]
        return int(self._connection.execute(f"SELECT count(*) FROM world_journal WHERE {where}", values).fetchone()[0])

    def write_crash(self, point: str) -> None:
        """Write the death of the agent's process, and count the next process."""
        self.write(JournalEntry("crash", point, arguments={}))
        self.life += 1
        self._connection.execute("UPDATE world_clock SET life = ?", (self.life,))

    def acknowledge(self, entry: int) -> None:
        """Note that the agent got the result of this call."""
        self._connection.execute("INSERT INTO world_known VALUES (?, 'acknowledged')", (entry,))

    def record(self, after: int) -> None:
        """Note that the agent recorded the results that it got from entries after this one.

        An entry is noted once. Otherwise an agent that writes often would grow the database with the square of its calls.
        """
        self._connection.execute(
            "INSERT INTO world_known SELECT seq, 'recorded' FROM world_known WHERE how = 'acknowledged' AND seq > "
            "max(?, coalesce((SELECT max(seq) FROM world_journal WHERE what = 'crash'), 0)) "
            "AND seq NOT IN (SELECT seq FROM world_known WHERE how = 'recorded')",
            (after,),
        )

    def knowledge_by_entry(self) -> dict[int, str]:
        """Return for each entry whose result the agent got: `recorded` if the agent also recorded it, else `acknowledged`."""
        return dict(map(tuple, self._connection.execute("SELECT seq, how FROM world_known ORDER BY rowid")))
