"""Read JSON objects at a place in a text. The time is linear in the characters read, however hostile the text is."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from bench.common.bounds import MOST_LEVELS, is_too_deep
from bench.common.errors import whole_text
from bench.common.values import dataclass
from bench.scenario import Json

TOO_DEEP = "it is nested too deeply"
WINDOW = 2**12
"""Characters that the decoder gets at first: all of most replies. Its errors count the lines before them: with all of a long
text, it would do so for each malformed object."""
LONGEST_OBJECT = 2**19
"""Characters of the largest object that is read: an output of the largest size has no more, even with each character
escaped."""
MARGIN = 16
"""Characters before a window's end where the decoder can have stopped because the window ended: a number, an escape,
`-Infinity`."""

LONGEST_BEGUN = 6
"""Characters of the longest beginning of a value without a quote: of `false`, of an escape."""

_begun_value = re.compile(r"-|\.|[eE][+-]?|\\|u[0-9a-fA-F]{0,4}")
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
    """The reason why no object could be read. `at` is the place in the text; None if no single place is to blame."""

    why: str
    at: int | None = None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


class Objects:
    """A reader of the objects in one text. `shown` counts the characters that the decoder got so far."""

    def __init__(self, text: str):
        self._text = text
        self._unclosed = len(text)
        self.shown = 0

    def read(self, start: int) -> Extracted | Malformed:
        """Return the object that begins at the brace at `start`."""
        length = WINDOW
        while True:
            shown = self._text[start : start + length]
            self.shown += len(shown)
            is_rest = start + length >= len(self._text)
            try:
                value, end = _decoder.raw_decode(shown)
                if "\\u" in shown or whole_text(shown) is not shown:  # only these can hold half a surrogate pair
                    json.dumps(value, ensure_ascii=False).encode()
            except json.JSONDecodeError as error:
                if is_rest or (error.pos < length - MARGIN and not error.msg.startswith("Unterminated string")):
                    return Malformed(error.msg, start + error.pos)
                if length >= LONGEST_OBJECT:
                    return Malformed(f"it has more than {LONGEST_OBJECT:,} characters")
            except RecursionError:
                return Malformed(TOO_DEEP)
            except ValueError as error:
                return Malformed(str(error))
            else:
                many = shown.count("{", 0, end) + shown.count("[", 0, end) > MOST_LEVELS
                return Malformed(TOO_DEEP) if many and is_too_deep(value) else Extracted(value, start, start + end)
            length *= 2

    def end(self, start: int) -> int:
        """Return the end of the malformed object that begins at `start`: after the brace that closes it, or at the end of the
        text.

        After a quote that begins a string without an end, all quotes are escaped. None of them begins a string that ends, so
        from there on only braces count.
        """
        depth, at = 0, start
        while at < len(self._text):
            match = (_brace_or_string if at < self._unclosed else _brace).search(self._text, at)
            if match is None:
                break
            at = match.end()
            if match[0].startswith('"') and not match[1]:
                self._unclosed = min(self._unclosed, match.start())
                at = match.start() + 1
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                return at
        return len(self._text)


def end_of(text: str) -> int:
    """Return the end of a text without its trailing blanks and the end of a code block."""
    return len(text.rstrip().rstrip("`").rstrip())


def rest_of(text: str, start: int, last: int) -> str:
    """Return the text from `start` to `last` without leading blanks and the end of a code block, cut to the length that shows
    whether it is long."""
    blank = _blanks.match(text, start)
    return text[blank.end() : min(last, blank.end() + LONGEST_BEGUN + 1)] if blank else ""


def is_cut_off(text: str, wrong: Malformed, last: int) -> bool:
    """Return whether the decoder stopped because the text ended, and not at a wrong character. `last` is the end of the text
    without the end of a code block."""
    if wrong.at is None:
        return False
    rest = rest_of(text, wrong.at, last)
    begun = _begun_value.fullmatch(rest) or any(whole.startswith(rest) for whole in ("true", "false", "null"))
    return bool(begun) or wrong.why.startswith("Unterminated string")
