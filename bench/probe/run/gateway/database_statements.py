"""The statements that an agent prepares and executes in a session of PostgreSQL, within a bound, and how a statement is
recorded."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from pydantic import JsonValue

from bench.common.errors import whole_text
from bench.wire.postgres import SqlStatement, WireMessage, columns_of, first_texts, make_message, parse_bind, statements_of

MOST_KEPT, LARGEST_KEPT = 1_000, 2**20
"""Statements that are kept, and the characters and bytes of all of them with their values."""
LONGEST_SHAPE = 10_000
"""Characters that are kept of the shape of a statement."""
_VALUE = re.compile(r"''|('|\$\w*\$|--|/\*)")
"""An empty text, which stands in a shape for any, or where a value or a comment begins that nobody took out."""
_NUMBER = re.compile(r"(?<![\w$.])\d[\w.]*")
BEGINS, ENDS = frozenset(("BEGIN", "START")), frozenset(("COMMIT", "END"))
READS = frozenset(("SELECT", "VALUES", "TABLE", "FETCH", "EXPLAIN"))
OF_SESSION = BEGINS | frozenset(("ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET", "SHOW", "DISCARD", "DEALLOCATE"))
OF_SESSION |= frozenset(("LISTEN", "UNLISTEN", "CLOSE", "DECLARE", "LOAD", "LOCK"))
"""The first words of statements that change nothing which another session could see."""
UNKNOWN = SqlStatement("", "CALL")
"""A statement of which nothing is known: it can write."""


@dataclass
class PreparedStatements:
    """The statements of a Parse message, and the columns of their result once the server has described them."""

    statements: list[SqlStatement]
    columns: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of characters of all statements."""
        return sum(len(each.text) for each in self.statements)


@dataclass(frozen=True)
class ExecutedStatement:
    """A statement that is executed, with the values of its parameters, and the columns of its result."""

    statement: SqlStatement
    values: tuple[bytes | None, ...] = ()
    columns: list[str] = field(default_factory=list)


@dataclass
class StatementRecord:
    """The statements that are executed up to a Sync, or in a transaction.

    kept     the statements, within a bound
    further  the number of statements beyond the bound, of which only a digest is kept
    begins   whether the first statement begins a transaction
    acts     whether a statement can read or write what other sessions see
    writes   whether a statement can write
    ends     whether a statement ends a transaction
    """

    kept: list[ExecutedStatement] = field(default_factory=list)
    further: int = 0
    begins: bool = False
    acts: bool = False
    writes: bool = False
    ends: bool = False
    _size: int = 0
    _digest: bytes = b""
    _first_write: ExecutedStatement | None = None
    """Its shape: it names the call where no statement that writes is within the bound."""

    def add(self, execution: ExecutedStatement) -> None:
        """Add a statement that is executed."""
        acts = is_acting(execution.statement)
        if not (self.kept or self.further):
            self.begins = execution.statement.verb in BEGINS
        if acts and execution.statement.verb not in READS and not self.writes:
            self.writes, shape = True, shape_of(execution.statement.skeleton)
            self._first_write = ExecutedStatement(SqlStatement(shape, shape))
        self.acts = self.acts or acts
        self.ends = self.ends or is_end(execution.statement)
        size = len(execution.statement.text) + sum(len(value or b"") for value in execution.values)
        if len(self.kept) < MOST_KEPT and self._size + size <= LARGEST_KEPT:
            self.kept.append(execution)
            self._size += size
        elif acts:
            self.further += 1
            content = repr((execution.statement.text, execution.values)).encode("utf-8", "backslashreplace")
            self._digest = hashlib.sha256(self._digest + content).digest()

    def extend(self, other: Self) -> None:
        """Add the statements of another record."""
        begins = self.begins if self.kept or self.further else other.begins
        for execution in other.kept:
            self.add(execution)
        self.further, self.begins = self.further + other.further, begins
        self._first_write = self._first_write or other._first_write
        self.acts, self.writes, self.ends = self.acts or other.acts, self.writes or other.writes, self.ends or other.ends
        if other.further:
            self._digest = hashlib.sha256(self._digest + other._digest).digest()

    def summary(self) -> tuple[list[ExecutedStatement], list[JsonValue]]:
        """Return the statements that write, or those that read if none writes, and an entry for the statements beyond the
        bound."""
        acting = [execution for execution in self.kept if is_acting(execution.statement)]
        writing = [execution for execution in acting if execution.statement.verb not in READS]
        beyond_bound: list[JsonValue] = [{"further": self.further, "sha256": self._digest.hex()}] if self.further else []
        if self._first_write and not writing:
            return [self._first_write], beyond_bound
        return writing or acting, beyond_bound


class SessionStatements:
    """The statements that an agent prepares, binds and executes in a session.

    executed  the statements since the last Sync
    """

    def __init__(self) -> None:
        self.executed = StatementRecord()
        self._prepared, self._portals = dict[str, PreparedStatements](), dict[str, list[ExecutedStatement]]()
        self._size = 0
        """Characters of what is prepared."""
        self._described = deque[list[str]]()
        """The columns of statements whose descriptions are awaited."""

    def take_executed(self) -> StatementRecord:
        """Return the statements executed since the last Sync, and start a new record."""
        executed, self.executed = self.executed, StatementRecord()
        return executed

    def note_refused(self, name: str) -> None:
        """Note that the server will reject the statement with this name."""
        if not name or name not in self._prepared:
            self._prepare(name, PreparedStatements([]))

    def note(self, message: WireMessage) -> None:
        """Note the statements that a message of the agent prepares, binds or executes."""
        kind, of_portal = message.kind, message.body[:1] == b"P"
        if kind == b"Q":
            self._execute(map(ExecutedStatement, statements_of(first_texts(message, 1)[0])))
        elif kind == b"F":
            self._execute([ExecutedStatement(UNKNOWN)])
        elif kind == b"P":
            name, sql = first_texts(message, 2)
            self._prepare(name, PreparedStatements(statements_of(sql)))
        elif kind == b"B":
            bound = parse_bind(message)
            prepared = self._prepared.get(bound.statement) or PreparedStatements([UNKNOWN])
            bound_statements = [
                ExecutedStatement(statement, tuple(bound.values), prepared.columns) for statement in prepared.statements
            ]
            self._portals[bound.portal] = bound_statements
        elif kind == b"E":
            self._execute(self._portals.get(first_texts(message, 1)[0], ()))
        elif kind in (b"D", b"C"):
            name = first_texts(make_message(kind, message.body[1:]), 1)[0]
            if kind == b"C":
                self._portals.pop(name, None) if of_portal else self._forget(name)
            elif of_portal:
                self._described.append(next((statement.columns for statement in self._portals.get(name, ())), []))
            else:
                self._described.append(self._prepared.get(name, PreparedStatements([])).columns)

    def note_answer(self, message: WireMessage) -> None:
        """Note the columns that the server describes, and the end of a transaction."""
        if message.kind in b"Tn" and self._described:
            self._described.popleft()[:] = columns_of(message) if message.kind == b"T" else []
        elif message.kind == b"Z":
            self._described.clear()
            if message.body == b"I":
                self._portals.clear()

    def _execute(self, statements: Iterable[ExecutedStatement]) -> None:
        for execution in statements:
            self.executed.add(execution)

    def _prepare(self, name: str, prepared: PreparedStatements) -> None:
        """Keep prepared statements, and forget the oldest beyond a bound: a forgotten statement counts as one that can
        write."""
        self._forget(name)
        self._prepared[name] = prepared
        self._size += prepared.size
        while len(self._prepared) > MOST_KEPT or (self._size > LARGEST_KEPT and len(self._prepared) > 1):
            self._forget(next(iter(self._prepared)))

    def _forget(self, name: str) -> None:
        if prepared := self._prepared.pop(name, None):
            self._size -= prepared.size


def is_end(statement: SqlStatement) -> bool:
    """Return whether a statement commits a transaction."""
    return statement.verb in ENDS or (statement.verb == "PREPARE" and statement.name == "PREPARE TRANSACTION")


def is_acting(statement: SqlStatement) -> bool:
    """Return whether a statement can read or write what other sessions see."""
    return statement.verb not in OF_SESSION and not is_end(statement) and statement.verb != "PREPARE"


def record_of(execution: ExecutedStatement, hide: frozenset[str]) -> JsonValue:
    """Return a statement with its values as it is recorded. If the statement contains a hidden name, its values are recorded
    under that name, which hides them."""
    statement, values = execution.statement, [cell_text(value) for value in execution.values]
    text = whole_text(statement.text)
    hidden = next((name for name in sorted(hide) if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)), "")
    if hidden:
        return {"sql": whole_text(shape_of(statement.skeleton)), hidden: [text, *values]}
    return {"sql": text, **({"values": values} if values else {})}


def shape_of(without_texts: str) -> str:
    """Return the beginning of a statement without values. Of a statement that is too long to be split, only the part before
    its first value is returned."""
    text = without_texts[:LONGEST_SHAPE]
    end = next((match.start() for match in _VALUE.finditer(text) if match[1]), len(text))
    return _NUMBER.sub("0", text[:end])


def cell_text(cell: bytes | None) -> JsonValue:
    """Return a value as text, or as hexadecimal digits if it is no text."""
    try:
        text = None if cell is None else cell.decode()
    except UnicodeDecodeError:
        text = "\0"
    return text if text is None or (cell and "\0" not in text) or not cell else f"\\x{cell.hex()}"
