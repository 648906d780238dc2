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

MAX_STATEMENTS, MAX_STATEMENTS_SIZE = 1_000, 2**20
"""The most statements that are kept, and the most characters of their texts and bytes of their values together."""
MAX_SHAPE_CHARS = 10_000
"""The longest shape of a statement, which is its text without values."""
_VALUE_START = re.compile(r"''|('|\$\w*\$|--|/\*)")
"""An empty text, or the beginning of a value or a comment that was not removed (group 1)."""
_NUMBER = re.compile(r"(?<![\w$.])\d[\w.]*")
BEGIN_VERBS, END_VERBS = frozenset(("BEGIN", "START")), frozenset(("COMMIT", "END"))
READ_VERBS = frozenset(("SELECT", "VALUES", "TABLE", "FETCH", "EXPLAIN"))
SESSION_VERBS = BEGIN_VERBS | frozenset(("ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET", "SHOW", "DISCARD"))
SESSION_VERBS |= frozenset(("LISTEN", "UNLISTEN", "CLOSE", "DECLARE", "DEALLOCATE", "LOAD", "LOCK"))
"""The first words of statements that change nothing that another session could see."""
UNKNOWN_STATEMENT = SqlStatement("", "CALL")
"""Replaces a statement that is not known, which may write."""


@dataclass
class PreparedStatements:
    """The statements of a Parse message, and the columns of their result once the server has described them."""

    statements: list[SqlStatement]
    columns: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of characters of all statements."""
        return sum(len(statement.text) for statement in self.statements)


@dataclass(frozen=True)
class ExecutedStatement:
    """A statement that is executed, with the values of its parameters, and the columns of its result."""

    statement: SqlStatement
    values: tuple[bytes | None, ...] = ()
    columns: list[str] = field(default_factory=list)


@dataclass
class StatementRecord:
    """The statements that are executed up to a Sync, or in a transaction.

    statements    the statements, within a bound
    unkept_count  the number of statements beyond the bound; only their digest is kept
    begins        whether the first statement begins a transaction
    acts          whether a statement can read or write what other sessions see
    writes        whether a statement can write
    ends          whether a statement commits a transaction
    """

    statements: list[ExecutedStatement] = field(default_factory=list)
    unkept_count: int = 0
    begins: bool = False
    acts: bool = False
    writes: bool = False
    ends: bool = False
    _size: int = 0
    _digest: bytes = b""
    _first_write: ExecutedStatement | None = None
    """The shape of the first statement that can write. It names the call if all statements that can write are beyond the
    bound."""

    def add(self, execution: ExecutedStatement) -> None:
        """Add a statement that is executed."""
        acts = is_acting(execution.statement)
        if not (self.statements or self.unkept_count):
            self.begins = execution.statement.verb in BEGIN_VERBS
        if acts and execution.statement.verb not in READ_VERBS and not self.writes:
            self.writes, shape = True, shape_of(execution.statement.skeleton)
            self._first_write = ExecutedStatement(SqlStatement(shape, shape))
        self.acts = self.acts or acts
        self.ends = self.ends or is_end(execution.statement)
        size = len(execution.statement.text) + sum(len(value or b"") for value in execution.values)
        if len(self.statements) < MAX_STATEMENTS and self._size + size <= MAX_STATEMENTS_SIZE:
            self.statements.append(execution)
            self._size += size
        elif acts:
            self.unkept_count += 1
            content = repr((execution.statement.text, execution.values)).encode("utf-8", "backslashreplace")
            self._digest = hashlib.sha256(self._digest + content).digest()

    def extend(self, other: Self) -> None:
        """Add the statements of another record."""
        # what the first statement is does not change, unless this record is still empty
        begins = self.begins if self.statements or self.unkept_count else other.begins
        for execution in other.statements:
            self.add(execution)
        self.unkept_count, self.begins = self.unkept_count + other.unkept_count, begins
        self._first_write = self._first_write or other._first_write
        self.acts, self.writes, self.ends = self.acts or other.acts, self.writes or other.writes, self.ends or other.ends
        if other.unkept_count:
            self._digest = hashlib.sha256(self._digest + other._digest).digest()

    def summary(self) -> tuple[list[ExecutedStatement], list[JsonValue]]:
        """Return the statements that can write, or the statements that read if none can write; and a list with an entry for the
        statements beyond the bound, if any."""
        acting = [execution for execution in self.statements if is_acting(execution.statement)]
        writing = [execution for execution in acting if execution.statement.verb not in READ_VERBS]
        rest: list[JsonValue] = [{"further": self.unkept_count, "sha256": self._digest.hex()}] if self.unkept_count else []
        if self._first_write and not writing:
            return [self._first_write], rest
        return writing or acting, rest


class SessionStatements:
    """The statements that an agent prepares, binds and executes in a session.

    executed  the statements since the last Sync
    """

    def __init__(self) -> None:
        self.executed = StatementRecord()
        self._prepared, self._portals = dict[str, PreparedStatements](), dict[str, list[ExecutedStatement]]()
        self._size = 0
        """The number of characters of the prepared statements."""
        self._described = deque[list[str]]()
        """For each description that the server has yet to send: the list that gets the columns."""

    def take_executed(self) -> StatementRecord:
        """Return the statements executed since the last Sync, and start a new record."""
        executed, self.executed = self.executed, StatementRecord()
        return executed

    def note_refused(self, name: str) -> None:
        """Note that the server will reject the statement with this name."""
        if not name or name not in self._prepared:
            self._prepare(name, PreparedStatements([]))

    def note(self, message: WireMessage) -> None:
        """Note the statements that a message of the agent prepares, binds, describes, executes or closes."""
        kind, of_portal = message.kind, message.body[:1] == b"P"
        if kind == b"Q":  # Query
            self._execute(map(ExecutedStatement, statements_of(first_texts(message, 1)[0])))
        elif kind == b"F":  # FunctionCall
            self._execute([ExecutedStatement(UNKNOWN_STATEMENT)])
        elif kind == b"P":  # Parse
            name, sql = first_texts(message, 2)
            self._prepare(name, PreparedStatements(statements_of(sql)))
        elif kind == b"B":  # Bind
            bound = parse_bind(message)
            prepared = self._prepared.get(bound.statement) or PreparedStatements([UNKNOWN_STATEMENT])
            bound_statements = [
                ExecutedStatement(statement, tuple(bound.values), prepared.columns) for statement in prepared.statements
            ]
            self._portals[bound.portal] = bound_statements
        elif kind == b"E":  # Execute
            self._execute(self._portals.get(first_texts(message, 1)[0], ()))
        elif kind in (b"D", b"C"):  # Describe, Close
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
        """Add statements to those executed since the last Sync."""
        for execution in statements:
            self.executed.add(execution)

    def _prepare(self, name: str, prepared: PreparedStatements) -> None:
        """Keep prepared statements, and forget the oldest beyond a bound: a forgotten statement counts as one that can
        write."""
        self._forget(name)
        self._prepared[name] = prepared
        self._size += prepared.size
        while len(self._prepared) > MAX_STATEMENTS or (self._size > MAX_STATEMENTS_SIZE and len(self._prepared) > 1):
            self._forget(next(iter(self._prepared)))

    def _forget(self, name: str) -> None:
        """Forget the prepared statement of this name, if there is one."""
        if prepared := self._prepared.pop(name, None):
            self._size -= prepared.size


def is_end(statement: SqlStatement) -> bool:
    """Return whether a statement commits a transaction."""
    return statement.verb in END_VERBS or (statement.verb == "PREPARE" and statement.name == "PREPARE TRANSACTION")


def is_acting(statement: SqlStatement) -> bool:
    """Return whether a statement can read or write what other sessions see."""
    return statement.verb not in SESSION_VERBS and not is_end(statement) and statement.verb != "PREPARE"


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
    """Return the beginning of a statement, with 0 in place of each number. The texts in it were removed before, except in a
    statement that was too long to be split: of this, only the part before its first text or comment is returned."""
    text = without_texts[:MAX_SHAPE_CHARS]
    end = next((match.start() for match in _VALUE_START.finditer(text) if match[1]), len(text))
    return _NUMBER.sub("0", text[:end])


def cell_text(cell: bytes | None) -> JsonValue:
    """Return a value of PostgreSQL as text, or as `\\x` and hexadecimal digits if it is no text; None for NULL."""
    if cell is None:
        return None
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        return f"\\x{cell.hex()}"
    return f"\\x{cell.hex()}" if "\0" in text else text
