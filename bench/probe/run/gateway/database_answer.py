"""What an agent of a database executes, and what the server answers: how both are recorded, and how an answer is damaged."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from bench.common.errors import whole_text
from bench.probe.points import AnswerFate
from bench.probe.run.gateway.damaged import LARGE, garbled
from bench.probe.run.gateway.gate import LiveCall
from bench.wire.postgres import (
    MessageReader,
    SqlStatement,
    WireMessage,
    cells_of,
    columns_of,
    error_of,
    made,
    made_row,
    texts_of,
)

LARGEST = 2**20
"""Bytes of an answer that is kept whole."""
LARGEST_STRUCK = 2**26
"""Bytes of an answer that is kept whole because it is struck."""
MOST_COLUMNS = 2**11
BEGINS, ENDS = frozenset(("BEGIN", "START")), frozenset(("COMMIT", "END"))
READS = frozenset(("SELECT", "VALUES", "TABLE", "FETCH", "EXPLAIN"))
WRITES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))
OF_SESSION = BEGINS | frozenset(("ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET", "SHOW", "DISCARD", "DEALLOCATE"))
OF_SESSION |= frozenset(("LISTEN", "UNLISTEN", "CLOSE", "DECLARE", "LOAD", "LOCK"))
"""The first words of statements that change nothing which another session could see."""
COPIES_IN = b"G"
_AFTER_LAST = b"ZSNA"
"""What a server may say behind the end of the last statement: notices, settings, and that it is ready."""


@dataclass
class Prepared:
    """The statements that a Parse message holds, and the columns of their answer once they are described."""

    statements: list[SqlStatement]
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ExecutedStatement:
    """A statement that is executed, with the values of its parameters, and the columns of its answer."""

    statement: SqlStatement
    values: tuple[bytes | None, ...] = ()
    columns: list[str] = field(default_factory=list)


@dataclass
class ServerAnswer:
    """What the server answers to some statements, up to its next ReadyForQuery."""

    executed: Sequence[ExecutedStatement]
    messages: list[WireMessage] = field(default_factory=list)
    is_whole: bool = True
    _size: int = 0
    _passed: set[bool] = field(default_factory=set)
    """Whether the statements read whose ends were passed back already."""

    def take(self, message: WireMessage, *, keeps: bool) -> bytes:
        """Add a message. Return the bytes that are passed back already: those of a long answer before what says that its last
        statement is done; and all that comes before the agent copies in. An answer that is to be kept may be longer."""
        self.messages.append(message)
        self._size += len(message.raw)
        if message.kind != COPIES_IN and self.is_whole and self._size <= (LARGEST_STRUCK if keeps else LARGEST):
            return b""
        self.is_whole = False
        at = len(self.messages)
        while at and self.messages[at - 1].kind in _AFTER_LAST:
            at -= 1
        if at and self.messages[at - 1].kind in b"CE":
            at -= 1
        passed = self.messages[:at]
        self._passed.update(_is_read(texts_of(each, 1)[0]) for each in passed if each.kind == b"C")
        del self.messages[:at]
        return b"".join(each.raw for each in passed)

    @property
    def is_complete(self) -> bool:
        return bool(self.messages) and self.messages[-1].kind == b"Z"

    @property
    def raw(self) -> bytes:
        return b"".join(message.raw for message in self.messages)

    @property
    def error(self) -> dict[str, str]:
        return next((error_of(message) for message in self.messages if message.kind == b"E"), {})

    @property
    def reads(self) -> bool:
        """Whether tags say that no row was written."""
        kept = (_is_read(texts_of(message, 1)[0]) for message in self.messages if message.kind == b"C")
        return {*self._passed, *kept} == {True}

    @property
    def value(self) -> JsonValue:
        """The answer as it is recorded."""
        if error := self.error:
            return {"error": {"code": whole_text(error.get("C", "")), "text": whole_text(error.get("M", ""))}}
        results, rows, columns = list[JsonValue](), list[JsonValue](), deque(each.columns for each in self.executed)
        named = columns.popleft() if columns else []
        for message in self.messages:
            if message.kind == b"T":
                named = columns_of(message)
            elif message.kind == b"D":
                names = (*named, *map(str, range(len(named), MOST_COLUMNS)))
                rows.append({whole_text(name): shown(cell) for name, cell in zip(names, cells_of(message), strict=False)})
            elif message.kind == b"C":
                results.append({"tag": whole_text(texts_of(message, 1)[0]), **({"rows": rows} if rows else {})})
                rows, named = [], columns.popleft() if columns else []
        return results

    def struck(self, after: AnswerFate, former: bytes) -> list[WireMessage] | None:
        """Return the messages of a damaged answer, or with the rows of a former one; None if there is no row to damage."""
        rows = sum(len(message.raw) for message in self.messages if message.kind == b"D")
        if after == "stale":
            held = [message for message in MessageReader().messages(former) if message.kind in b"DC"]
            at = next((at for at, message in enumerate(self.messages) if message.kind in b"DC"), len(self.messages))
            return [*self.messages[:at], *held, *(each for each in self.messages[at:] if each.kind not in b"DC")]
        if not rows:
            return None
        changed = list[WireMessage]()
        for message in self.messages:
            if message.kind == b"D" and after == "too_large":
                changed += [message] * (1 + LARGE // rows)
            elif message.kind == b"D" and after == "garbled":
                changed.append(made_row([cell and garbled(cell) for cell in cells_of(message)]))
            elif message.kind == b"C" and after == "empty":
                changed.append(made(b"C", re.sub(rb"\d+\0$", b"0\0", message.body)))
            elif message.kind != b"D":
                changed.append(message)
        return changed


def is_end(statement: SqlStatement) -> bool:
    """Return whether a statement ends a transaction and keeps what it did."""
    return statement.verb in ENDS or (statement.verb == "PREPARE" and statement.name == "PREPARE TRANSACTION")


def is_acting(statement: SqlStatement) -> bool:
    """Return whether a statement can read or write what other sessions see."""
    return statement.verb not in OF_SESSION and not is_end(statement) and statement.verb != "PREPARE"


def recorded(execution: ExecutedStatement, hide: frozenset[str]) -> JsonValue:
    """Return a statement with its values as it is recorded. If it names what is hidden, the values stand under that name."""
    statement, values = execution.statement, [shown(value) for value in execution.values]
    text = whole_text(statement.text)
    hidden = next((name for name in sorted(hide) if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)), "")
    if hidden:
        return {"sql": whole_text(statement.bare), hidden: [text, *values]}
    return {"sql": text, **({"values": values} if values else {})}


def shown(cell: bytes | None) -> JsonValue:
    """Return a value as text, or in hexadecimal digits where it is none."""
    try:
        text = None if cell is None else cell.decode()
    except UnicodeDecodeError:
        text = "\0"
    return text if text is None or (cell and "\0" not in text) or not cell else f"\\x{cell.hex()}"


def read(call: LiveCall, answer: ServerAnswer) -> None:
    """Record how a call was answered. Where no tag says that a row was written, it claims to read."""
    call.answer, call.failed = answer.value, bool(answer.error)
    if answer.reads:
        call.reads = True


def is_write(tag: str) -> bool:
    """Return whether the tag of a statement says that it wrote a row."""
    words = tag.split()
    return bool(words) and words[0] in WRITES and words[-1] != "0"


def _is_read(tag: str) -> bool:
    words = tag.split()
    return len(words) > 1 and (words[0] in ("SELECT", "FETCH") or words[-1] == "0")
