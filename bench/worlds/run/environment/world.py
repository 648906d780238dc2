"""A world: one database for each trial, which outlives the agent. `scene` holds what an agent can do; this module adds what the
trial around it can do: inspect, keep and fork the world, and count damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from bench.record.worlds.damage import Damage, Harm
from bench.record.worlds.journal import JournalEntry
from bench.worlds.run.environment import snapshot
from bench.worlds.run.environment.calling import Acted, PackRun, effect_of, read_arguments
from bench.worlds.run.environment.changes import changes, rows_of
from bench.worlds.run.environment.damage import harms, in_journal, in_tables, net_effects
from bench.worlds.run.environment.database import digest_of_tables
from bench.worlds.run.environment.people import Manner
from bench.worlds.run.environment.preview import Preview, risks_of, tried
from bench.worlds.run.environment.scene import SECOND_WRITER, Scene, ToolArguments
from bench.worlds.run.environment.schedule import Notices
from bench.worlds.run.environment.snapshot import CannotRestore, Snapshot


class World(Scene):
    """A scene with the access that a trial has."""

    def told_by(self, notices: Notices) -> None:
        """Let this function decide when the agent hears of an event: the faults of events."""
        self._schedule.notices = notices

    def elapse(self, minutes: int) -> None:
        """Let time pass while the agent waits for an answer. It is not told what happens meanwhile."""
        with self._lock:
            self._schedule.pass_to(self.now.after(minutes=minutes), self._happen)

    def version(self, thing: str) -> int:
        return self._book.knowledge.version(thing)

    def digest(self) -> str:
        """Return a digest of the pack's tables."""
        with self._lock:
            self._digest = self._digest or digest_of_tables(self._connection, self._tables)
            return self._digest

    def journal(self) -> list[JournalEntry]:
        with self._lock:
            return self._book.entries()

    def entry(self, seq: int) -> JournalEntry | None:
        with self._lock:
            return self._book.entry(seq)

    def dump(self) -> str:
        """Return the whole database as SQL, from which a grader rebuilds it."""
        with self._lock:
            return "\n".join(self._connection.iterdump())

    def acknowledge(self, entry: int) -> None:
        """Note that the agent was told the result of this call. 0 is no entry."""
        if entry:
            with self._lock:
                self._book.acknowledge(entry)

    def record(self, after: int = 0) -> None:
        """Note that the agent recorded, or ended with, what it was told in this life by entries after this one."""
        with self._lock:
            self._book.record(after)

    def died(self, point: str) -> None:
        """Note that the agent has died. The world stays as it is."""
        with self._lock:
            self._book.died(point)

    def past(self, tool: str, arguments: ToolArguments) -> Acted | None:
        """Return what a read would have shown before the last change of what it is about. None if nothing has changed."""
        known = self.environment.by_name[tool]
        read = read_arguments(known, arguments)
        if isinstance(read, str) or known.writes:
            return None
        with self._lock:
            things = known.about(read)
            if (before := self._past.before(things)) is None:
                return None
            changed, content = before
            other = World(self.environment, content=content)
            shown = other.call(tool, read)
            other.close()
            if not shown.ok:
                return None
            versions = {thing: self.version(thing) - (thing == changed) for thing in things}
            call = JournalEntry("call", tool, known.kind, read.model_dump(mode="json"), effect_of(known, read))
            return self._told_of(call, PackRun("done", shown.result), known, read, versions)

    def preview(self, tool: str, arguments: ToolArguments) -> Preview:
        """Return what a call would change now and what speaks against it, without making it. Raise KeyError if there is no such
        tool."""
        known = self.environment.by_name[tool]
        read = read_arguments(known, arguments)
        if isinstance(read, str):
            return Preview(tool, "", (read,), ())
        with self._lock:
            effect = effect_of(known, read)
            before, run, after = tried(self._connection, self._caller, known, read, self.now, lambda: rows_of(self._connection))
            done = self._book.entries("what = 'call' AND effect = ?", effect)
            seen = self._book.knowledge.based_on(known.about(read))
            risks = risks_of(
                known,
                run,
                self._rules.verdict(known, read, self.now),
                standing=net_effects(self.environment, done)[effect],
                moved=[thing for thing, (version, current) in seen.items() if version < current],
                is_late=self._rules.is_late(known, read, self.now),
            )
            return Preview(tool, effect, risks, changes(before, after) if run.outcome == "done" else ())

    def end(self) -> None:
        """Let all pending events up to the world's last moment happen."""
        if self.environment.ends is not None:
            with self._lock:
                self._schedule.pass_to(self.environment.ends, self._happen)

    def damage(self) -> tuple[Damage, Damage]:
        """Count damage from the journal, and from the pack's tables alone."""
        with self._lock:
            entries, standings = self._book.entries(), self.standings()
            return in_journal(self.environment, entries, self._book.known(), standings), in_tables(standings)

    def harms(self) -> dict[str, list[Harm]]:
        """Return kind of damage -> the effects, with their journal entries, that it is counted from."""
        with self._lock:
            return harms(self.environment, self._book.entries(), self._book.known(), self.standings())

    def snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(self.digest(), self._connection.serialize())

    def restore(self, taken: Snapshot) -> None:
        """Restore this snapshot. Raise CannotRestore, and change nothing, if it holds no world."""
        with self._lock:
            snapshot.load(self._connection, taken.content)
            self._schedule.reread()
            self._book.reopen()
            self._digest = ""

    def fork(self, taken: Snapshot | None = None) -> World:
        """Return a new world that goes on from here, or from a snapshot."""
        content = (taken or self.snapshot()).content
        return World(self.environment, content=content, drawn_from=self._people.drawn_from, keeps_past=self._past.keeps)

    def replay(self, entries: Iterable[JournalEntry]) -> None:
        """Do in this new world what another world's journal entries say was done. This forks a trial at any step; the digest is
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
                    self.died(entry.name)
                elif entry.is_effect and self.call(entry.name, entry.arguments, entry.key, who=entry.who).result is None:
                    raise CannotRestore(f"entry {entry.seq}, {entry.effect}, does not happen here; is this the same pack?")

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        self._replays = True
        try:
            yield
        finally:
            self._replays = False

    def close(self) -> None:
        self._connection.close()
