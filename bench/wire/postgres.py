"""PostgreSQL's wire protocol, version 3: the messages of both directions, and the statements in a text of SQL.

A message is split off in linear time and within a bound. Its bytes are kept as they came.
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
    """Bytes are no message of this protocol. The text says why."""


@dataclass(frozen=True)
class WireMessage:
    """One message. `kind` is its first byte, and `raw` all of it."""

    kind: bytes
    raw: bytes

    @property
    def body(self) -> bytes:
        return self.raw[5:]


class MessageReader:
    """Splits the bytes of one direction into messages, in whatever pieces they come. `size` counts those that wait."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def size(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> None:
        self._data += data

    def take(self) -> WireMessage | None:
        """Return the next message; None until it is whole. Raises MalformedMessage."""
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
        """Yield the messages that are whole with these bytes. Raises MalformedMessage."""
        self.feed(data)
        while message := self.take():
            yield message


@dataclass(frozen=True)
class StartPacket:
    """The packet that begins a connection, or that comes before it.

    code        `TLS`, `GSS`, `CANCEL`, or the protocol's version
    parameters  what a client says of itself, such as `user` and `database`
    key         of a cancel request: the session and its secret
    """

    code: int
    parameters: Mapping[str, str]
    key: bytes = b""


def start_size(head: bytes) -> int:
    """Return the size of a start packet, of which these are the first four bytes. Raises MalformedMessage."""
    size = int.from_bytes(head)
    if not 8 <= size <= LONGEST_START:
        raise MalformedMessage("what begins the connection is no packet of PostgreSQL's, version 3")
    return size


def start_of(raw: bytes) -> StartPacket:
    """Return a whole start packet. Raises MalformedMessage."""
    code, rest = int.from_bytes(raw[4:8]), raw[8:]
    if code in (TLS, GSS):
        return StartPacket(code, {})
    if code == CANCEL:
        return StartPacket(code, {}, rest)
    if code >> 16 != _VERSION:
        raise MalformedMessage(f"it speaks version {code >> 16}.{code & 0xFFFF} of PostgreSQL's protocol")
    words = [_text(word) for word in rest.split(b"\0")]
    return StartPacket(code, dict(zip(words[:-2:2], words[1:-1:2], strict=False)))


def made_start(packet: StartPacket) -> bytes:
    """Return the bytes of a start packet."""
    words = b"".join(part.encode("utf-8", "surrogateescape") + b"\0" for pair in packet.parameters.items() for part in pair)
    return _with_size(packet.code.to_bytes(4) + (words + b"\0" if packet.code >> 16 == _VERSION else packet.key))


def made(kind: bytes, body: bytes = b"") -> WireMessage:
    """Return the message of a kind with this body."""
    return WireMessage(kind, kind + _with_size(body))


def made_error(severity: str, code: str, text: str) -> WireMessage:
    """Return a server's error."""
    fields = {b"S": severity, b"V": severity, b"C": code, b"M": text}
    return made(b"E", b"".join(name + value.encode() + b"\0" for name, value in fields.items()) + b"\0")


def made_query(sql: str) -> WireMessage:
    return made(b"Q", sql.encode() + b"\0")


def made_row(cells: list[bytes | None]) -> WireMessage:
    """Return a row of an answer."""
    held = (b"\xff\xff\xff\xff" if cell is None else _with_length(cell) for cell in cells)
    return made(b"D", len(cells).to_bytes(2) + b"".join(held))


def cells_of(row: WireMessage) -> list[bytes | None]:
    """Return the cells of a row. Raises MalformedMessage."""
    return _Fields(row.body).cells()


def texts_of(message: WireMessage, count: int) -> list[str]:
    """Return the first texts of a message's body. Raises MalformedMessage."""
    fields = _Fields(message.body)
    return [fields.text() for _ in range(count)]


def error_of(message: WireMessage) -> dict[str, str]:
    """Return the fields of an error: `C` is its code, `M` its text."""
    return {part[:1].decode("latin-1"): _text(part[1:]) for part in message.body.split(b"\0") if part}


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
    """What a Bind message says: its portal, the prepared statement, and the values of the parameters."""

    portal: str
    statement: str
    values: list[bytes | None]


def bound_by(message: WireMessage) -> BoundPortal:
    """Return what a Bind message says. Raises MalformedMessage."""
    fields = _Fields(message.body)
    portal, statement = fields.text(), fields.text()
    fields.part(2 * fields.number(2))
    return BoundPortal(portal, statement, fields.cells())


class _Fields:
    """Reads the fields of a body, one after another. Raises MalformedMessage if it ends too soon."""

    def __init__(self, body: bytes):
        self._body, self._at = body, 0

    def part(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._body):
            raise MalformedMessage("a message ends too soon")
        self._at += count
        return self._body[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.part(size), signed=size == 4)

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise MalformedMessage("a text in a message does not end")
        text = _text(self._body[self._at : end])
        self._at = end + 1
        return text

    def cells(self) -> list[bytes | None]:
        return [None if (size := self.number(4)) == -1 else self.part(size) for _ in range(self.number(2))]


@dataclass(frozen=True)
class SqlStatement:
    """One statement of SQL.

    text   all of it
    bare   it without its comments, and without what stands in its quoted texts
    verb   its first word, in capitals; "" if it has none
    name   the verb, and the first table, function or other thing that it names
    """

    text: str
    bare: str

    @property
    def verb(self) -> str:
        match = _WORDS.match(self.bare.lstrip("( \t\r\n")[:_BARE])
        return match[1].upper() if match else ""

    @property
    def name(self) -> str:
        bare = self.bare.lstrip("( \t\r\n")[:_BARE]
        table, words = _TABLE.search(bare), _WORDS.match(bare)
        what = table[1] if table else (words and words[2]) or ""
        return f"{self.verb} {what}".strip()


def reaches_out(sql: str) -> bool:
    """Return whether a text has a statement that acts on the whole server, or starts a program on its host. Functions and
    blocks of code are not looked into."""
    statements = statements_of(sql)
    is_split = len(sql) <= LONGEST_SPLIT and len(statements) < MOST_STATEMENTS
    return any(_REACHES_OUT.match(each.bare) for each in statements) or bool(not is_split and _REACHES_OUT_BEHIND.search(sql))


def statements_of(sql: str) -> list[SqlStatement]:
    """Return the statements that a text holds, as the server would split it, within a bound."""
    statements, bare, start, at = list[SqlStatement](), list[str](), 0, 0

    def end(stop: int) -> None:
        if (kept := "".join(bare)).strip():
            statements.append(SqlStatement(sql[start:stop].strip(), kept.strip()))
        bare.clear()

    while at < LONGEST_SPLIT and len(statements) < MOST_STATEMENTS - 1 and (match := _QUOTES.search(sql, at)):
        bare.append(sql[at : match.start()])
        mark, at = match[0], match.end()
        if mark == ";":
            end(match.start())
            start = at
        elif mark == "/*":
            at = _comment_end(sql, at)
            bare.append(" ")
        elif mark == '"':
            at = _after(sql, '"', at)
            bare.append(sql[match.start() : at])
        elif mark.startswith("--"):
            bare.append(" ")
        elif mark in ("e'", "E'"):
            escaped = _ESCAPED_END.match(sql, at)
            at = escaped.end() if escaped else len(sql)
            bare.append("''")
        else:
            at = _after(sql, mark, at)
            bare.append("''")
    bare.append(sql[at:])
    end(len(sql))
    return statements


def _after(sql: str, mark: str, at: int) -> int:
    end = sql.find(mark, at)
    return len(sql) if end < 0 else end + len(mark)


def _comment_end(sql: str, at: int) -> int:
    """Return where a comment ends, in which others may stand."""
    depth = 1
    while depth and (match := _COMMENT_ENDS.search(sql, at)):
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
    return len(sql) if depth else at


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _with_size(body: bytes) -> bytes:
    return (len(body) + 4).to_bytes(4) + body


def _with_length(cell: bytes) -> bytes:
    return struct.pack("!i", len(cell)) + cell
