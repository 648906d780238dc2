"""A world: one database for each trial, which outlives the agent, and all that can be done in it.

Every call is one transaction: what it changed, and its entry in the journal, are there together or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bench.environment import journal, snapshot
from bench.environment.calling import Acted, Caller, Code, Run, read_arguments
from bench.environment.damage import Damage, in_journal, in_tables
from bench.environment.database import TABLES, Connection, connect, digest_of_tables, dump, tables_of
from bench.environment.declaration import Environment
from bench.environment.journal import Entry, Outcome, What
from bench.environment.knowledge import Knowledge
from bench.environment.moment import Moment
from bench.environment.parts import WRITES, Arrival, Payload, Standing, Tool, Verdict
from bench.environment.people import People
from bench.environment.schedule import Notices, Pending, Schedule, Versions
from bench.environment.snapshot import Snapshot
from bench.errors import nearest

ALLOWED = Verdict()
DRAWN_FROM: tuple[object, ...] = ("world",)


class World:
    """A new world as its environment declares it, or the one that a file, or the bytes of a snapshot, hold already.

    path         the file; in memory where none is given
    content      of a snapshot, from which this world goes on
    drawn_from   what the draws of its people begin with: a trial's key, never the architecture
    keeps_past   whether what things were like before their last change is kept, for stale reads
    """

    def __init__(
        self,
        environment: Environment,
        path: Path | None = None,
        *,
        content: bytes | None = None,
        drawn_from: tuple[object, ...] = DRAWN_FROM,
        keeps_past: bool = False,
    ):
        self.environment = environment
        self._connection = connect(path)
        if content is not None:
            snapshot.load(self._connection, content)
        elif not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            _create(environment, self._connection)
        self._lock = threading.RLock()
        self._past: dict[str, bytes] | None = {} if keeps_past else None
        self._schedule = Schedule(self._connection, environment.ends)
        self._caller = Caller(self._connection, environment.patience, self._later)
        self._people = People(environment.people, drawn_from, self._schedule, self._caller)
        self._reopen()

    def _reopen(self) -> None:
        """Read what the database holds: it was made anew, or another process left it."""
        self._schedule.reread()
        entries = journal.read(self._connection)
        self._knowledge = Knowledge(entries)
        self._next, self._busy = len(entries) + 1, (self.now, 0)
        self._tables = tables_of(self._connection)
        self._life: int = self._connection.execute("SELECT life FROM world_clock").fetchone()[0]
        for arrival in self._schedule.arrivals():
            self._knowledge.told(arrival.versions)

    # What an agent can do.

    def call(
        self,
        tool: str,
        arguments: BaseModel | Mapping[str, Any],
        idempotency_key: str | None = None,
        *,
        expect: Mapping[str, int] | None = None,
        who: str = "agent",
    ) -> Acted:
        """Call a tool. Never raises for what an agent or a tool does wrong: that is refused, or has failed.

        idempotency_key   a call whose key is known gives the stored result, and has no second effect
        expect            thing -> the version that it must have, else the call is refused: compare and swap
        """
        with self._lock:
            known = self.environment.by_name.get(tool)
            given = arguments.model_dump(mode="json") if isinstance(arguments, BaseModel) else dict(arguments)
            if known is None:
                said = f"there is no tool '{tool}'; {nearest(tool, self.environment.by_name)}"
                return self._refuse(tool, "", given, "", idempotency_key, who, said, "unknown_tool")
            read = read_arguments(known, arguments)
            if isinstance(read, str):
                return self._refuse(tool, known.kind, given, "", idempotency_key, who, read, "arguments")
            return self._call(known, read, idempotency_key, expect or {}, who)

    def verdict(self, tool: str, arguments: BaseModel | Mapping[str, Any]) -> Verdict:
        """What the policy, and the kill switch, say of a call that is not yet made. A tool that reads is always allowed."""
        with self._lock:
            known = self.environment.by_name[tool]
            read = read_arguments(known, arguments)
            return Verdict("deny", "arguments", read) if isinstance(read, str) else self._verdict(known, read)

    def effect_of(self, tool: str, arguments: BaseModel | Mapping[str, Any]) -> str:
        """The business key of what a call means to do; "" where there is no such tool, or its arguments do not fit."""
        known = self.environment.by_name.get(tool)
        read = read_arguments(known, arguments) if known else ""
        return "" if known is None or isinstance(read, str) else _effect(known, read)

    def ask(self, kind: str, about: str, question: Payload, idempotency_key: str | None = None) -> str:
        """Ask a person; the question's ticket, under which the answer arrives as an event of kind `answer`. A question under a
        key that is known is not asked again. Raises KeyError where there is no such person."""
        with self._lock:
            if idempotency_key and (asked := self._entry_of(idempotency_key)):
                return str(asked.result)
            times = len(journal.read(self._connection, "what = 'ask' AND name = ? AND effect = ?", kind, about))
            ticket = f"{kind}: {about}" + (f" ({times + 1})" if times else "")
            self._connection.execute("BEGIN")
            self._people.ask(kind, about, question, ticket, times + 1)
            self._write("ask", kind, "", dict(question), about, idempotency_key, "done", result=ticket)
            self._connection.execute("COMMIT")
            return ticket

    def wait(self, days: int = 0, minutes: int = 0) -> tuple[Arrival, ...]:
        """Let time pass; the notices that came meanwhile."""
        return self.wait_until(self.now.after(days, minutes))

    def wait_until(self, moment: Moment) -> tuple[Arrival, ...]:
        with self._lock:
            last = len(self._schedule.arrivals())
            self._schedule.pass_to(moment, self._happen)
            return self._told(self._schedule.arrivals(last))

    def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        """The first notice whose number is above `after`, waiting for it up to a moment; None where none comes."""
        with self._lock:
            found = self._schedule.pass_to_arrival(after, until, self._happen)
            return self._told((found,))[0] if found else None

    def arrivals(self, after: int = 0) -> tuple[Arrival, ...]:
        """The notices that have come: a log, which no reading empties."""
        return self._told(self._schedule.arrivals(after))

    # What a trial can do.

    @property
    def now(self) -> Moment:
        return self._schedule.now

    @property
    def life(self) -> int:
        """Which process of the agent is at work, from 1."""
        return self._life

    def told_by(self, notices: Notices) -> None:
        """When the agent hears of an event is for this function to say: the faults of events."""
        self._schedule.notices = notices

    def version(self, thing: str) -> int:
        return self._knowledge.version(thing)

    def digest(self) -> str:
        """Names what the pack's tables hold."""
        return digest_of_tables(self._connection, self._tables)

    def journal(self) -> list[Entry]:
        with self._lock:
            return journal.read(self._connection)

    def last_entry(self, seq: int) -> Entry | None:
        """The entry of this number."""
        return next(iter(journal.read(self._connection, "seq = ?", seq)), None) if seq else None

    def dump(self) -> str:
        """The whole database as SQL, for a grader to have it again."""
        return "\n".join(self._connection.iterdump())

    def known(self) -> dict[int, str]:
        """Entry -> how well the agent knows of it: it was `acknowledged`, or that is `recorded`."""
        rows = self._connection.execute("SELECT seq, how FROM world_known ORDER BY rowid")
        return dict(map(tuple, rows))

    def acknowledge(self, entry: int) -> None:
        """The agent has been told what came of this call."""
        if entry:
            self._connection.execute("INSERT INTO world_known VALUES (?, 'acknowledged')", (entry,))

    def record(self) -> None:
        """The agent has recorded what it was told in this life, or has ended with it."""
        self._connection.execute(
            "INSERT INTO world_known SELECT seq, 'recorded' FROM world_known WHERE how = 'acknowledged' AND seq > "
            "coalesce((SELECT max(seq) FROM world_journal WHERE what = 'crash'), 0)"
        )

    def died(self, point: str) -> None:
        """The agent has died. The world stays as it is."""
        with self._lock:
            self._write("crash", point, "", {}, "", None, "done")
            self._life += 1
            self._connection.execute("UPDATE world_clock SET life = ?", (self._life,))

    def past(self, tool: str, arguments: BaseModel | Mapping[str, Any]) -> Acted | None:
        """What a read would have shown before the last change of what it is about; None where nothing has changed."""
        known = self.environment.by_name[tool]
        read = read_arguments(known, arguments)
        if isinstance(read, str) or known.writes or not self._past:
            return None
        things = [thing for thing in known.about(read) if thing in self._past]
        if not things:
            return None
        with self._lock:
            other = World(self.environment, content=self._past[things[0]])
            shown = other.call(tool, read)
            other.close()
            if not shown.ok:
                return None
            versions = {thing: self.version(thing) - (thing in things) for thing in known.about(read)}
            return self._note(known, read, None, Run("done", shown.result), ALLOWED, versions, "agent")

    def end(self) -> None:
        """Let all happen that is still to happen up to the world's last moment."""
        if self.environment.ends is not None:
            with self._lock:
                self._schedule.pass_to(self.environment.ends, self._happen)

    def standings(self) -> list[Standing]:
        """What the pack's audit says of its tables as they are."""
        with self._lock:
            return list(self._caller.within(lambda: list(self.environment.audit(self._caller.reading))))

    def damage(self) -> tuple[Damage, Damage]:
        """What went wrong, counted from the journal, and from the pack's tables alone."""
        entries, standings = self.journal(), self.standings()
        return in_journal(self.environment, entries, self.known(), standings), in_tables(standings)

    def snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(self.digest(), self._connection.serialize())

    def restore(self, taken: Snapshot) -> None:
        """Be as it was when this was taken. Raises CannotRestore, and nothing has changed."""
        with self._lock:
            snapshot.load(self._connection, taken.content)
            self._reopen()

    def fork(self, taken: Snapshot | None = None) -> World:
        """A world of its own that goes on from here, or from a snapshot."""
        content = taken.content if taken else self._connection.serialize()
        return World(self.environment, content=content, drawn_from=self._people.drawn_from, keeps_past=self._past is not None)

    def close(self) -> None:
        self._connection.close()

    # How it is done.

    def _call(self, tool: Tool, arguments: BaseModel, key: str | None, expect: Mapping[str, int], who: str) -> Acted:
        effect = _effect(tool, arguments)
        given = arguments.model_dump(mode="json")
        if key and (first := self._entry_of(key)):
            return self._again(first, tool, given, key, who)
        if said := self._untimely():
            return self._refuse(tool.name, tool.kind, given, effect, key, who, said, "throttled")
        if said := self._moved(expect):
            return self._refuse(tool.name, tool.kind, given, effect, key, who, said, "stale")
        verdict = self._verdict(tool, arguments) if tool.writes else ALLOWED
        before = self._connection.serialize() if self._past is not None and tool.writes else b""
        self._connection.execute("BEGIN")
        run = self._caller.run(tool, arguments, self.now)
        things = tool.about(arguments)
        if run.outcome != "done":
            self._connection.execute("ROLLBACK")
            versions: Versions = {}
        else:
            versions = self._knowledge.after(things) if tool.writes else {thing: self.version(thing) for thing in things}
        acted = self._note(tool, arguments, key, run, verdict, versions, who)
        if run.outcome == "done":
            self._connection.execute("COMMIT")
            if self._past is not None and tool.writes:
                self._past.update(dict.fromkeys(things, before))
        if tool.minutes:
            self._schedule.pass_to(self.now.after(minutes=tool.minutes), self._happen)
        return acted

    def _again(self, first: Entry, tool: Tool, given: Any, key: str, who: str) -> Acted:
        """A call under a key that is known."""
        if (first.name, first.arguments) != (tool.name, given):
            said = f"the idempotency key '{key}' is that of another call, {first.name} ({first.effect}); give each call its own"
            return self._refuse(tool.name, tool.kind, given, first.effect, None, who, said, "key")
        entry = self._write("call", tool.name, tool.kind, given, first.effect, key, "replayed", result=first.result, who=who)
        return Acted(tool.name, first.effect, "replayed", tool.result.model_validate(first.result), entry=entry.seq)

    def _note(
        self, tool: Tool, given: BaseModel, key: str | None, run: Run, verdict: Verdict, versions: Versions, who: str
    ) -> Acted:
        """The entry of a call that ran, and what the agent is told of it."""
        self._count()
        effect, done = _effect(tool, given), run.outcome == "done"
        entry = self._write(
            "call",
            tool.name,
            tool.kind,
            given.model_dump(mode="json"),
            effect,
            key,
            run.outcome,
            result=run.result.model_dump(mode="json") if run.result is not None else None,
            reason=run.reason,
            verdict=verdict,
            things=tool.about(given) if tool.writes else (),
            versions=versions,
            late=done and self._is_late(tool, given),
            who=who,
        )
        return Acted(tool.name, effect, run.outcome, run.result, run.reason, versions, entry.seq, run.code)

    def _refuse(self, tool: str, kind: str, given: Any, effect: str, key: str | None, who: str, said: str, code: Code) -> Acted:
        entry = self._write("call", tool, kind, given, effect, key, "refused", reason=said, who=who)
        return Acted(tool, effect, "refused", reason=said, entry=entry.seq, code=code)

    def _write(
        self,
        what: What,
        name: str,
        kind: str,
        arguments: Any,
        effect: str,
        key: str | None,
        outcome: Outcome,
        *,
        result: Any = None,
        reason: str = "",
        verdict: Verdict = ALLOWED,
        things: Iterable[str] = (),
        versions: Versions | None = None,
        late: bool = False,
        who: str = "agent",
    ) -> Entry:
        decision = verdict.decision if kind in WRITES and what == "call" else ""
        policy = self.environment.policy.version if self.environment.policy and decision else ""
        entry = Entry(
            self._next, self.now, self._life, who, what, name, kind, arguments, effect, key, outcome, result, reason,
            decision, verdict.rule, policy, self._knowledge.based_on(things), versions or {}, late,
        )  # fmt: skip
        journal.append(self._connection, entry)
        self._next += 1
        self._knowledge.note(entry)
        return entry

    def _entry_of(self, key: str) -> Entry | None:
        """What was done under this key."""
        return next(iter(journal.read(self._connection, "key = ? AND outcome = 'done'", key)), None)

    def _verdict(self, tool: Tool, arguments: BaseModel) -> Verdict:
        """An undo takes an effect back and is never halted."""
        if not tool.writes:
            return ALLOWED
        environment, reading = self.environment, self._caller.reading
        if environment.halted and tool.name not in environment.undoes:
            halted = environment.halted
            if why := self._caller.within(lambda: halted(reading, self.now)):
                return Verdict("deny", "kill switch", why)
        policy = environment.policy
        if policy is None:
            return ALLOWED
        said: Verdict = self._caller.within(lambda: policy.decide(reading, tool.name, arguments, self.now))
        return said

    def _is_late(self, tool: Tool, arguments: BaseModel) -> bool:
        if tool.due is None:
            return False
        due = tool.due
        last = self._caller.within(lambda: due(self._caller.reading, arguments))
        return last is not None and self.now > last

    def _untimely(self) -> str:
        """Why no call is taken now, or ""."""
        most, (minute, calls) = self.environment.throttle, self._busy
        if most and minute == self.now and calls >= most:
            return f"throttled: {most} calls a minute are taken; wait for a minute"
        return ""

    def _count(self) -> None:
        minute, calls = self._busy
        self._busy = (self.now, calls + 1 if minute == self.now else 1)

    def _moved(self, expect: Mapping[str, int]) -> str:
        """What is no longer as the call expects it, or ""."""
        moved = [thing for thing, version in expect.items() if version != self.version(thing)]
        if not moved:
            return ""
        return f"stale: {moved[0]} is at version {self.version(moved[0])}, not {expect[moved[0]]}; read it again"

    def _later(self, kind: str, at: Moment, payload: Payload, name: str) -> None:
        if kind not in self.environment.by_kind:
            raise KeyError(f"there is no kind of event '{kind}'; {nearest(kind, self.environment.by_kind)}")
        self._schedule.add("event", kind, at, payload, name or f"{kind} of entry {self._next}")

    def _happen(self, pending: Pending) -> tuple[Payload, Versions]:
        """An event, or a person's answer, in the transaction in which it leaves what is still to happen."""
        if pending.what == "answer":
            payload = self._people.answer(pending, self.now)
            self._write("answer", pending.name, pending.kind, dict(payload), payload["about"], None, "done", who="person")
            return payload, {}
        kind = self.environment.by_kind[pending.kind]
        versions = self._knowledge.after(kind.about(pending.payload))
        if kind.apply:
            apply = kind.apply
            self._caller.within(lambda: apply(self._caller.writing, pending.payload, self.now))
        self._write(
            "event", pending.name, pending.kind, dict(pending.payload), "", None, "done", versions=versions, who="world"
        )
        return pending.payload, versions

    def _told(self, arrivals: Iterable[Arrival]) -> tuple[Arrival, ...]:
        told = tuple(arrivals)
        for arrival in told:
            self._knowledge.told(arrival.versions)
        return told


def _effect(tool: Tool, arguments: BaseModel) -> str:
    """The business key of a call; of a read that names none, the call itself."""
    if tool.effect:
        return tool.effect(arguments)
    return f"{tool.name} {dump(arguments.model_dump(mode='json'))}"


def _create(environment: Environment, connection: Connection) -> None:
    connection.executescript(TABLES + environment.schema)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO world_clock VALUES (?, 1)", (environment.begins.total,))
    for table, rows in environment.rows.items():
        for row in rows:
            names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
            connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))
    schedule = Schedule(connection, environment.ends)
    for event in sorted(environment.events, key=lambda one: one.at):
        schedule.add("event", event.kind, event.at, event.payload, event.name)
    connection.execute("COMMIT")
