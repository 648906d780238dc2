"""Escapes of text from outside for a terminal. A character that controls the display (a terminal's escape sequence, a mark that
turns the direction of reading) is shown as its number, `\\x1b`."""

from __future__ import annotations

import re

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""Control characters, except the end of a line and the tab."""


def escape_terminal(text: str) -> str:
    """Return the text as a terminal can show it. Line ends stay."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def escape_line(text: str) -> str:
    """Return the text as a terminal can show it in one line: a line's end within it is shown as `\\n`."""
    return escape_terminal(text).replace("\n", "\\n")
