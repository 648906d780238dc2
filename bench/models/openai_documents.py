"""The JSON document in a body, read as far as it can be: what is odd in it loses nothing else of it.

Taken are control characters within texts, NaN and Infinity (as null), numbers of any length, and whatever follows the document.
The body is bounded (`bench.models.openai_bodies`), and here so are its values, since a few bytes can make each of them.
"""

from __future__ import annotations

import json
from typing import Any, Literal

MOST_CONTAINERS = 300_000
"""Objects and lists of one document."""
MOST_TEXTS = 1_000_000
"""And as many values that stand behind a comma: a decoder of millions of numbers lets no other thread run meanwhile."""
LONGEST_WORD = 8
"""Characters of `false`, or of an escape, that may be cut in two."""
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_OF_LONG_NUMBERS = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_int=float)


class UnreadableDocument(Exception):
    """`why`: the body breaks off, or holds too many values; else it is no JSON object."""

    def __init__(self, why: Literal["broke_off", "too_many", "none"]):
        super().__init__(why)
        self.why = why


def document_of(body: str) -> dict[str, Any]:
    """The object that the body begins with; of a list, the first. Raises UnreadableDocument."""
    text = body.lstrip("\ufeff \t\r\n")
    if _holds_too_many(text):
        raise UnreadableDocument("too_many")
    try:
        document = _decoded(text)
    except json.JSONDecodeError as error:
        raise UnreadableDocument("broke_off" if _breaks_off(text, error) else "none") from None
    except RecursionError:
        raise UnreadableDocument("none") from None
    if isinstance(document, list):
        document = next((one for one in document if isinstance(one, dict)), None)
    if not isinstance(document, dict):
        raise UnreadableDocument("none")
    return document


def _decoded(text: str) -> Any:
    try:
        return _DECODER.raw_decode(text)[0]
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number of more digits than Python reads
        return _OF_LONG_NUMBERS.raw_decode(text)[0]


def _breaks_off(text: str, error: json.JSONDecodeError) -> bool:
    """Whether what is wrong is that it ends."""
    if text[:1] not in ("{", "["):
        return False
    rest = text[error.pos :].strip()
    return not rest or error.msg.startswith("Unterminated") or (len(rest) < LONGEST_WORD and rest[-1] not in "}]")


def _holds_too_many(text: str) -> bool:
    """Whether it has more values than it may, told without making one of them."""
    if text.count('"') <= 2 * MOST_TEXTS and not _is_crowded(text):
        return False
    bare = text.replace(r"\\", "").replace(r"\"", "")
    return bare.count('"') > 2 * MOST_TEXTS or _is_crowded("".join(bare.split('"')[::2]))


def _is_crowded(text: str) -> bool:
    return text.count("{") + text.count("[") > MOST_CONTAINERS or text.count(",") > MOST_TEXTS
