"""Read JSON objects at a place in a text. The time is linear in the characters read, however hostile the text is."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from bench.common.bounds import MAX_LEVELS, is_too_deep
from bench.common.errors import whole_text
from bench.common.values import dataclass
from bench.scenario import Json

TOO_DEEP = "it is nested too deeply"
FIRST_WINDOW_CHARS = 2**12
"""Characters that the decoder gets at first, which is all of most replies. The decoder counts the lines before each error; with
all of a long text, it would count them again for each malformed object."""
MAX_OBJECT_CHARS = 2**19
"""Characters of the largest object that is read: an output of the largest size has no more, even with each character
escaped."""
WINDOW_END_CHARS = 16
"""Characters at a window's end in which an error can come from the cut: a number, an escape or `-Infinity` was cut there."""

MAX_PARTIAL_CHARS = 6
"""Characters of the longest value without a quote, or escape, that can be cut off at a reply's end."""

_partial_value = re.compile(r"-|\.|[eE][+-]?|\\|u[0-9a-fA-F]{0,4}")
_blanks = re.compile(r"\s*`*\s*")
_brace = re.compile("[{}]")
_brace_or_string = re.compile(r'[{}]|"(?:[^"\\]|\\.)*("?)', re.DOTALL)


@dataclass(frozen=True)
class Extracted:
    """The JSON object found in a reply, and its place in the text: text[start:end]."""

    value: dict[str, Json]
    start: int
    end: int


@dataclass(frozen=True)
class Malformed:
    """The reason why no object could be read. `at` is the index in the text where the error is; None if it is at no single
    index."""

    why: str
    at: int | None = None


def _refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for `NaN`, `Infinity` or `-Infinity`."""
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


class Objects:
    """A reader of the objects in one text. `decoded` is the number of characters that the decoder got so far."""

    def __init__(self, text: str):
        self._text = text
        self._unclosed = len(text)
        self.decoded = 0

    def read(self, start: int) -> Extracted | Malformed:
        """Return the object that begins at the brace at `start`, or where and why it is malformed. A window of the text is
        decoded, and doubled until it holds the whole object."""
        length = FIRST_WINDOW_CHARS
        while True:
            window = self._text[start : start + length]
            self.decoded += len(window)
            is_rest = start + length >= len(self._text)
            try:
                value, end = _decoder.raw_decode(window)
                if "\\u" in window or whole_text(window) is not window:  # only these can hold half a surrogate pair
                    json.dumps(value, ensure_ascii=False).encode()
            except json.JSONDecodeError as error:
                if is_rest or (error.pos < length - WINDOW_END_CHARS and not error.msg.startswith("Unterminated string")):
                    return Malformed(error.msg, start + error.pos)
                if length >= MAX_OBJECT_CHARS:
                    return Malformed(f"it has more than {MAX_OBJECT_CHARS:,} characters")
            except RecursionError:
                return Malformed(TOO_DEEP)
            except ValueError as error:
                return Malformed(str(error))
            else:
                may_be_deep = window.count("{", 0, end) + window.count("[", 0, end) > MAX_LEVELS
                return Malformed(TOO_DEEP) if may_be_deep and is_too_deep(value) else Extracted(value, start, start + end)
            length *= 2

    def end(self, start: int) -> int:
        """Return the end of the malformed object that begins at `start`: after the brace that closes it, or at the end of the
        text.

        If a string never ends, no string after it ends, since all later quotes are escaped. From there on only braces are
        searched.
        """
        depth, position = 0, start
        while position < len(self._text):
            match = (_brace_or_string if position < self._unclosed else _brace).search(self._text, position)
            if match is None:
                break
            position = match.end()
            if match[0].startswith('"') and not match[1]:
                self._unclosed = min(self._unclosed, match.start())
                position = match.start() + 1
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                return position
        return len(self._text)


def end_of(text: str) -> int:
    """Return the length of a text without its trailing blanks and without the backticks that close a code block."""
    return len(text.rstrip().rstrip("`").rstrip())


def rest_of(text: str, start: int, last: int) -> str:
    """Return text[start:last] without its leading blanks and without backticks that close a code block, cut to
    MAX_PARTIAL_CHARS + 1 characters."""
    blank = _blanks.match(text, start)
    return text[blank.end() : min(last, blank.end() + MAX_PARTIAL_CHARS + 1)] if blank else ""


def is_cut_off(text: str, malformed: Malformed, last: int) -> bool:
    """Return whether the decoder stopped because the text ended, and not at a wrong character. `last` is the end of the text
    without the end of a code block (`end_of`)."""
    if malformed.at is None:
        return False
    rest = rest_of(text, malformed.at, last)
    is_partial = _partial_value.fullmatch(rest) or any(word.startswith(rest) for word in ("true", "false", "null"))
    return bool(is_partial) or malformed.why.startswith("Unterminated string")
