"""A response of PostgreSQL: how it is collected, recorded and damaged."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from pydantic import JsonValue

from bench.common.errors import whole_text
from bench.probe.points import AnswerAction
from bench.probe.run.gateway.damaged import LARGE_ANSWER_BYTES, garble
from bench.probe.run.gateway.database_statements import ExecutedStatement, cell_text
from bench.probe.run.gateway.gate import LiveCall
from bench.wire.postgres import MessageReader, WireMessage, cells_of, columns_of, error_of, first_texts, make_message, make_row

MAX_ANSWER_BYTES = 2**20
"""A longer response is forwarded in parts as it arrives."""
MAX_STRUCK_ANSWER_BYTES = 2**26
"""The same bound for a response that will be changed."""
MAX_COLUMNS = 2**11
WRITE_COMMANDS = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))
COPIES_IN = b"G"
_TRAILING_KINDS = b"ZSNA"
"""Kinds of messages that may follow the end of the last statement: ReadyForQuery, ParameterStatus, notices, notifications."""


@dataclass
class ServerAnswer:
    """The server's messages for some statements, up to its next ReadyForQuery."""

    executed: Sequence[ExecutedStatement]
    messages: list[WireMessage] = field(default_factory=list)
    is_whole: bool = True
    _size: int = 0
    _forwarded_reads: set[bool] = field(default_factory=set)
    """For each statement whose end was forwarded already: whether it only read."""

    def add(self, message: WireMessage, *, is_struck: bool) -> bytes:
        """Add a message. Return the bytes that are sent to the agent at once: the beginning of a response that is too long to
        keep, and everything before the agent copies data in.

        Args:
            message: A message of the server.
            is_struck: Whether the response will be changed.
        """
        self.messages.append(message)
        self._size += len(message.raw)
        max_bytes = MAX_STRUCK_ANSWER_BYTES if is_struck else MAX_ANSWER_BYTES
        if message.kind != COPIES_IN and self.is_whole and self._size <= max_bytes:
            return b""
        self.is_whole = False
        # keep the end of the last statement and what follows, so that the end can still be held back; forward all before
        split = len(self.messages)
        while split and self.messages[split - 1].kind in _TRAILING_KINDS:
            split -= 1
        if split and self.messages[split - 1].kind in b"CE":  # CommandComplete or ErrorResponse
            split -= 1
        forwarded = self.messages[:split]
        self._forwarded_reads.update(_is_read(first_texts(sent, 1)[0]) for sent in forwarded if sent.kind == b"C")
        del self.messages[:split]
        return b"".join(sent.raw for sent in forwarded)

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
        """Whether there are command tags, and each says that no row was written."""
        remaining = (_is_read(first_texts(message, 1)[0]) for message in self.messages if message.kind == b"C")
        return {*self._forwarded_reads, *remaining} == {True}

    @property
    def value(self) -> JsonValue:
        """The response as it is recorded."""
        if error := self.error:
            return {"error": {"code": whole_text(error.get("C", "")), "text": whole_text(error.get("M", ""))}}
        results, rows = list[JsonValue](), list[JsonValue]()
        column_lists = deque(execution.columns for execution in self.executed)
        column_names = column_lists.popleft() if column_lists else []
        for message in self.messages:
            if message.kind == b"T":  # RowDescription
                column_names = columns_of(message)
            elif message.kind == b"D":  # DataRow
                names = (*column_names, *map(str, range(len(column_names), MAX_COLUMNS)))
                rows.append({whole_text(name): cell_text(cell) for name, cell in zip(names, cells_of(message), strict=False)})
            elif message.kind == b"C":  # CommandComplete
                results.append({"tag": whole_text(first_texts(message, 1)[0]), **({"rows": rows} if rows else {})})
                rows, column_names = [], column_lists.popleft() if column_lists else []
        return results

    def damaged_messages(self, action: AnswerAction, earlier_answer: bytes) -> list[WireMessage] | None:
        """Return the messages of a damaged response; for `stale`, of the response with the rows of an earlier response. None if
        there is no row to damage."""
        row_bytes = sum(len(message.raw) for message in self.messages if message.kind == b"D")
        if action == "stale":
            earlier_rows = [message for message in MessageReader().messages(earlier_answer) if message.kind in b"DC"]
            before_rows = list(takewhile(lambda message: message.kind not in b"DC", self.messages))
            after_rows = [message for message in self.messages[len(before_rows) :] if message.kind not in b"DC"]
            return [*before_rows, *earlier_rows, *after_rows]
        if not row_bytes:
            return None
        changed = list[WireMessage]()
        for message in self.messages:
            if message.kind == b"D" and action == "too_large":
                changed += [message] * (1 + LARGE_ANSWER_BYTES // row_bytes)
            elif message.kind == b"D" and action == "garbled":
                changed.append(make_row([cell and garble(cell) for cell in cells_of(message)]))
            elif message.kind == b"C" and action == "empty":
                changed.append(make_message(b"C", re.sub(rb"\d+\0$", b"0\0", message.body)))
            elif message.kind != b"D":
                changed.append(message)
        return changed


def record_answer(call: LiveCall, answer: ServerAnswer) -> None:
    """Record the response with the call. The call counts as a read if no command tag says that a row was written."""
    call.answer, call.failed = answer.value, bool(answer.error)
    if answer.reads:
        call.reads = True


def is_write(tag: str) -> bool:
    """Return whether a command tag says that a row was written."""
    words = tag.split()
    return bool(words) and words[0] in WRITE_COMMANDS and words[-1] != "0"


def _is_read(tag: str) -> bool:
    """Return whether a command tag says that no row was written."""
    words = tag.split()
    return len(words) > 1 and (words[0] in ("SELECT", "FETCH") or words[-1] == "0")
