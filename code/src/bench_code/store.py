"""Stores the execution state: steps, versions, patches, executions and what they depend on.

The store is one SQLite file under git's common directory, so that it makes no tree dirty and all worktrees share it. Contents
are stored as objects of git.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench_code.record import Execution, Fact, Record
from bench_code.state_file import StateFile
from bench_code.units import Module, Unit, digest, parse

READING = f"7 {sys.version}"
"""How a text is read: a number that grows with each change of that, and Python's version, as syntax trees differ by it."""
UNUSED = (
    "DELETE FROM made_in WHERE step NOT IN (SELECT id FROM steps)",
    "DELETE FROM depends WHERE execution NOT IN (SELECT id FROM executions)",
    "DELETE FROM records WHERE id NOT IN (SELECT record FROM depends)",
    "DELETE FROM record_facts WHERE record NOT IN (SELECT id FROM records)",
    "DELETE FROM facts WHERE id NOT IN (SELECT fact FROM record_facts)",
    "DELETE FROM modules",
)
"""Statements that drop what no step and no execution refers to. A text that is still there is parsed anew."""
MODULE = (str, [(str, str, int, int, str)], str, str, [str])
"""The shape of a module, which is stored as JSON."""


@dataclass(frozen=True)
class Kept:
    """A stored execution, with the step at which it ran."""

    id: int
    step: int
    at: float
    kind: str
    name: str
    outcome: str
    detail: str
    seconds: float
    volatile: str


class Leftover(NamedTuple):
    """What a test leaves for the tests after it.

    file    the file of tests in whose own module it lies; "" if all tests may see it
    value   a digest of it; if it cannot be told, "?" and the number of the step at which the test last ran for its own sake
    """

    file: str
    value: str

    @property
    def is_untold(self) -> bool:
        return self.value.startswith("?")


KEPT = "id, step, at, kind, name, outcome, detail, seconds, volatile"


class ExecutionStore(StateFile):
    """The steps, versions and executions in the file of a repository's state."""

    # Steps and versions

    def last_step(self) -> tuple[int, str]:
        """Return the number and the tree of the last step; (0, "") if there is no step yet."""
        rows = self.rows("SELECT id, tree FROM steps ORDER BY id DESC LIMIT 1")
        return tuple(rows[0]) if rows else (0, "")

    def patched_tree(self, folder: str) -> str:
        """Return the tree with which the next patch of a worktree is compared; "" if the worktree has no step yet."""
        rows = self.rows("SELECT patched FROM worktrees WHERE folder = ?", folder)
        return str(rows[0][0]) if rows else ""

    def add_step(self, tree: str, kind: str, note: str, folder: str) -> int:
        """Add a step of a worktree in the present transaction, and return its number."""
        cursor = self.db.execute("INSERT INTO steps(at, tree, kind, note) VALUES (?, ?, ?, ?)", (time.time(), tree, kind, note))
        self.db.execute("INSERT INTO made_in VALUES (?, ?)", (cursor.lastrowid, folder))
        return int(cursor.lastrowid or 0)

    def drop_before(self, step: int) -> tuple[int, int]:
        """Drop the steps before a step, and the executions before it that a later execution of the same name replaced.

        Returns:
            The number of the dropped steps, and of the dropped executions.
        """
        last = "SELECT MAX(id) FROM executions GROUP BY layout, kind, name"
        later = "SELECT 1 FROM versions AS l WHERE l.artifact = versions.artifact AND l.step > versions.step AND l.step <= ?"
        with self.writing():
            steps = self.db.execute("DELETE FROM steps WHERE id < ?", (step,)).rowcount
            executions = self.db.execute(f"DELETE FROM executions WHERE step < ? AND id NOT IN ({last})", (step,)).rowcount
            self.db.execute(f"DELETE FROM versions WHERE EXISTS ({later})", (step,))
            for statement in UNUSED:
                self.db.execute(statement)
        self.rows("VACUUM")
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return steps, executions

    def add_versions(self, step: int, versions: Mapping[str, str], patch: int | None, paths: Collection[str]) -> None:
        """Add in the present transaction the digests, by artifact, that a step changed. A patch made those of some paths."""
        last = "SELECT digest FROM versions WHERE artifact = ? ORDER BY step DESC LIMIT 1"
        new = [(each, value) for each, value in versions.items() if self.rows(last, each) != [(value,)]]
        rows = [(each, value, step, patch if each.partition("::")[0] in paths else None) for each, value in new]
        self.db.executemany("INSERT INTO versions VALUES (?, '', ?, ?, ?)", rows)

    def credit_versions(self, patch: int, folder: str, base: str, paths: Iterable[str]) -> None:
        """Note in the present transaction that a patch made what runs in a worktree have noted of these files since a tree."""
        began = "SELECT COALESCE(MAX(step), 0) FROM made_in JOIN steps ON id = step WHERE folder = ? AND tree = ?"
        theirs = f"SELECT step FROM made_in WHERE folder = ? AND step > ({began})"
        path = "substr(artifact, 1, instr(artifact || '::', '::') - 1)"
        query = f"UPDATE versions SET patch = ? WHERE patch IS NULL AND {path} = ? AND step IN ({theirs})"
        self.db.executemany(query, [(patch, each, folder, folder, base) for each in paths])

    def module(self, content: str, source: Callable[[], bytes]) -> Module:
        """Return the versions in a source text. Each text is parsed once: parsing a whole tree takes longer than deciding.

        Args:
            content: The digest of the text, or git's id of it.
            source: Returns the text.
        """
        key = digest(READING + content)
        for (known,) in self.rows("SELECT parsed FROM modules WHERE source = ?", key):
            skeleton, units, broken, helpers, mentions = self.parsed(known, MODULE)
            return Module(skeleton, tuple(Unit(*unit) for unit in units), broken, helpers, tuple(mentions))
        module = parse(source())
        units = [(unit.name, unit.kind, unit.first, unit.last, unit.digest) for unit in module.units]
        text = json.dumps([module.skeleton, units, module.broken, module.helpers, module.mentions])
        with self.writing():
            self.db.execute("INSERT OR IGNORE INTO modules VALUES (?, ?)", (key, text))
        return module

    # Executions

    def save(self, step: int, layout: str, executions: Sequence[Execution]) -> None:
        """Store executions with their dependencies, in the order in which they ran."""
        with self.writing():
            records = self._record_ids({record for execution in executions for record in execution.records})
            for place, execution in enumerate(executions):
                values = (step, time.time(), layout, place, execution.kind, execution.name)
                outcome = (execution.outcome, execution.detail, execution.seconds, execution.volatile)
                marks = ",".join("?" * len(values + outcome))
                columns = "step, at, layout, place, kind, name, outcome, detail, seconds, volatile"
                made = self.db.execute(f"INSERT INTO executions({columns}) VALUES ({marks})", values + outcome).lastrowid
                depends = {(made, records[record]) for record in execution.records}
                self.db.executemany("INSERT INTO depends(execution, record) VALUES (?, ?)", depends)

    def _record_ids(self, records: set[Record]) -> dict[Record, int]:
        facts = set[Fact]().union(*(record.facts for record in records))
        self.db.executemany("INSERT OR IGNORE INTO facts(kind, name, value) VALUES (?, ?, ?)", facts)
        ids = {Fact(kind, name, value): id_ for id_, kind, name, value in self.rows("SELECT id, kind, name, value FROM facts")}
        keyed = []
        for record in records:
            relied = sorted([ids[fact] for fact in record.facts])
            keyed.append((record, digest(json.dumps([record.kind, record.name, relied])), json.dumps(relied)))
        made = [(key, record.kind, record.name) for record, key, _ in keyed]
        self.db.executemany("INSERT OR IGNORE INTO records(digest, kind, name) VALUES (?, ?, ?)", made)
        query = "INSERT OR IGNORE INTO record_facts SELECT records.id, value FROM records, json_each(?) WHERE digest = ?"
        self.db.executemany(query, [(relied, key) for _, key, relied in keyed])
        known = dict(self.rows("SELECT digest, id FROM records"))
        return {record: known[key] for record, key, _ in keyed}

    def facts(self) -> dict[int, Fact]:
        """Return all facts that executions relied on, by their numbers."""
        return {id_: Fact(kind, name, value) for id_, kind, name, value in self.rows("SELECT id, kind, name, value FROM facts")}

    def steps_of(self, tree: str) -> set[int]:
        """Return the steps with this tree."""
        return {step for (step,) in self.rows("SELECT id FROM steps WHERE tree = ?", tree)}

    def leftovers(self) -> dict[str, Leftover]:
        """Return what tests left for others when they last ran, by the tests' names."""
        return {name: Leftover(file, value) for name, file, value in self.rows("SELECT name, file, value FROM leftovers")}

    def save_leftovers(self, leftovers: Mapping[str, Leftover]) -> None:
        """Store what tests leave for others, instead of what was stored before."""
        with self.writing():
            self.db.execute("DELETE FROM leftovers")
            rows = [(name, *each) for name, each in leftovers.items()]
            self.db.executemany("INSERT INTO leftovers(name, file, value) VALUES (?, ?, ?)", rows)

    def retire(self, executions: Mapping[int, str]) -> None:
        """Let the results of these executions count no more, each since a test of this name leaves something else than then."""
        records = {Record("left", name, frozenset({Fact("left", name, "other")})) for name in executions.values()}
        with self.writing():
            ids = {record.name: id_ for record, id_ in self._record_ids(records).items()}
            done = {
                each for (each,) in self.rows("SELECT execution FROM depends JOIN records ON id = record WHERE kind = 'left'")
            }
            rows = [(each, ids[executions[each]]) for each in executions.keys() - done]
            self.db.executemany("INSERT INTO depends(execution, record) VALUES (?, ?)", rows)

    def executions_on(self, facts: Iterable[int], but: str = "") -> set[int]:
        """Return the executions that depend on any of these facts, by other records than those of a kind."""
        query = (
            "SELECT DISTINCT execution FROM record_facts JOIN depends USING (record) JOIN records ON records.id = record "
            "WHERE kind != ? AND fact IN (SELECT value FROM json_each(?))"
        )
        return {execution for (execution,) in self.rows(query, but, json.dumps([*facts]))}

    def executions(self, layout: str | None = None, name: str | None = None) -> list[Kept]:
        """Return the executions of a layout and a name, oldest first. Without them all are returned."""
        given = [(column, value) for column, value in (("layout", layout), ("name", name)) if value is not None]
        where = " AND ".join(f"{column} = ?" for column, _ in given) or "1"
        query = f"SELECT {KEPT} FROM executions WHERE {where} ORDER BY id"
        return [Kept(*row) for row in self.rows(query, *(value for _, value in given))]

    def facts_of(self, execution: int) -> list[tuple[str, str, Fact]]:
        """Return the facts that an execution depended on, each with the kind and the name of its record."""
        query = (
            "SELECT r.kind, r.name, f.kind, f.name, f.value FROM depends d JOIN records r ON r.id = d.record "
            "JOIN record_facts rf ON rf.record = r.id JOIN facts f ON f.id = rf.fact WHERE d.execution = ?"
        )
        return [(kind, name, Fact(*fact)) for kind, name, *fact in self.rows(query, execution)]
