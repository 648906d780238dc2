"""Read as much as possible of the JSON document in a body: an oddity in one place loses nothing elsewhere.

Accepted are control characters within texts, NaN and Infinity (as null), numbers of any length, and any text after the
document. The body is bounded (`bench.run.openai.bodies`), and so is its number of values, since a value needs only a few bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # typeshed knows C's alone
from typing import Any, Literal

MOST_VALUES = 200_000
"""Values in one document."""
MANY = 2**14
"""A document with more values is read by Python's scanner: C's holds the interpreter's lock, and with it all threads, until it
has read everything."""
LONGEST_WORD = 8
"""Characters of `false`, or of an escape, that can be cut in two."""


def _decoder(parse_int: Callable[[str], Any] | None = None, *, holds_lock: bool) -> json.JSONDecoder:
    """Return a JSON decoder that accepts oddities. With `holds_lock`, it uses the C scanner, which holds the interpreter's
    lock."""
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_int=parse_int)
    if not holds_lock:
        vars(decoder)["scan_once"] = py_make_scanner(decoder)
    return decoder


_DECODERS = {many: (_decoder(holds_lock=not many), _decoder(float, holds_lock=not many)) for many in (False, True)}
"""By whether a document has many values: its decoder, and the decoder for numbers with more digits than Python reads."""


class UnreadableDocument(Exception):
    """A body that is no readable JSON object. `why` is `broke_off`, `too_many` (values) or `none` (no object)."""

    def __init__(self, why: Literal["broke_off", "too_many", "none"]):
        super().__init__(why)
        self.why = why


def document_of(body: str) -> dict[str, Any]:
    """Return the object at the beginning of the body, or the first object of a list there. Raises UnreadableDocument."""
    text = body.lstrip("\ufeff \t\r\n")
    values = _count_values(text)
    if values > MOST_VALUES:
        raise UnreadableDocument("too_many")
    try:
        document = _decode(text, *_DECODERS[values > MANY])
    except json.JSONDecodeError as error:
        raise UnreadableDocument("broke_off" if _breaks_off(text, error) else "none") from None
    except RecursionError:
        raise UnreadableDocument("none") from None
    if isinstance(document, list):
        document = next((item for item in document if isinstance(item, dict)), None)
    if not isinstance(document, dict):
        raise UnreadableDocument("none")
    return document


def _decode(text: str, decoder: json.JSONDecoder, of_long_numbers: json.JSONDecoder) -> Any:
    """Decode the document at the beginning of a text."""
    try:
        return decoder.raw_decode(text)[0]
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number of more digits than Python reads
        return of_long_numbers.raw_decode(text)[0]


def _breaks_off(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether the error is only that the text ends too early."""
    if text[:1] not in ("{", "["):
        return False
    rest = text[error.pos :].strip()
    return not rest or error.msg.startswith("Unterminated") or (len(rest) < LONGEST_WORD and rest[-1] not in "}]")


def _count_values(text: str) -> int:
    """Return the number of values of a text without parsing it: each value but the first follows a separator. Far above the
    limit, the count is not exact."""
    if (values := _separators(text)) <= MANY:
        return values
    bare = text.replace(r"\\", "").replace(r"\"", "")
    return MOST_VALUES + 1 if bare.count('"') > 4 * MOST_VALUES else _separators("".join(bare.split('"')[::2]))


def _separators(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")
