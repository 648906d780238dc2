"""PostgreSQL's wire protocol, version 3: the messages of both directions, and the statements in a text of SQL.

A message is parsed in linear time and within a bound. Its bytes are not changed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LONGEST = 2**26
"""Bytes of the longest message that is read."""
LONGEST_START = 10_000
"""Bytes of the longest packet that begins a connection, as the server bounds it."""
CANCEL, TLS, GSS = 80877102, 80877103, 80877104
_VERSION = 3
_COLUMN_REST = 18
"""Bytes that follow the name of a column in a RowDescription message: table, number, type, size, modifier and format."""
_QUOTES = re.compile(r"--[^\n]*|/\*|(?<![\w$])[eE]'|'|\"|(?<![\w$])\$(?:[^\W\d]\w*)?\$|;")
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_ESCAPED_END = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_NAME = r"(?:\"[^\"]*\"|[^\W\d][\w$]*)(?:\.(?:\"[^\"]*\"|[^\W\d][\w$]*))*"
_TABLE = re.compile(rf"\b(?:INTO|FROM|UPDATE|TABLE|CALL|COPY)\s+(?:ONLY\s+)?({_NAME})", re.IGNORECASE)
_WORDS = re.compile(rf"({_NAME})\s*({_NAME})?")
_BARE = 10_000
"""Characters of a statement in which its name is sought."""
LONGEST_SPLIT, MOST_STATEMENTS = 2**20, 1_000
"""Characters of a text that is split into statements, and the number of these; what comes behind belongs to the last one."""
_OF_SERVER = r"(?:CREATE|ALTER|DROP)\s+(?:DATABASE|ROLE|USER(?!\s+MAPPING\b)|GROUP|SYSTEM|TABLESPACE)\b"
_REACHES_OUT = re.compile(rf"{_OF_SERVER}|COPY\b.*\b(?:TO|FROM)\s+PROGRAM\s*(?:U&)?''", re.IGNORECASE | re.DOTALL)
_REACHES_OUT_BEHIND = re.compile(rf";\s*(?:{_OF_SERVER}|COPY\b[^;]*\b(?:TO|FROM)\s+PROGRAM\b)", re.IGNORECASE)


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
    """Splits the bytes of one direction into messages. The bytes may arrive in any pieces. `size` is the number of unread
    bytes."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def size(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._data += data

    def take(self) -> WireMessage | None:
        """Return the next message; None until it is complete. Raises MalformedMessage."""
        if len(self._data) < 5:
            return None
        size = 1 + int.from_bytes(self._data[1:5])
        if not 5 <= size <= LONGEST:
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

    code        `TLS`, `GSS`, `CANCEL`, or the protocol's version
    parameters  what a client says of itself, such as `user` and `database`
    key         of a cancel request: the session and its secret
    """

    code: int
    parameters: Mapping[str, str]
    key: bytes = b""


def start_size(head: bytes) -> int:
    """Return the size of a start packet from its first four bytes. Raises MalformedMessage."""
    size = int.from_bytes(head)
    if not 8 <= size <= LONGEST_START:
        raise MalformedMessage("what begins the connection is no packet of PostgreSQL's, version 3")
    return size


def parse_start(raw: bytes) -> StartPacket:
    """Parse a complete start packet. Raises MalformedMessage."""
    code, rest = int.from_bytes(raw[4:8]), raw[8:]
    if code in (TLS, GSS):
        return StartPacket(code, {})
    if code == CANCEL:
        return StartPacket(code, {}, rest)
    if code >> 16 != _VERSION:
        raise MalformedMessage(f"it speaks version {code >> 16}.{code & 0xFFFF} of PostgreSQL's protocol")
    words = [_decode(word) for word in rest.split(b"\0")]
    return StartPacket(code, dict(zip(words[:-2:2], words[1:-1:2], strict=False)))


def encode_start(packet: StartPacket) -> bytes:
    """Return the bytes of a start packet."""
    words = b"".join(part.encode("utf-8", "surrogateescape") + b"\0" for pair in packet.parameters.items() for part in pair)
    return _with_size(packet.code.to_bytes(4) + (words + b"\0" if packet.code >> 16 == _VERSION else packet.key))


def made(kind: bytes, body: bytes = b"") -> WireMessage:
    """Return the message of a kind with this body."""
    return WireMessage(kind, kind + _with_size(body))


def make_error(severity: str, code: str, text: str) -> WireMessage:
    """Return an error message of a server."""
    fields = {b"S": severity, b"V": severity, b"C": code, b"M": text}
    return made(b"E", b"".join(name + value.encode() + b"\0" for name, value in fields.items()) + b"\0")


def make_query(sql: str) -> WireMessage:
    """Return a message of the simple protocol with this SQL."""
    return made(b"Q", sql.encode() + b"\0")


def make_row(cells: list[bytes | None]) -> WireMessage:
    """Return a row of a result."""
    held = (b"\xff\xff\xff\xff" if cell is None else _with_length(cell) for cell in cells)
    return made(b"D", len(cells).to_bytes(2) + b"".join(held))


def cells_of(row: WireMessage) -> list[bytes | None]:
    """Return the cells of a row. Raises MalformedMessage."""
    return _Fields(row.body).cells()


def texts_of(message: WireMessage, count: int) -> list[str]:
    """Return the first texts in a message's body. Raises MalformedMessage."""
    fields = _Fields(message.body)
    return [fields.text() for _ in range(count)]


def error_of(message: WireMessage) -> dict[str, str]:
    """Return the fields of an error: `C` is its code, `M` its text."""
    return {part[:1].decode("latin-1"): _decode(part[1:]) for part in message.body.split(b"\0") if part}


def columns_of(message: WireMessage) -> list[str]:
    """Return the names of the columns that a RowDescription message lists. Raises MalformedMessage."""
    fields = _Fields(message.body)
    names = list[str]()
    for _ in range(fields.number(2)):
        names.append(fields.text())
        fields.part(_COLUMN_REST)
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
    portal, statement = fields.text(), fields.text()
    fields.part(2 * fields.number(2))
    return BoundPortal(portal, statement, fields.cells())


class _Fields:
    """Reads the fields of a message's body, one after another. Raises MalformedMessage if the body ends too soon."""

    def __init__(self, body: bytes):
        self._body, self._at = body, 0

    def part(self, count: int) -> bytes:
        """Return the next bytes."""
        if count < 0 or self._at + count > len(self._body):
            raise MalformedMessage("a message ends too soon")
        self._at += count
        return self._body[self._at - count : self._at]

    def number(self, size: int) -> int:
        """Return the next integer."""
        return int.from_bytes(self.part(size), signed=size == 4)

    def text(self) -> str:
        """Return the next text, which ends with a zero byte."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise MalformedMessage("a text in a message does not end")
        text = _decode(self._body[self._at : end])
        self._at = end + 1
        return text

    def cells(self) -> list[bytes | None]:
        """Return a list of values, each with its length; None is NULL."""
        return [None if (size := self.number(4)) == -1 else self.part(size) for _ in range(self.number(2))]


@dataclass(frozen=True)
class SqlStatement:
    """One SQL statement.

    text   the whole text
    bare   the text without comments and without the content of quoted texts
    """

    text: str
    bare: str

    @property
    def verb(self) -> str:
        """The first word in capitals; "" if there is none."""
        match = _WORDS.match(self.bare.lstrip("( \t\r\n")[:_BARE])
        return match[1].upper() if match else ""

    @property
    def name(self) -> str:
        """The verb, and the first table, function or other object in the statement."""
        bare = self.bare.lstrip("( \t\r\n")[:_BARE]
        table, words = _TABLE.search(bare), _WORDS.match(bare)
        object_name = table[1] if table else (words and words[2]) or ""
        return f"{self.verb} {object_name}".strip()


def reaches_out(sql: str) -> bool:
    """Return whether a text has a statement that acts on the whole server, or starts a program on its host. Functions and
    blocks of code are not searched."""
    statements = statements_of(sql)
    is_split = len(sql) <= LONGEST_SPLIT and len(statements) < MOST_STATEMENTS
    return any(_REACHES_OUT.match(statement.bare) for statement in statements) or bool(
        not is_split and _REACHES_OUT_BEHIND.search(sql)
    )


def statements_of(sql: str) -> list[SqlStatement]:
    """Return the statements in a text, split as the server would split it, within a bound."""
    statements, bare, start, position = list[SqlStatement](), list[str](), 0, 0

    def end(stop: int) -> None:
        """End the current statement at this position."""
        if (bare_text := "".join(bare)).strip():
            statements.append(SqlStatement(sql[start:stop].strip(), bare_text.strip()))
        bare.clear()

    while position < LONGEST_SPLIT and len(statements) < MOST_STATEMENTS - 1 and (match := _QUOTES.search(sql, position)):
        bare.append(sql[position : match.start()])
        mark, position = match[0], match.end()
        if mark == ";":
            end(match.start())
            start = position
        elif mark == "/*":
            position = _comment_end(sql, position)
            bare.append(" ")
        elif mark == '"':
            position = _position_after(sql, '"', position)
            bare.append(sql[match.start() : position])
        elif mark.startswith("--"):
            bare.append(" ")
        elif mark in ("e'", "E'"):
            escaped = _ESCAPED_END.match(sql, position)
            position = escaped.end() if escaped else len(sql)
            bare.append("''")
        else:
            position = _position_after(sql, mark, position)
            bare.append("''")
    bare.append(sql[position:])
    end(len(sql))
    return statements


def _position_after(sql: str, mark: str, position: int) -> int:
    """Return the position after the next mark, or the end of the text."""
    end = sql.find(mark, position)
    return len(sql) if end < 0 else end + len(mark)


def _comment_end(sql: str, position: int) -> int:
    """Return the end of a comment, which may contain other comments."""
    depth = 1
    while depth and (match := _COMMENT_ENDS.search(sql, position)):
        depth += 1 if match[0] == "/*" else -1
        position = match.end()
    return len(sql) if depth else position


def _decode(data: bytes) -> str:
    """Decode the bytes of a text."""
    return data.decode("utf-8", "surrogateescape")


def _with_size(body: bytes) -> bytes:
    """Return a body with its size before it."""
    return (len(body) + 4).to_bytes(4) + body


def _with_length(cell: bytes) -> bytes:
    """Return a cell with its length before it."""
    return struct.pack("!i", len(cell)) + cell
