"""PostgreSQL's wire protocol, version 3: the messages of both directions, and the statements in a text of SQL.

A message is parsed in linear time and within a bound. Its bytes are not changed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_MESSAGE_BYTES = 2**26
MAX_START_BYTES = 10_000
"""The longest packet that begins a connection. PostgreSQL has the same bound."""
CANCEL_CODE, TLS_CODE, GSS_CODE = 80877102, 80877103, 80877104
_MAJOR_VERSION = 3
_COLUMN_SUFFIX_BYTES = 18
"""The size of what follows a column's name in a RowDescription message: table, number, type, size, modifier and format."""
_SQL_MARK = re.compile(r"--[^\n]*|/\*|(?<![\w$])[eE]'|'|\"|(?<![\w$])\$(?:[^\W\d]\w*)?\$|;")
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_ESCAPED_END = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_NAME = r"(?:\"[^\"]*\"|[^\W\d][\w$]*)(?:\.(?:\"[^\"]*\"|[^\W\d][\w$]*))*"
_TABLE = re.compile(rf"\b(?:INTO|FROM|UPDATE|TABLE|CALL|COPY)\s+(?:ONLY\s+)?({_NAME})", re.IGNORECASE)
_WORDS = re.compile(rf"({_NAME})\s*({_NAME})?")
_NAME_SEARCH_CHARS = 10_000
"""Characters of a statement that are searched for its name."""
MAX_SPLIT_CHARS, MAX_STATEMENTS = 2**20, 1_000
"""Characters of a text that are split into statements, and the most statements. The rest belongs to the last statement."""
_SERVER_COMMAND = r"(?:CREATE|ALTER|DROP)\s+(?:DATABASE|ROLE|USER(?!\s+MAPPING\b)|GROUP|SYSTEM|TABLESPACE)\b"
_BEYOND_DATABASE = re.compile(rf"{_SERVER_COMMAND}|COPY\b.*\b(?:TO|FROM)\s+PROGRAM\s*(?:U&)?''", re.IGNORECASE | re.DOTALL)
_BEYOND_DATABASE_LATER = re.compile(rf";\s*(?:{_SERVER_COMMAND}|COPY\b[^;]*\b(?:TO|FROM)\s+PROGRAM\b)", re.IGNORECASE)


class MalformedMessage(ValueError):
    """The bytes are no message of this protocol. The text gives the reason."""


@dataclass(frozen=True)
class WireMessage:
    """A message. `kind` is its first byte, and `raw` all its bytes."""

    kind: bytes
    raw: bytes

    @property
    def body(self) -> bytes:
        """The bytes after the kind and the length."""
        return self.raw[5:]


class MessageReader:
    """Splits the bytes of one direction into messages. The bytes may arrive in any pieces. `size` is the number of bytes
    that are not yet part of a returned message."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def size(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._data += data

    def take(self) -> WireMessage | None:
        """Remove the next message from the buffer and return it; None if it is not complete yet. Raises MalformedMessage."""
        if len(self._data) < 5:
            return None
        size = 1 + int.from_bytes(self._data[1:5])
        if not 5 <= size <= MAX_MESSAGE_BYTES:
            raise MalformedMessage(f"a message is said to have {size - 1} bytes")
        if len(self._data) < size:
            return None
        raw = bytes(self._data[:size])
        del self._data[:size]
        return WireMessage(raw[:1], raw)

    def messages(self, data: bytes) -> Iterator[WireMessage]:
        """Add bytes, and yield all complete messages. Raises MalformedMessage."""
        self.feed(data)
        while message := self.take():
            yield message


@dataclass(frozen=True)
class StartPacket:
    """The packet that begins a connection, or that precedes it (a request for TLS or for cancelling).

    code        `TLS_CODE`, `GSS_CODE`, `CANCEL_CODE`, or the protocol's version
    parameters  the client's settings, such as `user` and `database`
    key         in a cancel request the id and the secret of the session to cancel; otherwise b""
    """

    code: int
    parameters: Mapping[str, str]
    key: bytes = b""


def start_size(head: bytes) -> int:
    """Return the size of a start packet from its first four bytes. Raises MalformedMessage."""
    size = int.from_bytes(head)
    if not 8 <= size <= MAX_START_BYTES:
        raise MalformedMessage("what begins the connection is no packet of PostgreSQL's, version 3")
    return size


def parse_start(raw: bytes) -> StartPacket:
    """Parse a complete start packet. Raises MalformedMessage."""
    code, rest = int.from_bytes(raw[4:8]), raw[8:]
    if code in (TLS_CODE, GSS_CODE):
        return StartPacket(code, {})
    if code == CANCEL_CODE:
        return StartPacket(code, {}, rest)
    if code >> 16 != _MAJOR_VERSION:
        raise MalformedMessage(f"it speaks version {code >> 16}.{code & 0xFFFF} of PostgreSQL's protocol")
    words = [_decode(word) for word in rest.split(b"\0")]
    return StartPacket(code, dict(zip(words[:-2:2], words[1:-1:2], strict=False)))


def encode_start(packet: StartPacket) -> bytes:
    """Return the bytes of a start packet."""
    if packet.code >> 16 != _MAJOR_VERSION:
        return _with_size(packet.code.to_bytes(4) + packet.key)
    words = [part.encode("utf-8", "surrogateescape") + b"\0" for pair in packet.parameters.items() for part in pair]
    return _with_size(packet.code.to_bytes(4) + b"".join(words) + b"\0")


def make_message(kind: bytes, body: bytes = b"") -> WireMessage:
    """Return a message of this kind (its first byte) with this body."""
    return WireMessage(kind, kind + _with_size(body))


def make_error(severity: str, code: str, text: str) -> WireMessage:
    """Return an error message of a server. `severity` is ERROR or FATAL, and `code` an SQLSTATE."""
    fields = {b"S": severity, b"V": severity, b"C": code, b"M": text}
    return make_message(b"E", b"".join(name + value.encode() + b"\0" for name, value in fields.items()) + b"\0")


def make_query(sql: str) -> WireMessage:
    """Return a message of the simple protocol with this SQL."""
    return make_message(b"Q", sql.encode() + b"\0")


def make_row(cells: list[bytes | None]) -> WireMessage:
    """Return a row of a result."""
    encoded_cells = (b"\xff\xff\xff\xff" if cell is None else struct.pack("!i", len(cell)) + cell for cell in cells)
    return make_message(b"D", len(cells).to_bytes(2) + b"".join(encoded_cells))


def cells_of(row: WireMessage) -> list[bytes | None]:
    """Return the cells of a row. Raises MalformedMessage."""
    return _Fields(row.body).next_cells()


def first_texts(message: WireMessage, count: int) -> list[str]:
    """Return the first `count` texts in a message's body. Raises MalformedMessage."""
    fields = _Fields(message.body)
    return [fields.next_text() for _ in range(count)]


def error_of(message: WireMessage) -> dict[str, str]:
    """Return the fields of an error message: `C` is its SQLSTATE, `M` its text."""
    return {part[:1].decode("latin-1"): _decode(part[1:]) for part in message.body.split(b"\0") if part}


def columns_of(message: WireMessage) -> list[str]:
    """Return the names of the columns that a RowDescription message lists. Raises MalformedMessage."""
    fields = _Fields(message.body)
    names = list[str]()
    for _ in range(fields.next_integer(2)):
        names.append(fields.next_text())
        fields.next_bytes(_COLUMN_SUFFIX_BYTES)
    return names


@dataclass(frozen=True)
class BoundPortal:
    """The content of a Bind message: its portal, the prepared statement, and the values of the parameters."""

    portal: str
    statement: str
    values: list[bytes | None]


def parse_bind(message: WireMessage) -> BoundPortal:
    """Parse a Bind message. Raises MalformedMessage."""
    fields = _Fields(message.body)
    portal, statement = fields.next_text(), fields.next_text()
    fields.next_bytes(2 * fields.next_integer(2))
    return BoundPortal(portal, statement, fields.next_cells())


class _Fields:
    """Reads the fields of a message's body, one after another. Raises MalformedMessage if the body ends too soon."""

    def __init__(self, body: bytes):
        self._body, self._at = body, 0

    def next_bytes(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        if count < 0 or self._at + count > len(self._body):
            raise MalformedMessage("a message ends too soon")
        self._at += count
        return self._body[self._at - count : self._at]

    def next_integer(self, size: int) -> int:
        """Return the next integer, of `size` bytes. An integer of four bytes has a sign."""
        return int.from_bytes(self.next_bytes(size), signed=size == 4)

    def next_text(self) -> str:
        """Return the next text, which ends with a zero byte."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise MalformedMessage("a text in a message does not end")
        text = _decode(self._body[self._at : end])
        self._at = end + 1
        return text

    def next_cells(self) -> list[bytes | None]:
        """Return the next list of values, which begins with their number; None is NULL."""
        return [None if (size := self.next_integer(4)) == -1 else self.next_bytes(size) for _ in range(self.next_integer(2))]


@dataclass(frozen=True)
class SqlStatement:
    """One SQL statement.

    text      the whole text
    skeleton  the text without comments and without the content of quoted texts
    """

    text: str
    skeleton: str

    @property
    def verb(self) -> str:
        """The first word in capitals; "" if there is none."""
        match = _WORDS.match(self.skeleton.lstrip("( \t\r\n")[:_NAME_SEARCH_CHARS])
        return match[1].upper() if match else ""

    @property
    def name(self) -> str:
        """The verb, and the first table, function or other object in the statement."""
        skeleton = self.skeleton.lstrip("( \t\r\n")[:_NAME_SEARCH_CHARS]
        table, words = _TABLE.search(skeleton), _WORDS.match(skeleton)
        object_name = table[1] if table else (words and words[2]) or ""
        return f"{self.verb} {object_name}".strip()


def acts_beyond_database(sql: str) -> bool:
    """Return whether SQL has a statement that acts on the whole server, or starts a program on its host. Functions and blocks
    of code are not searched."""
    statements = statements_of(sql)
    is_split = len(sql) <= MAX_SPLIT_CHARS and len(statements) < MAX_STATEMENTS
    return any(_BEYOND_DATABASE.match(statement.skeleton) for statement in statements) or bool(
        not is_split and _BEYOND_DATABASE_LATER.search(sql)
    )


def statements_of(sql: str) -> list[SqlStatement]:
    """Return the statements in SQL, split as the server would split it. Text beyond `MAX_SPLIT_CHARS` or `MAX_STATEMENTS`
    belongs to the last statement."""
    statements, skeleton, start, position = list[SqlStatement](), list[str](), 0, 0

    def finish_statement(stop: int) -> None:
        """Add the current statement, which ends at this position, unless it is blank."""
        if (skeleton_text := "".join(skeleton)).strip():
            statements.append(SqlStatement(sql[start:stop].strip(), skeleton_text.strip()))
        skeleton.clear()

    # The skeleton of a statement is its text without comments and with '' in place of each string.
    while position < MAX_SPLIT_CHARS and len(statements) < MAX_STATEMENTS - 1 and (match := _SQL_MARK.search(sql, position)):
        skeleton.append(sql[position : match.start()])
        mark, position = match[0], match.end()
        if mark == ";":
            finish_statement(match.start())
            start = position
        elif mark == "/*":
            position = _comment_end(sql, position)
            skeleton.append(" ")
        elif mark == '"':
            position = _position_after(sql, '"', position)
            skeleton.append(sql[match.start() : position])
        elif mark.startswith("--"):
            skeleton.append(" ")
        elif mark in ("e'", "E'"):
            escaped = _ESCAPED_END.match(sql, position)
            position = escaped.end() if escaped else len(sql)
            skeleton.append("''")
        else:
            position = _position_after(sql, mark, position)
            skeleton.append("''")
    skeleton.append(sql[position:])
    finish_statement(len(sql))
    return statements


def _position_after(sql: str, mark: str, position: int) -> int:
    """Return the position after the next `mark`, or the end of the text if there is none."""
    end = sql.find(mark, position)
    return len(sql) if end < 0 else end + len(mark)


def _comment_end(sql: str, position: int) -> int:
    """Return the position after a comment, whose `/*` ends at `position`. It may contain other comments."""
    depth = 1
    while depth and (match := _COMMENT_ENDS.search(sql, position)):
        depth += 1 if match[0] == "/*" else -1
        position = match.end()
    return len(sql) if depth else position


def _decode(data: bytes) -> str:
    """Decode UTF-8. Invalid bytes become surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _with_size(body: bytes) -> bytes:
    """Return a message's body after its size, which counts itself (4 bytes)."""
    return (len(body) + 4).to_bytes(4) + body
