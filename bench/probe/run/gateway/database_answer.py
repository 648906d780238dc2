"""What a server of PostgreSQL answers: how it is recorded, and how it is damaged."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from bench.common.errors import whole_text
from bench.probe.points import AnswerFate
from bench.probe.run.gateway.damaged import LARGE, garble
from bench.probe.run.gateway.database_statements import ExecutedStatement, cell_text
from bench.probe.run.gateway.gate import LiveCall
from bench.wire.postgres import (
    MessageReader,
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
WRITES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))
COPIES_IN = b"G"
_AFTER_LAST = b"ZSNA"
"""What a server may say behind the end of the last statement: notices, settings, and that it is ready."""


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
                rows.append({whole_text(name): cell_text(cell) for name, cell in zip(names, cells_of(message), strict=False)})
            elif message.kind == b"C":
                results.append({"tag": whole_text(texts_of(message, 1)[0]), **({"rows": rows} if rows else {})})
                rows, named = [], columns.popleft() if columns else []
        return results

    def strike(self, after: AnswerFate, former: bytes) -> list[WireMessage] | None:
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
                changed.append(made_row([cell and garble(cell) for cell in cells_of(message)]))
            elif message.kind == b"C" and after == "empty":
                changed.append(made(b"C", re.sub(rb"\d+\0$", b"0\0", message.body)))
            elif message.kind != b"D":
                changed.append(message)
        return changed


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
