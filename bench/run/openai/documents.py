"""Parse the JSON document in a body, and accept what endpoints write against the standard: control characters within texts, NaN
and Infinity (as null), numbers of any length, and any text after the document.

The size of the body is limited (`bench.run.openai.bodies`), and so is its number of values, since a value needs only a few
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # typeshed knows C's alone
from typing import Any, Literal

MAX_VALUES = 200_000
"""The most values in one document."""
MAX_VALUES_WITH_LOCK = 2**14
"""A document with more values is read by Python's scanner. The C scanner holds the interpreter's lock, which stops all threads,
until it has read everything."""
MAX_PARTIAL_CHARS = 8
"""Fewer characters than this can be the rest of a value, such as `false`, or of an escape that was cut off."""


def _decoder(parse_int: Callable[[str], Any] | None = None, *, holds_lock: bool) -> json.JSONDecoder:
    """Return a lenient JSON decoder. With `holds_lock`, it uses the C scanner, which holds the interpreter's lock."""
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_int=parse_int)
    if not holds_lock:
        vars(decoder)["scan_once"] = py_make_scanner(decoder)
    return decoder


_DECODERS = {many: (_decoder(holds_lock=not many), _decoder(float, holds_lock=not many)) for many in (False, True)}
"""Whether a document has more than MAX_VALUES_WITH_LOCK values -> its decoder, and a decoder for numbers with more digits than
Python reads."""


class UnreadableDocument(Exception):
    """A body that is no readable JSON object. `why` is `broke_off`, `too_many` (values) or `none` (no object)."""

    def __init__(self, why: Literal["broke_off", "too_many", "none"]):
        super().__init__(why)
        self.why = why


def document_of(body: str) -> dict[str, Any]:
    """Return the object at the beginning of the body, or the first object of a list there. Raises UnreadableDocument."""
    text = body.lstrip("\ufeff \t\r\n")
    values = _count_values(text)
    if values > MAX_VALUES:
        raise UnreadableDocument("too_many")
    try:
        document = _decode(text, *_DECODERS[values > MAX_VALUES_WITH_LOCK])
    except json.JSONDecodeError as error:
        raise UnreadableDocument("broke_off" if _breaks_off(text, error) else "none") from None
    except RecursionError:
        raise UnreadableDocument("none") from None
    if isinstance(document, list):
        document = next((item for item in document if isinstance(item, dict)), None)
    if not isinstance(document, dict):
        raise UnreadableDocument("none")
    return document


def _decode(text: str, decoder: json.JSONDecoder, long_number_decoder: json.JSONDecoder) -> Any:
    """Return the value of the document at the beginning of a text."""
    try:
        return decoder.raw_decode(text)[0]
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number of more digits than Python reads
        return long_number_decoder.raw_decode(text)[0]


def _breaks_off(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether the error is only that the text ends too early."""
    if text[:1] not in ("{", "["):
        return False
    rest = text[error.pos :].strip()
    return not rest or error.msg.startswith("Unterminated") or (len(rest) < MAX_PARTIAL_CHARS and rest[-1] not in "}]")


def _count_values(text: str) -> int:
    """Return the number of values in a JSON text without parsing it: each value but the first follows a separator. Far above
    MAX_VALUES, the count is not exact."""
    if (values := _separators(text)) <= MAX_VALUES_WITH_LOCK:
        return values
    without_escapes = text.replace(r"\\", "").replace(r"\"", "")
    if without_escapes.count('"') > 4 * MAX_VALUES:
        return MAX_VALUES + 1
    outside_strings = without_escapes.split('"')[::2]  # every second piece is within quotes
    return _separators("".join(outside_strings))


def _separators(text: str) -> int:
    """Return the number of commas and opening brackets in a text."""
    return text.count(",") + text.count("[") + text.count("{")
