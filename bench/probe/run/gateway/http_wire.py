"""HTTP/1.1 messages as bytes: heads keep their lines unchanged, and the bytes that carried a body are kept with its content."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

MAX_HEAD_BYTES = 2**16
"""This bound also holds for a trailer."""
MAX_CHUNK_LINE_BYTES = 2**12
"""The longest line between two chunks."""
MAX_HEAD_LINES = 200
READ_BYTES = 2**16
"""Bytes that are read at a time."""
_BLANK_LINE = re.compile(rb"\n\r?\n")
_FIRST_LINE = re.compile(rb"(?:HTTP/1\.[01] ([1-9]\d\d)(?: .*)?|([!-~]{1,32}) ([!-~\x80-\xff]+) HTTP/1\.[01])\r?\n?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_BODILESS_STATUSES = (204, 304)


class BadMessage(Exception):
    """The bytes are no HTTP/1.1 message. The text says why, in a line that quotes none of them."""


@dataclass(frozen=True)
class Head:
    """The head of a request or a response.

    first    its first line, with the end of the line
    fields   (name in lower case, value, the field's lines on the wire), in their order
    """

    first: bytes
    fields: tuple[tuple[str, str, bytes], ...]

    @cached_property
    def raw(self) -> bytes:
        return b"".join([self.first, *(line for _, _, line in self.fields), b"\r\n"])

    @property
    def method(self) -> str:
        return self.first.split(b" ", 2)[0].decode()

    @property
    def target(self) -> bytes:
        return self.first.split(b" ", 2)[1]

    @property
    def status(self) -> int:
        return int(self.first[9:12])

    @property
    def keeps_open(self) -> bool:
        """Whether the connection remains open after this message."""
        words = {word.strip().lower() for word in ",".join(self.values("connection")).split(",")}
        return "keep-alive" in words if b"HTTP/1.0" in self.first else "close" not in words

    def values(self, name: str) -> list[str]:
        return [value for field_name, value, _ in self.fields if field_name == name]

    def get(self, name: str, default: str = "") -> str:
        return next(iter(self.values(name)), default)

    def without(self, *names: str) -> Head:
        return replace(self, fields=tuple(field for field in self.fields if field[0] not in names))

    def with_fields(self, values: Mapping[str, str]) -> Head:
        """Return a head with these values: a field of this name gets the new value, and a new field is added at the end."""
        fields, new_values = list(self.fields), dict(values)
        for index, (name, _, line) in enumerate(self.fields):
            if name in new_values:
                fields[index] = _field(line.split(b":", 1)[0].decode(), new_values.pop(name))
        return replace(self, fields=(*fields, *(_field(name.title(), value) for name, value in new_values.items())))

    def mapping(self) -> Mapping[str, str]:
        """Return the first value of each field, by its capitalized name such as `Sec-Fetch-Site`."""
        return {name.title(): self.get(name) for name, _, _ in self.fields}


def _field(name: str, value: str) -> tuple[str, str, bytes]:
    return name.lower(), value, f"{name}: {value}\r\n".encode("latin-1")


def head_of(raw: bytes) -> Head:
    """Parse a head with its empty line. Raises BadMessage."""
    first, *lines = [line + b"\n" for line in raw.split(b"\n")][:-1]
    if lines and not lines[-1].strip(b"\r\n"):
        lines.pop()
    if not _FIRST_LINE.fullmatch(first):
        raise BadMessage("the first line is no request line or status line of HTTP/1.1")
    if len(lines) > MAX_HEAD_LINES:
        raise BadMessage(f"a head of more than {MAX_HEAD_LINES} lines")
    fields = list[tuple[str, str, bytes]]()
    for line in lines:
        if line[:1] in b" \t" and fields:  # it continues the field of the line before
            name, value, line_before = fields.pop()
            fields.append((name, f"{value} {line.strip().decode('latin-1')}", line_before + line))
            continue
        name_bytes, colon, value_bytes = line.partition(b":")
        if not colon or not _NAME.fullmatch(name_bytes) or b"\r" in line.rstrip(b"\r\n") or b"\0" in line:
            raise BadMessage("a line of the head is no field")
        fields.append((name_bytes.decode().lower(), value_bytes.strip().decode("latin-1"), line))
    return Head(first, tuple(fields))


def make_head(first: str, fields: Mapping[str, str]) -> Head:
    """Return a head with this first line, without its line end, and these fields."""
    return Head(f"{first}\r\n".encode("latin-1"), tuple(_field(name, value) for name, value in fields.items()))


class Framing:
    """Finds the end of a body in the bytes that follow its head, while they arrive.

    length    the number of bytes of the body; None if it comes in chunks, or ends with the connection
    is_whole  whether its last byte has arrived
    """

    def __init__(self, length: int | None = None, *, chunked: bool = False):
        self.length, self.is_chunked = length, chunked
        self.is_whole = length == 0
        self._remaining = 0 if chunked else length
        self._line, self._state, self._trailer_bytes = b"", "size", 0

    @property
    def ends_with_connection(self) -> bool:
        return self.length is None and not self.is_chunked

    def feed(self, piece: bytes) -> tuple[bytes, int]:
        """Return the content in a piece of bytes, and how many of the bytes belong to this body. Raises BadMessage."""
        if self.is_chunked:
            return self._feed_chunks(piece)
        if self._remaining is None:
            return piece, len(piece)
        data = piece[: self._remaining]
        self._remaining -= len(data)
        self.is_whole = not self._remaining
        return data, len(data)

    def note_connection_end(self) -> None:
        """Note that the connection has closed. Raises BadMessage if the body is incomplete."""
        if not self.is_whole and not self.ends_with_connection:
            raise BadMessage("the connection ended within a body")
        self.is_whole = True

    def _feed_chunks(self, piece: bytes) -> tuple[bytes, int]:
        """Return what `feed` returns, for bytes of a chunked body."""
        data, position = list[bytes](), 0
        while position < len(piece) and not self.is_whole:
            if self._remaining:
                data.append(piece[position : position + self._remaining])
                self._remaining -= len(data[-1])
                position += len(data[-1])
                continue
            end = piece.find(b"\n", position)
            part = piece[position : end + 1 if end >= 0 else len(piece)]
            self._line += part
            position += len(part)
            if len(self._line) > MAX_CHUNK_LINE_BYTES:
                raise BadMessage("a line between two chunks is too long")
            if end >= 0:
                line, self._line = self._line.rstrip(b"\r\n"), b""
                self._feed_line(line)
        return b"".join(data), position

    def _feed_line(self, line: bytes) -> None:
        """Handle a line between two chunks: a chunk's size, its end, or a trailer. Raises BadMessage."""
        match self._state:
            case "size":
                if not (size_match := _CHUNK_SIZE.fullmatch(line)):
                    raise BadMessage("a chunk without its size")
                self._remaining = int(size_match[1], 16)
                self._state = "after" if self._remaining else "trailer"
            case "after":
                if line:
                    raise BadMessage("a chunk is longer than its size")
                self._state = "size"
            case _:
                self._trailer_bytes += len(line) + 1
                if self._trailer_bytes > MAX_HEAD_BYTES:
                    raise BadMessage("a trailer that is too long")
                self.is_whole = not line


def framing_of(head: Head, method: str = "") -> Framing:
    """Return how the body after this head is framed. For a response, `method` is the method of its request. Raises
    BadMessage if two parsers could disagree about the end of the body."""
    if method and (method == "HEAD" or head.status < 200 or head.status in _BODILESS_STATUSES):
        return Framing(0)  # a response without a body
    codings = [word.strip().lower() for word in ",".join(head.values("transfer-encoding")).split(",") if word.strip()]
    lengths = {length.strip() for value in head.values("content-length") for length in value.split(",")}
    if codings and (not method and (lengths or codings[-1] != "chunked")):
        raise BadMessage("a request whose body's end is not certain")
    if codings:
        return Framing(chunked=codings[-1] == "chunked")
    if lengths:
        [length, *other_lengths] = lengths
        if other_lengths or not _LENGTH.fullmatch(length):
            raise BadMessage("Content-Length is not one number")
        return Framing(int(length))
    return Framing(None if method else 0)  # without fields a response ends with the connection, and a request has no body


def chunk(data: bytes) -> bytes:
    """Return data as one chunk of a body; b"" for no data, since an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"


class Wire:
    """One HTTP connection: between the agent and the gateway, or between the gateway and a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader, self._writer = reader, writer
        self._buffer = b""
        writer.transport.set_write_buffer_limits(high=0)  # `send` then returns once the kernel has every byte

    async def _read_more(self) -> bool:
        """Read some bytes into the buffer. Return whether there were any before the connection closed."""
        piece = await self._reader.read(READ_BYTES)
        self._buffer += piece
        return bool(piece)

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent on the connection: it is not closed, and nothing unexpected was received."""
        return not (self._buffer or self._reader.at_eof() or self._reader.exception() or self._writer.is_closing())

    async def head(self) -> Head | None:
        """Return the head of the next message; None if the connection closes before its first byte. Raises BadMessage,
        ConnectionError."""
        searched = 0
        while True:
            self._buffer = self._buffer.lstrip(b"\r\n") if not searched else self._buffer
            if end := _BLANK_LINE.search(self._buffer, max(0, searched - 3)):
                raw, self._buffer = self._buffer[: end.end()], self._buffer[end.end() :]
                if len(raw) > MAX_HEAD_BYTES:
                    raise BadMessage("a head that is too long")
                return head_of(raw)
            searched = len(self._buffer)
            if searched > MAX_HEAD_BYTES:
                raise BadMessage("a head that is too long")
            if not await self._read_more():
                if self._buffer:
                    raise BadMessage("the connection ended within a head")
                return None

    async def piece(self, framing: Framing) -> tuple[bytes, bytes] | None:
        """Return the next part of a body: its bytes on the wire, and the content in them; None at its end. Raises
        BadMessage, ConnectionError."""
        if framing.is_whole:
            return None
        if not self._buffer and not await self._read_more():
            framing.note_connection_end()
            return None
        piece, self._buffer = self._buffer, b""
        data, used = framing.feed(piece)
        self._buffer = piece[used:]
        return piece[:used], data

    async def wait_until_closed(self) -> None:
        """Wait until the other side closes the connection. Bytes that arrive until then are kept, and beyond a bound no more
        are read: the wait then does not end."""
        try:
            while len(self._buffer) <= MAX_HEAD_BYTES:
                if not await self._read_more():
                    return
        except ConnectionError:
            return
        await asyncio.Event().wait()

    async def send(self, data: bytes) -> None:
        """Send bytes, and return once the kernel has all of them. Raises ConnectionError."""
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        """Reset the connection: the other side's next read fails."""
        if sock := self._writer.get_extra_info("socket"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()
