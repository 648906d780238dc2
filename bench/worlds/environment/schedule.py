"""World time: what is still to happen, the clock that passes it, and the notices that reach the agent."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.worlds.environment.database import dump
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import Arrival, Payload, Scheduled
from bench.worlds.environment.snapshot import CannotRestore

Versions = Mapping[str, int]
Happen = Callable[["Pending"], tuple[Payload, Versions]]
"""Let something happen; the payload of its notice, and the versions of what it changed."""
Notices = Callable[[Scheduled, Moment | None], "Sequence[NoticeTime]"]
"""(an event, the moment of the next) -> when the agent is told of it, each time: the faults of events."""


@dataclass(frozen=True)
class NoticeTime:
    """`held`: behind all that is due at that moment by then."""

    at: Moment
    held: bool = False


@dataclass(frozen=True)
class Pending:
    """Something that is still to happen: an `event`, a person's `answer`, or a `notice` that was held back."""

    id: int
    at: Moment
    what: str
    kind: str
    name: str
    payload: Payload
    versions: Versions


def at_once(event: Scheduled, _: Moment | None) -> Sequence[NoticeTime]:
    return (NoticeTime(event.at),)


COLUMNS = "kind, name, payload, versions"
NONE: Versions = {}


class Schedule:
    """The clock of one world, which stands in its database. `notices` tells when the agent hears of an event."""

    def __init__(self, connection: sqlite3.Connection, ends: Moment | None):
        self._connection, self._ends = connection, ends
        self.notices: Notices = at_once
        self.now = self._read()

    def _read(self) -> Moment:
        return Moment.of(self._connection.execute("SELECT now FROM world_clock").fetchone()[0])

    def reread(self) -> None:
        self.now = self._read()

    def add(self, what: str, kind: str, at: Moment, payload: Payload, name: str, versions: Versions = NONE) -> None:
        """What is to come in the past comes now."""
        values = (max(at, self.now).total, what, kind, name, dump(payload), dump(versions))
        self._connection.execute(f"INSERT INTO world_pending (at, what, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def next(self) -> Pending | None:
        row = self._connection.execute("SELECT * FROM world_pending ORDER BY at, id LIMIT 1").fetchone()
        if row is None or (self._ends is not None and row["at"] > self._ends.total):
            return None
        return Pending(row["id"], Moment.of(row["at"]), row["what"], *_columns(row))

    def pass_to(self, moment: Moment, happen: Happen) -> None:
        """Let time pass, up to the world's end at most, and all that is due in it happen, in order."""
        goal = min(moment, self._ends) if self._ends is not None else moment
        while (pending := self.next()) and pending.at <= goal:
            self._take(pending, happen)
        self._set(max(goal, self.now))

    def pass_one(self, name: str, happen: Happen) -> None:
        """Let the next thing happen that is due. Raises CannotRestore where that is something else."""
        pending = self.next()
        if pending is None or pending.name != name:
            raise CannotRestore(f"'{name}' is not what happens next here; is this the same pack?")
        self._take(pending, happen)

    def jump(self, moment: Moment) -> None:
        """Be at a moment, and let nothing happen that is due before it."""
        self._set(moment)

    def pass_to_arrival(self, after: int, limit: Moment | None, happen: Happen) -> Arrival | None:
        """The first notice behind this number, waiting for it up to the limit; None where none comes."""
        while (arrivals := self.arrivals(after, 1)) == ():
            pending = self.next()
            if pending is None or (limit is not None and pending.at > limit):
                if limit is not None:
                    self.pass_to(limit, happen)
                return None
            self._take(pending, happen)
        return arrivals[0]

    def arrivals(self, after: int = 0, most: int = -1) -> tuple[Arrival, ...]:
        """The notices behind this number, in the order in which they came."""
        rows = self._connection.execute("SELECT * FROM world_arrival WHERE number > ? ORDER BY number LIMIT ?", (after, most))
        return tuple(Arrival(row["number"], Moment.of(row["at"]), *_columns(row)) for row in rows)

    def _take(self, pending: Pending, happen: Happen) -> None:
        """One transaction: what was due is no longer pending, has happened, and is told."""
        self._connection.execute("BEGIN")
        try:
            self._set(max(pending.at, self.now))
            self._connection.execute("DELETE FROM world_pending WHERE id = ?", (pending.id,))
            self._tell(pending, *((pending.payload, pending.versions) if pending.what == "notice" else happen(pending)))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            self.reread()
            raise

    def _tell(self, pending: Pending, payload: Payload, versions: Versions) -> None:
        for notice in self._told(pending, payload):
            if notice.held:
                self.add("notice", pending.kind, notice.at, payload, pending.name, versions)
            else:
                self.tell(pending.kind, pending.name, payload, versions)

    def tell(self, kind: str, name: str, payload: Payload, versions: Versions) -> None:
        """Give the agent a notice now."""
        values = (self.now.total, kind, name, dump(payload), dump(versions))
        self._connection.execute(f"INSERT INTO world_arrival (at, {COLUMNS}) VALUES (?, ?, ?, ?, ?)", values)

    def _told(self, pending: Pending, payload: Payload) -> Sequence[NoticeTime]:
        if pending.what == "notice":
            return (NoticeTime(self.now),)
        following = self.next()
        name = pending.name if pending.what == "event" else payload["ticket"]
        return self.notices(Scheduled(name, pending.kind, self.now, payload), following.at if following else None)

    def _set(self, moment: Moment) -> None:
        if moment != self.now:
            self.now = moment
            self._connection.execute("UPDATE world_clock SET now = ?", (moment.total,))


def _columns(row: sqlite3.Row) -> tuple[str, str, Payload, Versions]:
    return row["kind"], row["name"], json.loads(row["payload"]), json.loads(row["versions"])
