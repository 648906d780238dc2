"""World time: the pending events, the clock, and the notices that reach the agent."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.record.journal import dump
from bench.record.moment import Moment
from bench.worlds.run.environment.parts import Arrival, Payload, Scheduled
from bench.worlds.run.environment.snapshot import CannotRestore

Versions = Mapping[str, int]
Happen = Callable[["Pending"], tuple[Payload, Versions]]
"""(pending row) -> the payload of its notice, and the versions of the things that it changed. The function lets the row's event
or answer happen."""
Notices = Callable[[Scheduled, Moment | None], "Sequence[NoticeTime]"]
"""(event, moment of the next event) -> the times of the notices of this event. Faults of events make several notices or
none."""


@dataclass(frozen=True)
class NoticeTime:
    """The time of a notice. If it is `held`, the notice comes after all events that are due by that moment."""

    at: Moment
    held: bool = False


@dataclass(frozen=True)
class Pending:
    """A pending row of a world: an `event`, a person's `answer`, or a `notice` that was held back."""

    id: int
    at: Moment
    what: str
    kind: str
    name: str
    payload: Payload
    versions: Versions


def at_once(event: Scheduled, _: Moment | None) -> Sequence[NoticeTime]:
    """Return one notice, at the event's own moment."""
    return (NoticeTime(event.at),)


COLUMNS = "kind, name, payload, versions"
NO_VERSIONS: Versions = {}


class Schedule:
    """The clock of one world, stored in its database. `notices` decides when the agent is told of an event."""

    def __init__(self, connection: sqlite3.Connection, ends: Moment | None):
        self._connection, self._ends = connection, ends
        self.notices: Notices = at_once
        self.now = self._read()

    def _read(self) -> Moment:
        """Return the time in the database."""
        return Moment.of(self._connection.execute("SELECT now FROM world_clock").fetchone()[0])

    def reread(self) -> None:
        """Set the clock to the time in the database."""
        self.now = self._read()

    def add(self, what: str, kind: str, at: Moment, payload: Payload, name: str, versions: Versions = NO_VERSIONS) -> None:
        """Schedule a pending row. If its moment is past, it becomes due now."""
        values = (max(at, self.now).total, what, kind, name, dump(payload), dump(versions))
        self._connection.execute(f"INSERT INTO world_pending (at, what, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def next(self) -> Pending | None:
        """Return the next pending row up to the world's end; None if there is none."""
        row = self._connection.execute("SELECT * FROM world_pending ORDER BY at, id LIMIT 1").fetchone()
        if row is None or (self._ends is not None and row["at"] > self._ends.total):
            return None
        return Pending(row["id"], Moment.of(row["at"]), row["what"], *_columns(row))

    def pass_to(self, moment: Moment, happen: Happen) -> None:
        """Let time pass, at most to the world's end, and process all pending rows that become due, in order."""
        goal = min(moment, self._ends) if self._ends is not None else moment
        while (pending := self.next()) and pending.at <= goal:
            self._process(pending, happen)
        self._set_time(max(goal, self.now))

    def pass_until_due(self, moment: Moment) -> None:
        """Let time pass, at most until a pending row is due, and do not process that row."""
        pending = self.next()
        latest = min(moment, self._ends or moment, pending.at if pending else moment)
        self._set_time(max(self.now, latest))

    def pass_one(self, name: str, happen: Happen) -> None:
        """Process the next pending row. Raises CannotRestore if its name differs from `name`."""
        pending = self.next()
        if pending is None or pending.name != name:
            raise CannotRestore(f"'{name}' is not what happens next here; is this the same pack?")
        self._process(pending, happen)

    def jump(self, moment: Moment) -> None:
        """Set the clock without processing any pending row."""
        self._set_time(moment)

    def pass_to_arrival(self, after: int, limit: Moment | None, happen: Happen) -> Arrival | None:
        """Wait up to the limit for the first notice after this number; return None if none comes."""
        while (arrivals := self.arrivals(after, 1)) == ():
            pending = self.next()
            if pending is None or (limit is not None and pending.at > limit):
                if limit is not None:
                    self.pass_to(limit, happen)
                return None
            self._process(pending, happen)
        return arrivals[0]

    def arrivals(self, after: int = 0, most: int = -1) -> tuple[Arrival, ...]:
        """Return the notices after this number, in the order in which they came."""
        rows = self._connection.execute("SELECT * FROM world_arrival WHERE number > ? ORDER BY number LIMIT ?", (after, most))
        return tuple(Arrival(row["number"], Moment.of(row["at"]), *_columns(row)) for row in rows)

    def _process(self, pending: Pending, happen: Happen) -> None:
        """Remove a pending row, process it and tell the agent, in one transaction."""
        self._connection.execute("BEGIN")
        try:
            self._set_time(max(pending.at, self.now))
            self._connection.execute("DELETE FROM world_pending WHERE id = ?", (pending.id,))
            self._tell(pending, *((pending.payload, pending.versions) if pending.what == "notice" else happen(pending)))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            self.reread()
            raise

    def _tell(self, pending: Pending, payload: Payload, versions: Versions) -> None:
        """Deliver the notices of a row that was processed, or schedule them if they are held back."""
        for notice in self._notices_of(pending, payload):
            if notice.held:
                self.add("notice", pending.kind, notice.at, payload, pending.name, versions)
            else:
                self.tell(pending.kind, pending.name, payload, versions)

    def tell(self, kind: str, name: str, payload: Payload, versions: Versions) -> None:
        """Deliver a notice to the agent now."""
        values = (self.now.total, kind, name, dump(payload), dump(versions))
        self._connection.execute(f"INSERT INTO world_arrival (at, {COLUMNS}) VALUES (?, ?, ?, ?, ?)", values)

    def _notices_of(self, pending: Pending, payload: Payload) -> Sequence[NoticeTime]:
        """Return the times of the notices of a row that was processed."""
        if pending.what == "notice":
            return (NoticeTime(self.now),)
        following = self.next()
        name = pending.name if pending.what == "event" else payload["ticket"]
        return self.notices(Scheduled(name, pending.kind, self.now, payload), following.at if following else None)

    def _set_time(self, moment: Moment) -> None:
        """Set the clock, in memory and in the database."""
        if moment != self.now:
            self.now = moment
            self._connection.execute("UPDATE world_clock SET now = ?", (moment.total,))


def _columns(row: sqlite3.Row) -> tuple[str, str, Payload, Versions]:
    return row["kind"], row["name"], json.loads(row["payload"]), json.loads(row["versions"])
