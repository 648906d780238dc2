"""The body of an HTTP message that the gateway forwards. It is kept whole up to a bound, and parsed up to a smaller bound."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from urllib.parse import parse_qsl

from pydantic import JsonValue
from pydantic_core import from_json

from bench.common.bounds import excess_in, is_too_deep
from bench.wire.inflater import GZIP, Inflater

MAX_MEMORY_BYTES = 2**18
"""A longer body is kept in a temporary file."""
MAX_BODY_BYTES = 2**30
"""The longest body that is kept. A longer body raises BodyTooLarge."""
MAX_PARSED_BYTES = 2**20
"""The longest body that is parsed, before and after decompression, unless the caller sets another bound."""
MAX_FIELDS = 1000


class BodyTooLarge(Exception):
    """A body has more bytes than `MAX_BODY_BYTES`."""


class Body:
    """A body as it was received. `size` is the number of its bytes on the wire. `length` is the number of bytes of its content,
    which is without the framing of chunks."""

    def __init__(self, max_parsed: int = MAX_PARSED_BYTES) -> None:
        self._max_parsed = max_parsed
        self._file = SpooledTemporaryFile(MAX_MEMORY_BYTES)  # noqa: SIM115  closed by `close`
        self._data, self._digest, self.size, self.length = bytearray(), hashlib.sha256(), 0, 0

    def add(self, raw: bytes, data: bytes) -> None:
        """Add bytes from the wire and the content in them. Raises BodyTooLarge, or OSError if the disk is full."""
        self.size += len(raw)
        if self.size > MAX_BODY_BYTES:
            raise BodyTooLarge
        self._file.write(raw)
        self._digest.update(data)
        self.length += len(data)
        if len(self._data) <= self._max_parsed:
            self._data += data

    @property
    def data(self) -> bytes | None:
        """The content of the body; None if it is too long to be parsed."""
        return bytes(self._data) if self.length <= self._max_parsed else None

    def last(self, count: int) -> bytes:
        """Return the last `count` bytes of the content. Of a body that is too long to be parsed, only the beginning counts."""
        return bytes(self._data[-count:])

    def plain(self, encoding: str) -> bytes | None:
        """Return the content without its Content-Encoding; None if it cannot be decoded, or is too long."""
        if self.data is None:
            return None
        decoder = ContentDecoder(encoding, self._max_parsed)
        plain = decoder.add(self.data)
        return plain if decoder.is_whole else None

    @property
    def digest(self) -> JsonValue:
        """The length and the SHA-256 of the content, which are recorded if the body is not parsed."""
        return {"bytes": self.length, "sha256": self._digest.hexdigest()}

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes from the wire, in pieces."""
        self._file.seek(0)
        while piece := self._file.read(MAX_MEMORY_BYTES):
            yield piece

    def close(self) -> None:
        self._file.close()


class ContentDecoder:
    """Decodes a body while it arrives, a bounded part at a time, if its Content-Encoding is gzip or deflate.

    is_encoded   whether the body has a Content-Encoding
    is_readable  whether `add` could decode all bytes so far
    """

    def __init__(self, encoding: str, max_parsed: int = MAX_PARSED_BYTES):
        coding = encoding.strip().lower()
        self.is_encoded, self._max_parsed = coding not in ("", "identity"), max_parsed
        self._inflater = _inflater_of(coding)
        self.is_readable = not self.is_encoded or self._inflater is not None

    def add(self, data: bytes) -> bytes:
        """Return the decoded content of these bytes; b"" if they cannot be decoded."""
        if not self._inflater or not self.is_readable:
            return data if self.is_readable else b""
        try:
            plain = self._inflater.add(data, self._max_parsed + 1)
            self.is_readable = len(plain) <= self._max_parsed
        except zlib.error:
            self.is_readable = False
        return plain if self.is_readable else b""

    @property
    def is_whole(self) -> bool:
        """Whether the body was decoded to its end."""
        return self.is_readable and (self._inflater is None or self._inflater.is_whole)


def _inflater_of(coding: str) -> Inflater | None:
    """Return what decompresses a body with this Content-Encoding; None if nothing does."""
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    return Inflater() if coding == "deflate" else Inflater(GZIP)


def value_of(body: Body, content_type: str, encoding: str) -> JsonValue:
    """Return the content of a body: JSON, the fields of a form, or a text; its length and digest if it is none of these;
    None if it is empty."""
    if not body.length:
        return None
    plain = body.plain(encoding)
    if plain is None:
        return body.digest
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return fields_of(plain.decode("latin-1"))
    value = json_of(plain)
    if value is not None:
        return value
    try:
        return body.digest if kind.startswith(("multipart/", "image/", "audio/", "video/")) else plain.decode()
    except UnicodeDecodeError:
        return body.digest


def fields_of(query: str) -> JsonValue:
    """Return the fields of a query or a form: name -> value, or the list of its values. Text that is no query is returned
    unchanged."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return query or {}
    fields = dict[str, list[JsonValue]]()
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def json_of(text: bytes | str) -> JsonValue:
    """Return the value of a JSON text; None if the text is no JSON, or has more values than the bound."""
    raw = text.encode() if isinstance(text, str) else text
    if excess_in(raw):
        return None
    try:
        value: JsonValue = from_json(raw, allow_inf_nan=False, cache_strings=False)
    except ValueError:
        return None
    return None if is_too_deep(value) else value
