"""Stores the execution state: steps, versions, patches, executions and what they depend on.

The store is one SQLite file under git's common directory, so that it makes no tree dirty and all worktrees share it. Contents
are stored as objects of git. Each write is one transaction, and a second process waits for the first.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import sys
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.codebase.git import CodeError
from bench.codebase.record import UNRECORDED, Execution, Fact, Record
from bench.codebase.surface import Surface, TopStatement, surface_of
from bench.codebase.units import Module, Unit, digest, parse
from bench.common.files import opened

FORMAT = 1
WAIT = 30.0
"""Seconds for which a process waits while another process writes."""
READING = f"6 {sys.version}"
"""How a text is read: a number that grows with each change of that, and Python's version, as syntax trees differ by it."""
PAUSE = 0.01
"""Seconds between two attempts to open a file that another process is creating."""
SCHEMA = """
CREATE TABLE steps(id INTEGER PRIMARY KEY, at REAL NOT NULL, tree TEXT NOT NULL, kind TEXT NOT NULL, note TEXT NOT NULL);
CREATE TABLE versions(artifact TEXT NOT NULL, kind TEXT NOT NULL, digest TEXT NOT NULL, step INTEGER NOT NULL, patch INTEGER);
CREATE INDEX versions_of ON versions(artifact, step);
CREATE TABLE patches(id INTEGER PRIMARY KEY, at REAL NOT NULL, base TEXT NOT NULL, status TEXT NOT NULL, edits TEXT NOT NULL,
  action TEXT NOT NULL, call TEXT NOT NULL, person TEXT NOT NULL);
CREATE TABLE executions(id INTEGER PRIMARY KEY, step INTEGER NOT NULL, at REAL NOT NULL, layout TEXT NOT NULL,
  place INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, outcome TEXT NOT NULL, detail TEXT NOT NULL,
  seconds REAL NOT NULL, volatile TEXT NOT NULL);
CREATE INDEX executions_of ON executions(name, kind);
CREATE TABLE facts(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
  UNIQUE(kind, name, value));
CREATE TABLE records(id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE record_facts(record INTEGER NOT NULL, fact INTEGER NOT NULL, PRIMARY KEY(fact, record)) WITHOUT ROWID;
CREATE TABLE depends(execution INTEGER NOT NULL, record INTEGER NOT NULL, PRIMARY KEY(record, execution)) WITHOUT ROWID;
CREATE INDEX depends_of ON depends(execution);
CREATE TABLE artifacts(portfolio TEXT NOT NULL, artifact TEXT NOT NULL, needs TEXT NOT NULL, PRIMARY KEY(portfolio, artifact));
CREATE TABLE ordered(name TEXT PRIMARY KEY);
"""
ADDED = (
    "CREATE INDEX IF NOT EXISTS facts_in ON record_facts(record)",
    "CREATE TABLE IF NOT EXISTS modules(source TEXT PRIMARY KEY, parsed TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS surfaces(skeleton TEXT PRIMARY KEY, statements TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mentions(body TEXT PRIMARY KEY, names TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS unread(source TEXT PRIMARY KEY, skeleton TEXT NOT NULL, text BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS unread_of ON unread(skeleton)",
    "CREATE TABLE IF NOT EXISTS worktrees(folder TEXT PRIMARY KEY, patched TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS messages(execution INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS made_in(step INTEGER PRIMARY KEY, folder TEXT NOT NULL)",
)
"""Statements that add the tables and indexes which the first states of this format lacked."""
UNUSED = (
    "DELETE FROM made_in WHERE step NOT IN (SELECT id FROM steps)",
    "DELETE FROM messages WHERE execution NOT IN (SELECT id FROM executions)",
    "DELETE FROM depends WHERE execution NOT IN (SELECT id FROM executions)",
    "DELETE FROM records WHERE id NOT IN (SELECT record FROM depends)",
    "DELETE FROM record_facts WHERE record NOT IN (SELECT id FROM records)",
    "DELETE FROM facts WHERE id NOT IN (SELECT fact FROM record_facts)",
    "DELETE FROM modules",
    "DELETE FROM unread WHERE skeleton NOT IN (SELECT value FROM facts)",
    "DELETE FROM surfaces WHERE skeleton NOT IN (SELECT key_of(value) FROM facts)",
    "DELETE FROM mentions WHERE body NOT IN (SELECT key_of(value) FROM facts)",
)
"""Statements that drop what no step and no execution refers to. A text that is still there is parsed anew."""
MODULE = (str, [(str, str, int, int, str)], str)
STATEMENTS = [(str, [str], [str], str, str, [(str, str)])]
"""The shapes of what is stored as JSON."""
ONLY_NUMBERS = ("record_facts", "depends")
"""The tables whose values only number rows of others. They are the largest, so their types are not looked at."""
LATEST = 1e11
"""The latest time that a state can hold, in seconds since 1970; a later time has no date."""
LOCK = "lock"
NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names a further file, which SQLite deletes after it has read the journal."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""What SQLite says of the file itself. All else, such as a full disk, leaves the state as it was."""


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


KEPT = "id, step, at, kind, name, outcome, detail, seconds, volatile"


class ExecutionStore:
    """The file that holds a repository's execution state."""

    def __init__(self, path: Path):
        self.path = path
        self._refuse_links()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open(path)
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def _refuse_links(self) -> None:
        """Refuse files of a state that lead elsewhere. A repository that came as an archive can hold any."""
        folder, journal = self.path.parent, self.path.with_name(f"{self.path.name}-journal")
        files = (self.path, journal, *(self.path.with_name(name) for name in ("state.db-wal", "state.db-shm", LOCK)))
        for path in filter(os.path.lexists, (folder, *files)):
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) if path == folder else stat.S_ISREG(mode)):
                raise CodeError(f"{path} is a link, or of another kind than a state's; remove it, and the state begins anew")
        with suppress(OSError), opened(journal) as file:
            file.seek(-len(NAMES_A_FILE), os.SEEK_END)
            if file.read() == NAMES_A_FILE:
                raise CodeError(f"{journal} names a file for SQLite to delete, and no state's journal does; remove it")

    def _open(self, path: Path) -> None:
        self.db = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        weakref.finalize(self, self.db.close)
        self._write_ahead()
        self.db.execute("PRAGMA synchronous=NORMAL")
        definitions, foreign_rows = _schema()
        with self.writing():
            for name, definition in self.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
                if definition not in definitions:
                    raise self.damaged(f"it holds '{name}', which no release makes")
            [format_] = self.rows("PRAGMA user_version")[0]
            if format_ == 0:
                for statement in SCHEMA.split(";"):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version={FORMAT}")
            for statement in ADDED if format_ in (0, FORMAT) else ():
                self.db.execute(statement)
        if format_ not in (0, FORMAT):
            raise CodeError(
                f"{path} has format {format_}, and this release reads {FORMAT}; rename it, and the state begins anew"
            )
        for table, condition in foreign_rows.items():
            if self.rows(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1"):
                raise self.damaged(f"its table '{table}' holds a value that no release writes")

    def damaged(self, why: str) -> CodeError:
        """Return the error on a state that no release wrote, or that was damaged."""
        return CodeError(f"{self.path} cannot be read: {why}; rename it, and the state begins anew")

    def _problem(self, error: sqlite3.Error) -> CodeError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return CodeError(f"{self.path} is in use by another process for over {WAIT:.0f} s ({error}); try again")
        if code in DAMAGED:
            return self.damaged(str(error))
        todo = "make room for it, or allow to write it, and run the same command again"
        return CodeError(f"{self.path} cannot be written: {error}; what it holds is whole, so keep it; {todo}")

    def _write_ahead(self) -> None:
        """Switch the file to a write-ahead log, and try again while another process does so: SQLite does not wait for that."""
        until = time.monotonic() + WAIT
        while True:
            try:
                self.db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(PAUSE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all that the block writes, or nothing, as one transaction, which blocks within it share."""
        if self.db.in_transaction:
            yield
            return
        try:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._problem(error) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process change a patch during the block. It waits for a process that does."""
        file = os.open(self.path.with_name(LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return the rows that a query selects. Raises CodeError if the file cannot be read."""
        try:
            return self.db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def parsed(self, text: str, shape: object) -> Any:
        """Return what a text of JSON in the state holds. Raises CodeError if it has another shape than this release writes."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"a text in it is no JSON ({error})") from None
        if not _has_shape(value, shape):
            raise self.damaged("a text in it holds other values than a release writes")
        return value

    # Steps and versions

    def last_step(self) -> tuple[int, str]:
        """Return the number and the tree of the last step; (0, "") if there is no step yet."""
        rows = self.rows("SELECT id, tree FROM steps ORDER BY id DESC LIMIT 1")
        return tuple(rows[0]) if rows else (0, "")

    def patched_tree(self, folder: str) -> str:
        """Return the tree with which the next patch of a worktree is compared; "" if the worktree has no step yet."""
        rows = self.rows("SELECT patched FROM worktrees WHERE folder = ?", folder)
        return str(rows[0][0]) if rows else ""

    def message(self, execution: int) -> str:
        """Return what pytest wrote of an execution that failed; "" if it did not fail."""
        rows = self.rows("SELECT text FROM messages WHERE execution = ?", execution)
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
        last = f"SELECT MAX(id) FROM executions GROUP BY layout, kind, name, volatile = '{UNRECORDED}'"
        later = "SELECT 1 FROM versions AS l WHERE l.artifact = versions.artifact AND l.step > versions.step AND l.step <= ?"
        self.db.create_function("key_of", 1, _key_of)
        with self.writing():
            steps = self.db.execute("DELETE FROM steps WHERE id < ?", (step,)).rowcount
            executions = self.db.execute(f"DELETE FROM executions WHERE step < ? AND id NOT IN ({last})", (step,)).rowcount
            self.db.execute(f"DELETE FROM versions WHERE EXISTS ({later})", (step,))
            for statement in UNUSED:
                self.db.execute(statement)
        self.rows("VACUUM")
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return steps, executions

    def add_versions(self, step: int, patch: int | None, versions: Iterable[tuple[str, str, str]]) -> None:
        """Add versions that hold from a step on, in the present transaction: artifacts, kinds and digests."""
        rows = [(artifact, kind, value, step, patch) for artifact, kind, value in versions]
        self.db.executemany("INSERT INTO versions VALUES (?, ?, ?, ?, ?)", rows)

    def module(self, source: bytes) -> Module:
        """Return the versions in a source text. Each text is parsed once: parsing a whole tree takes longer than deciding.

        A change of how `bench.codebase.units` makes digests needs another FORMAT; otherwise old digests stay in use.
        """
        key = digest(READING.encode() + source)
        for (known,) in self.rows("SELECT parsed FROM modules WHERE source = ?", key):
            skeleton, units, broken = self.parsed(known, MODULE)
            return Module(skeleton, tuple(Unit(*unit) for unit in units), broken)
        module = parse(source)
        units = [(unit.name, unit.kind, unit.first, unit.last, unit.digest) for unit in module.units]
        with self.writing():
            self.db.execute(
                "INSERT OR IGNORE INTO modules VALUES (?, ?)", (key, json.dumps([module.skeleton, units, module.broken]))
            )
            self.db.execute("INSERT OR IGNORE INTO unread VALUES (?, ?, ?)", (key, module.skeleton, source))
        return module

    def is_known(self, skeleton: str) -> bool:
        """Return whether a text with this skeleton was parsed, so that its surface can be read."""
        query = "SELECT 1 FROM unread WHERE skeleton = ? UNION ALL SELECT 1 FROM surfaces WHERE skeleton = ?"
        return bool(self.rows(query, skeleton, _key_of(skeleton)))

    def _read_names(self, where: str, *values: object) -> None:
        """Read which names the unread texts mention. This takes as long as parsing, so only a changed skeleton causes it."""
        for source, skeleton, text in self.rows(f"SELECT source, skeleton, text FROM unread WHERE {where}", *values):
            surface = surface_of(text)
            read = surface.statements if surface is not None else ()
            statements = [
                (each.kind, sorted(each.binds), sorted(each.mentions), each.digest, each.imports, each.parts) for each in read
            ]
            names = {} if surface is None else surface.bodies
            bodies = [(_key_of(body), " ".join(sorted(mentioned))) for body, mentioned in names.items()]
            with self.writing():
                if surface is not None:
                    self.db.execute("INSERT OR IGNORE INTO surfaces VALUES (?, ?)", (_key_of(skeleton), json.dumps(statements)))
                self.db.executemany("INSERT OR IGNORE INTO mentions VALUES (?, ?)", bodies)
                self.db.execute("DELETE FROM unread WHERE source = ?", (source,))

    def surface(self, skeleton: str) -> Surface | None:
        """Return the surface of a skeleton, by its digest; None if no module with it was parsed, or if it has no surface."""
        self._read_names("skeleton = ?", skeleton)
        for (known,) in self.rows("SELECT statements FROM surfaces WHERE skeleton = ?", _key_of(skeleton)):
            statements = self.parsed(known, STATEMENTS)
            read = (
                TopStatement(kind, frozenset(binds), frozenset(mentions), of, imports, tuple(map(tuple, parts)))
                for kind, binds, mentions, of, imports, parts in statements
            )
            return Surface(tuple(read), {})
        return None

    def mentioned_by(self, body: str) -> frozenset[str] | None:
        """Return the names that a function's body mentions, by the body's digest; None if the body was not parsed."""
        query = "SELECT names FROM mentions WHERE body = ?"
        rows = self.rows(query, _key_of(body))
        if not rows:
            self._read_names("1")
            rows = self.rows(query, _key_of(body))
        return frozenset(rows[0][0].split(" ")) if rows else None

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
                if execution.message:
                    self.db.execute("INSERT INTO messages VALUES (?, ?)", (made, execution.message))
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

    def ran_in_imports(self) -> dict[str, set[str]]:
        """Return the functions that ever ran while modules were imported or collected: for each path their qualified names."""
        ran: dict[str, set[str]] = {}
        query = (
            "SELECT DISTINCT f.name FROM records r JOIN record_facts rf ON rf.record = r.id JOIN facts f ON f.id = rf.fact "
            "WHERE r.kind = 'state' AND f.kind = 'body'"
        )
        for (name,) in self.rows(query):
            path, _, function = name.partition("#")[0].partition("::")
            ran.setdefault(path, set()).add(function)
        return ran

    def executions_on(self, facts: Iterable[int]) -> set[int]:
        """Return the executions that depend on any of these facts."""
        reached: set[int] = set()
        query = "SELECT DISTINCT execution FROM record_facts JOIN depends USING (record) WHERE fact IN ({})"
        wanted = list(facts)
        for at in range(0, len(wanted), 500):
            chunk = wanted[at : at + 500]
            reached |= {row[0] for row in self.rows(query.format(",".join("?" * len(chunk))), *chunk)}
        return reached

    def executions(self, layout: str | None = None, name: str | None = None, recorded: bool = False) -> list[Kept]:
        """Return the executions of a layout and a name, oldest first. Without them all are returned; or those that were
        recorded, whose dependencies are known."""
        given = [(column, value) for column, value in (("layout", layout), ("name", name)) if value is not None]
        where = " AND ".join(f"{column} = ?" for column, _ in given) or "1"
        where += f" AND volatile != '{UNRECORDED}'" if recorded else ""
        query = f"SELECT {KEPT} FROM executions WHERE {where} ORDER BY id"
        return [Kept(*row) for row in self.rows(query, *(value for _, value in given))]

    def record_ids(self, execution: int) -> list[int]:
        """Return the numbers of the records that an execution depends on."""
        return [id_ for (id_,) in self.rows("SELECT record FROM depends WHERE execution = ?", execution)]

    def record(self, id_: int) -> Record:
        """Return a record by its number."""
        [(kind, name)] = self.rows("SELECT kind, name FROM records WHERE id = ?", id_)
        query = "SELECT f.kind, f.name, f.value FROM record_facts JOIN facts f ON f.id = fact WHERE record = ?"
        return Record(kind, name, frozenset(Fact(*fact) for fact in self.rows(query, id_)))

    def facts_of(self, execution: int) -> list[tuple[str, str, Fact]]:
        """Return the facts that an execution depended on, each with the kind and the name of its record."""
        query = (
            "SELECT r.kind, r.name, f.kind, f.name, f.value FROM depends d JOIN records r ON r.id = d.record "
            "JOIN record_facts rf ON rf.record = r.id JOIN facts f ON f.id = rf.fact WHERE d.execution = ?"
        )
        return [(kind, name, Fact(*fact)) for kind, name, *fact in self.rows(query, execution)]


@cache
def _schema() -> tuple[frozenset[str], Mapping[str, str]]:
    """Return the definitions of all that a state has, and for each table a condition that no row of ours meets."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(";".join((SCHEMA, *ADDED)))
        made = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        conditions = {}
        for table in (name for kind, name, _ in made if kind == "table" and name not in ONLY_NUMBERS):
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            typed = [
                f"typeof({name}) NOT IN ('{type_.lower()}', '{type_.lower() if required or key else 'null'}')"
                for _, name, type_, required, _, key in columns
            ]
            late = [f"{name} NOT BETWEEN 0 AND {LATEST}" for _, name, *_ in columns if name == "at"]
            conditions[table] = " OR ".join((*typed, *late))
    return frozenset(definition for _, _, definition in made), conditions


def _has_shape(value: object, shape: object) -> bool:
    """Return whether a value of JSON has a shape: a type, `[shape]` for a list of any length, a tuple for a list of its length,
    `{key: shape}` for a table with these keys, or `{str: shape}` for a table with any keys."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(each, shape[0]) for each in value)
    if isinstance(shape, tuple):
        return isinstance(value, list) and len(value) == len(shape) and all(map(_has_shape, value, shape))
    if isinstance(shape, dict):
        shapes = dict.fromkeys(value, shape[str]) if str in shape and isinstance(value, dict) else shape
        return isinstance(value, dict) and value.keys() == shapes.keys() and all(_has_shape(value[k], shapes[k]) for k in value)
    return type(value) is shape


def _key_of(version: str) -> str:
    """Return the key under which the names in a skeleton or a body are stored."""
    return digest(READING + version)
