"""The append-only journal of a world: its entries, in order, and how a database stores them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bench.common.errors import whole_text
from bench.record.moment import Moment

What = Literal["call", "event", "ask", "answer", "crash"]
CallOutcome = Literal["done", "replayed", "refused", "failed"]
"""done       the call ran
replayed   its idempotency key was known: it returned the stored result, and changed nothing
refused    it did not run, or the business declined; nothing changed, and the reason says why
failed     it raised an error, or no answer came: the agent cannot know whether the effect happened"""


NEVER = Moment(0)


@dataclass(frozen=True)
class JournalEntry:
    """One entry of a world's journal.

    seq, at, life   its number, its moment, and the number of the agent's process, from 1; set when it is written
    what         what happened: a tool call, an event, a question to a person, a person's answer, or the agent's death
    name, kind   a tool and its kind; an event's name and kind; a person, and for a question how it is answered
    arguments    the arguments of a call, or the payload of an event, as JSON
    effect       the business key of a call's effect
    key          the idempotency key, or None
    decision     the policy's verdict on a call that writes, with the `rule` and the version of the `policy`
    seen         thing -> (the version that the agent saw last, its version at the call), for the things that the effect rests
                 on
    versions     thing -> its version afterwards
    late         whether the effect came after the last moment at which it was allowed
    """

    what: What
    name: str
    kind: str = ""
    arguments: Any = None
    effect: str = ""
    key: str | None = None
    outcome: CallOutcome = "done"
    result: Any = None
    reason: str = ""
    decision: str = ""
    rule: str = ""
    policy: str = ""
    seen: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    late: bool = False
    who: str = "agent"
    seq: int = 0
    at: Moment = NEVER
    life: int = 0

    @property
    def is_effect(self) -> bool:
        """Whether the agent changed the world with this entry."""
        return self.what == "call" and self.outcome == "done" and self.kind != "read"

    @property
    def is_stale(self) -> bool:
        """Whether the effect rested on a thing that had changed since the agent saw it."""
        return any(seen < current for seen, current in self.seen.values())

    @property
    def is_unauthorised(self) -> bool:
        return self.is_effect and self.decision in ("deny", "person")


def dump(value: Any) -> str:
    """Return a value as JSON text: the same text for equal values. Values of other types become strings."""
    return json.dumps(value, sort_keys=True, default=str)


COLUMNS = tuple(field.name for field in fields(JournalEntry))
JSON = frozenset({"arguments", "result", "seen", "versions"})
INSERT = f"INSERT INTO world_journal ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


def append(connection: sqlite3.Connection, entry: JournalEntry) -> None:
    values = ((name, getattr(entry, name)) for name in COLUMNS)
    connection.execute(INSERT, [_whole_value(name, value) for name, value in values])


def read(connection: sqlite3.Connection, where: str = "1", *values: Any) -> list[JournalEntry]:
    """Return the journal entries for which this SQL condition holds, in order."""
    rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM world_journal WHERE {where} ORDER BY seq", values)
    return [JournalEntry(**{name: _read(name, row[name]) for name in COLUMNS}) for row in rows]


def _whole_value(name: str, value: Any) -> Any:
    """Return a field of an entry as the database stores it."""
    if isinstance(value, Moment):
        return value.total
    if name in JSON:
        return dump(value)
    return whole_text(value) if isinstance(value, str) else value


def _read(name: str, value: Any) -> Any:
    """Return a field of an entry from its value in the database."""
    if name == "at":
        return Moment.of(value)
    if name == "seen":
        return {thing: (seen, current) for thing, (seen, current) in json.loads(value).items()}
    if name == "late":
        return bool(value)
    return json.loads(value) if name in JSON else value
