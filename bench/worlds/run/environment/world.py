"""A world: one database for each trial, which outlives the agent.

An agent can call, ask, wait and hear notices. Every call is one transaction: its change and its journal entry are stored
together or not at all. The trial around the agent can inspect, keep and fork the world, and count damage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from bench.common.errors import nearest
from bench.record.damage import Damage, Harm
from bench.record.journal import JournalEntry
from bench.record.moment import Moment
from bench.worlds.run.environment import snapshot
from bench.worlds.run.environment.calling import Acted, PackCaller, PackRun, RefusalCode, effect_of, parse_arguments
from bench.worlds.run.environment.changes import changes, rows_of
from bench.worlds.run.environment.damage import harms, in_journal, in_tables, net_effects
from bench.worlds.run.environment.database import TABLES, Connection, connect, digest_of_tables, tables_of
from bench.worlds.run.environment.declaration import Environment
from bench.worlds.run.environment.journal_writer import JournalWriter
from bench.worlds.run.environment.parts import Arrival, Payload, PolicyVerdict, Standing, Tool
from bench.worlds.run.environment.people import Manner, People
from bench.worlds.run.environment.preview import Preview, risks_of, try_and_roll_back
from bench.worlds.run.environment.rules import Rules, version_mismatch
from bench.worlds.run.environment.schedule import Notices, Pending, Schedule, Versions
from bench.worlds.run.environment.snapshot import CannotRestore, PastStates, Snapshot

SECOND_WRITER = "second writer"
"""The name and kind of a journal entry: somebody else saved what the agent had read."""
DRAWN_FROM: tuple[object, ...] = ("world",)
"""The key of the random draws of a world outside of a trial."""
ToolArguments = BaseModel | Mapping[str, Any]


class World:
    """A new world as its environment declares it, or the world in a file or a snapshot.

    path         the file, held by one process at a time; None: in memory
    content      bytes of a snapshot from which this world goes on
    drawn_from   the first keys of its people's draws: a trial's key, never the architecture
    manners      ticket of a question -> the manner of its answer, set by faults of answers
    keeps_past   whether the state before each thing's last change is kept, for stale reads
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
        self._past = PastStates(self._connection, keeps_past)
        self._schedule = Schedule(self._connection, environment.ends)
        self._caller = PackCaller(self._connection, environment.patience, self._later)
        self._people = People(environment.people, drawn_from, self._schedule, self._caller, self._does_no_more_damage)
        self.manners: Callable[[str], Manner] = lambda _: ""
        self._journal = JournalWriter(self._connection, self._schedule)
        self._rules = Rules(environment, self._caller, self._journal.count_accepted)
        self._tables, self._digest = tables_of(self._connection), ""
        self._is_replaying = False

    def call(
        self,
        tool: str,
        arguments: ToolArguments,
        idempotency_key: str | None = None,
        *,
        expect: Mapping[str, int] | None = None,
        who: str = "agent",
    ) -> Acted:
        """Call a tool. Never raises for a mistake of the agent or the tool: the call is then refused or has failed.

        idempotency_key   a call under a known key returns the stored result and has no second effect
        expect            thing -> the version that it must have, else the call is refused: compare and swap
        who               the role; its contract says which tools it can call
        """
        with self._lock:
            declared = self.environment.by_name.get(tool)
            as_json = arguments.model_dump(mode="json") if isinstance(arguments, BaseModel) else arguments
            call = JournalEntry("call", tool, declared.kind if declared else "", as_json, key=idempotency_key, who=who)
            if declared is None:
                problem = f"there is no tool '{tool}'; {nearest(tool, self.environment.by_name)}"
                return self._refuse(call, problem, "unknown_tool")
            if problem := self._rules.forbids(tool, who):
                return self._refuse(call, problem, "forbidden")
            parsed = parse_arguments(declared, arguments)
            if isinstance(parsed, str):
                return self._refuse(call, parsed, "arguments")
            call = replace(call, arguments=parsed.model_dump(mode="json"), effect=effect_of(declared, parsed))
            if idempotency_key and (first := self._journal.call_under_key(idempotency_key)):
                return self._replay_answer(call, first, declared)
            if problem := version_mismatch(expect or {}, self._journal.knowledge):
                return self._refuse(call, problem, "stale")
            if refusal := self._rules.limit_refusal(tool, who, self.now):
                return self._refuse(call, refusal.reason, refusal.code, refusal.again)
            return self._run(call, declared, parsed)

    def verdict(self, tool: str, arguments: ToolArguments) -> PolicyVerdict:
        """Return the verdict of the kill switch and the policy on a call that is not made yet. A read is always allowed. Raises
        KeyError if there is no such tool."""
        with self._lock:
            declared = self.environment.by_name[tool]
            parsed = parse_arguments(declared, arguments)
            if isinstance(parsed, str):
                return PolicyVerdict("deny", "arguments", parsed)
            return self._rules.verdict(declared, parsed, self.now)

    def effect_of(self, tool: str, arguments: ToolArguments) -> str:
        """Return the business key of a call; "" if there is no such tool, or its arguments do not fit."""
        declared = self.environment.by_name.get(tool)
        parsed = parse_arguments(declared, arguments) if declared else ""
        return "" if declared is None or isinstance(parsed, str) else effect_of(declared, parsed)

    def things_of(self, tool: str, arguments: ToolArguments) -> tuple[str, ...]:
        """Return the things that a call is about; empty if there is no such tool, or its arguments do not fit."""
        declared = self.environment.by_name.get(tool)
        parsed = parse_arguments(declared, arguments) if declared else ""
        return () if declared is None or isinstance(parsed, str) else declared.about(parsed)

    def ask(
        self, kind: str, about: str, question: Payload, idempotency_key: str | None = None, *, manner: Manner | None = None
    ) -> str:
        """Ask a person and return the question's ticket. The answer arrives as an event of kind `answer` under this ticket.

        A question under a known key is not asked again. If `manner` is None, `manners` gives it by the ticket. Raises KeyError
        if there is no such person.
        """
        with self._lock:
            if idempotency_key and (asked := self._journal.call_under_key(idempotency_key)):
                return str(asked.result)
            times = len(self._journal.entries("what = 'ask' AND name = ? AND effect = ?", kind, about)) + 1
            ticket = f"{kind}: {about}" + (f" ({times})" if times > 1 else "")
            manner = self.manners(ticket) if manner is None else manner
            with self._transaction():
                self._people.ask(kind, about, question, ticket, times, manner)
                self._journal.write(JournalEntry("ask", kind, manner, dict(question), about, idempotency_key, result=ticket))
            return ticket

    def standings(self) -> list[Standing]:
        """Return the final state of each effect in the pack's tables, as the pack's audit reports it."""
        with self._lock:
            return list(self._caller.call_pack(lambda: list(self.environment.audit(self._caller.reading))))

    def change_elsewhere(self, things: Sequence[str]) -> None:
        """Let another writer save these things unchanged: their versions rise, and the agent is not told."""
        with self._lock, self._transaction():
            versions = self._journal.knowledge.next_versions(things)
            self._journal.write(
                JournalEntry("event", SECOND_WRITER, SECOND_WRITER, list(things), versions=versions, who="somebody else")
            )

    def wait(self, days: int = 0, minutes: int = 0) -> tuple[Arrival, ...]:
        """Let time pass, and return the notices that came meanwhile."""
        return self.wait_until(self.now.after(days, minutes))

    def wait_until(self, moment: Moment) -> tuple[Arrival, ...]:
        """Let time pass up to this moment, and return the notices that came meanwhile."""
        with self._lock:
            last = len(self._schedule.arrivals())
            self._schedule.pass_to(moment, self._happen)
            return self._tell(self._schedule.arrivals(last))

    def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        """Wait for the first notice whose number is above `after`, up to a moment; return None if none comes."""
        with self._lock:
            arrival = self._schedule.pass_to_arrival(after, until, self._happen)
            return self._tell((arrival,))[0] if arrival else None

    def catch_up(self) -> tuple[Arrival, ...]:
        """Send and return notices for events that happened without a notice. A notice that is late still comes as well."""
        with self._lock, self._transaction():
            earlier = self._schedule.arrivals()
            names_told = {arrival.name for arrival in earlier}
            for event in self._journal.entries("what = 'event' AND kind != ?", SECOND_WRITER):
                if event.name not in names_told:
                    self._schedule.tell(event.kind, event.name, event.arguments, event.versions)
            return self._tell(self._schedule.arrivals(len(earlier)))

    def arrivals(self, after: int = 0) -> tuple[Arrival, ...]:
        """Return the notices after this number that have come. Reading does not remove them."""
        with self._lock:
            return self._tell(self._schedule.arrivals(after))

    @property
    def now(self) -> Moment:
        return self._schedule.now

    @property
    def life(self) -> int:
        """The number of the agent's present process, from 1."""
        return self._journal.life

    def set_notice_times(self, notices: Notices) -> None:
        """Set the function that returns the times of an event's notices. The faults of events use it."""
        self._schedule.notices = notices

    def elapse(self, minutes: int) -> None:
        """Let time pass while the agent waits for an answer. The agent is not told what happens meanwhile."""
        with self._lock:
            self._schedule.pass_to(self.now.after(minutes=minutes), self._happen)

    def version(self, thing: str) -> int:
        return self._journal.knowledge.version(thing)

    def digest(self) -> str:
        """Return a digest of the pack's tables."""
        with self._lock:
            self._digest = self._digest or digest_of_tables(self._connection, self._tables)
            return self._digest

    def journal(self) -> list[JournalEntry]:
        """Return all entries of the journal, in order."""
        with self._lock:
            return self._journal.entries()

    def entry(self, seq: int) -> JournalEntry | None:
        """Return the journal entry with this number; None if there is none."""
        with self._lock:
            return self._journal.entry(seq)

    def dump(self) -> str:
        """Return the whole database as SQL, from which a grader rebuilds it."""
        with self._lock:
            return "\n".join(self._connection.iterdump())

    def acknowledge(self, entry: int) -> None:
        """Note that the agent got the result of this call. 0 is no entry."""
        if entry:
            with self._lock:
                self._journal.acknowledge(entry)

    def record(self, after: int = 0) -> None:
        """Note that the agent recorded, or ended with, the results that its present process got from entries after this one."""
        with self._lock:
            self._journal.record(after)

    def note_crash(self, point: str) -> None:
        """Note that the agent's process has died. The world stays as it is."""
        with self._lock:
            self._journal.write_crash(point)

    def past(self, tool: str, arguments: ToolArguments) -> Acted | None:
        """Return the result that a read would have had before the last change of its things; None if nothing has changed."""
        declared = self.environment.by_name[tool]
        parsed = parse_arguments(declared, arguments)
        if isinstance(parsed, str) or declared.writes:
            return None
        with self._lock:
            things = declared.about(parsed)
            if (before := self._past.before(things)) is None:
                return None
            changed, content = before
            past_world = World(self.environment, content=content)
            past_result = past_world.call(tool, parsed)
            past_world.close()
            if not past_result.ok:
                return None
            versions = {thing: self.version(thing) - (thing == changed) for thing in things}
            call = JournalEntry("call", tool, declared.kind, parsed.model_dump(mode="json"), effect_of(declared, parsed))
            return self._write_result(call, PackRun("done", past_result.result), declared, parsed, versions)

    def preview(self, tool: str, arguments: ToolArguments) -> Preview:
        """Return what a call would change now, and its risks, without making it. Raises KeyError if there is no such tool."""
        declared = self.environment.by_name[tool]
        parsed = parse_arguments(declared, arguments)
        if isinstance(parsed, str):
            return Preview(tool, "", (parsed,), ())
        with self._lock:
            effect = effect_of(declared, parsed)
            before, run, after = try_and_roll_back(
                self._connection, self._caller, declared, parsed, self.now, lambda: rows_of(self._connection)
            )
            calls_for_effect = self._journal.entries("what = 'call' AND effect = ?", effect)
            versions = self._journal.knowledge.based_on(declared.about(parsed))
            risks = risks_of(
                declared,
                run,
                self._rules.verdict(declared, parsed, self.now),
                times_done=net_effects(self.environment, calls_for_effect)[effect],
                changed_things=[thing for thing, (seen, current) in versions.items() if seen < current],
                is_late=self._rules.is_late(declared, parsed, self.now),
            )
            return Preview(tool, effect, risks, changes(before, after) if run.outcome == "done" else ())

    def end(self) -> None:
        """Let all pending events up to the world's last moment happen."""
        if self.environment.ends is not None:
            with self._lock:
                self._schedule.pass_to(self.environment.ends, self._happen)

    def damage(self) -> tuple[Damage, Damage]:
        """Count the damage from the journal, and from the pack's tables alone."""
        with self._lock:
            entries, standings = self._journal.entries(), self.standings()
            return in_journal(self.environment, entries, self._journal.knowledge_by_entry(), standings), in_tables(standings)

    def harms(self) -> dict[str, list[Harm]]:
        """Return the damaged effects by kind of damage, with their journal entries."""
        with self._lock:
            return harms(self.environment, self._journal.entries(), self._journal.knowledge_by_entry(), self.standings())

    def snapshot(self) -> Snapshot:
        """Return a copy of the world's database."""
        with self._lock:
            return Snapshot(self.digest(), self._connection.serialize())

    def restore(self, saved: Snapshot) -> None:
        """Restore this snapshot. Raises CannotRestore, and changes nothing, if it is no world."""
        with self._lock:
            snapshot.load(self._connection, saved.content)
            self._schedule.reread()
            self._journal.reopen()
            self._digest = ""

    def fork(self, saved: Snapshot | None = None) -> World:
        """Return a new world that continues from this world, or from a snapshot."""
        content = (saved or self.snapshot()).content
        return World(self.environment, content=content, drawn_from=self._people.drawn_from, keeps_past=self._past.keeps)

    def replay(self, entries: Iterable[JournalEntry]) -> None:
        """Repeat in this new world what another world's journal entries record. This forks a trial at any step; the digest is
        then the digest of that step.

        Raises CannotRestore if the same calls have other effects here.
        """
        with self._lock, self._replaying():
            for entry in entries:
                if entry.kind == SECOND_WRITER:
                    self.change_elsewhere(entry.arguments)
                    continue
                if entry.what in ("event", "answer"):
                    self._schedule.pass_one(entry.name, self._happen)
                    continue
                self._schedule.jump(entry.at)
                if entry.what == "ask":
                    self.ask(entry.name, entry.effect, entry.arguments, entry.key, manner=cast(Manner, entry.kind))
                elif entry.what == "crash":
                    self.note_crash(entry.name)
                elif entry.is_effect and self.call(entry.name, entry.arguments, entry.key, who=entry.who).result is None:
                    raise CannotRestore(f"entry {entry.seq}, {entry.effect}, does not happen here; is this the same pack?")

    def close(self) -> None:
        self._connection.close()

    def _run(self, call: JournalEntry, tool: Tool, arguments: BaseModel) -> Acted:
        """Run a tool, and write its journal entry in the same transaction. Return the result of the call. If the tool fails,
        its changes are rolled back, and the entry stays."""
        verdict = self._rules.verdict(tool, arguments, self.now)
        decision, rule, policy = self._rules.decision(verdict, tool)
        call = replace(call, decision=decision, rule=rule, policy=policy)
        things, before = tool.about(arguments), self._past.now() if tool.writes else b""
        with self._transaction():
            self._connection.execute("SAVEPOINT tool")
            run = self._caller.run(tool, arguments, self.now)
            done = run.outcome == "done"
            if not done:
                self._connection.execute("ROLLBACK TO tool")
            knowledge = self._journal.knowledge
            versions = knowledge.next_versions(things) if tool.writes else {thing: knowledge.version(thing) for thing in things}
            acted = self._write_result(call, run, tool, arguments, versions if done else {})
        if done and tool.writes:
            self._digest = ""
            self._past.note_change(things, before)
        if tool.minutes:
            until = self.now.after(minutes=tool.minutes)
            if self._is_replaying:  # what happened meanwhile has entries of its own
                self._schedule.pass_until_due(until)
            else:
                self._schedule.pass_to(until, self._happen)
        return acted

    def _write_result(self, call: JournalEntry, run: PackRun, tool: Tool, arguments: BaseModel, versions: Versions) -> Acted:
        """Write the entry of a call that ran, and return the result for the agent."""
        result = run.result.model_dump(mode="json") if run.result is not None else None
        late = run.outcome == "done" and self._rules.is_late(tool, arguments, self.now)
        result_entry = replace(call, outcome=run.outcome, result=result, reason=run.reason, versions=versions, late=late)
        entry = self._journal.write(result_entry, tool.about(arguments) if tool.writes else ())
        return Acted(tool.name, call.effect, run.outcome, run.result, run.reason, versions, entry.seq, run.code)

    def _replay_answer(self, call: JournalEntry, first: JournalEntry, tool: Tool) -> Acted:
        """Answer a call whose idempotency key is known."""
        if (first.name, first.arguments) != (call.name, call.arguments):
            problem = (
                f"the idempotency key '{call.key}' is that of another call, {first.name} ({first.effect}); give each its own"
            )
            return self._refuse(replace(call, key=None), problem, "key")
        entry = self._journal.write(replace(call, outcome="replayed", result=first.result))
        return Acted(tool.name, call.effect, "replayed", tool.result.model_validate(first.result), entry=entry.seq)

    def _refuse(self, call: JournalEntry, reason: str, code: RefusalCode, again: Moment | None = None) -> Acted:
        """Write the entry of a refused call, and return the refusal for the agent."""
        entry = self._journal.write(replace(call, outcome="refused", reason=reason))
        return Acted(call.name, call.effect, "refused", reason=reason, entry=entry.seq, code=code, again=again)

    def _does_no_more_damage(self, question: Payload, now: Moment) -> bool:
        """Return whether the call in a question succeeds and leaves no more damage in the pack's tables than before."""
        tool = self.environment.by_name.get(question.get("tool", ""))
        arguments = parse_arguments(tool, question.get("arguments", {})) if tool else ""
        if tool is None or isinstance(arguments, str):
            return False
        before, run, after = try_and_roll_back(
            self._connection, self._caller, tool, arguments, now, lambda: in_tables(self.standings()).total
        )
        return run.outcome == "done" and after <= before

    def _later(self, kind: str, at: Moment, payload: Payload, name: str) -> None:
        """Schedule an event of this kind for a pack's code. Without a name, the event is named after the present entry."""
        if kind not in self.environment.by_kind:
            raise KeyError(f"there is no kind of event '{kind}'; {nearest(kind, self.environment.by_kind)}")
        self._schedule.add("event", kind, at, payload, name or f"{kind} of entry {self._journal.next}")

    def _happen(self, pending: Pending) -> tuple[Payload, Versions]:
        """Process an event or a person's answer, in the transaction that removes it from the pending rows."""
        self._digest = ""
        if pending.what == "answer":
            payload = self._people.answer(pending, self.now)
            self._journal.write(
                JournalEntry("answer", pending.name, arguments=dict(payload), effect=payload["about"], who="person")
            )
            return payload, {}
        kind, before = self.environment.by_kind[pending.kind], self._past.now()
        things = kind.about(pending.payload)
        if apply := kind.apply:
            self._caller.call_pack(lambda: apply(self._caller.writing, pending.payload, self.now))
        versions = self._journal.knowledge.next_versions(things)
        self._past.note_change(things, before)
        event = JournalEntry("event", pending.name, pending.kind, dict(pending.payload), versions=versions, who="world")
        self._journal.write(event)
        return pending.payload, versions

    def _tell(self, arrivals: Iterable[Arrival]) -> tuple[Arrival, ...]:
        """Return these notices, and note that the agent has seen the versions in them."""
        notices = tuple(arrivals)
        for arrival in notices:
            self._journal.knowledge.note_seen(arrival.versions)
        return notices

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit the block's changes together. If the block raises, roll them back and raise the exception again."""
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            self._journal.reopen()
            raise

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        """Mark the world as replaying a journal while the block runs."""
        self._is_replaying = True
        try:
            yield
        finally:
            self._is_replaying = False


def _create(environment: Environment, connection: Connection) -> None:
    """Create the tables of a world with their first rows and scheduled events."""
    connection.executescript(TABLES + environment.schema)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO world_clock VALUES (?, 1)", (environment.begins.total,))
    for table, rows in environment.rows.items():
        for row in rows:
            columns, placeholders = ", ".join(f'"{column}"' for column in row), ", ".join("?" * len(row))
            connection.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({placeholders})', tuple(row.values()))
    schedule = Schedule(connection, environment.ends)
    for event in sorted(environment.events, key=lambda declared: declared.at):
        schedule.add("event", event.kind, event.at, event.payload, event.name)
    connection.execute("COMMIT")
