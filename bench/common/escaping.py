"""Escapes of text from outside for a terminal. A character that controls the display (an escape sequence of a terminal, a
mark of the reading direction) is replaced by its number, `\\x1b`."""

from __future__ import annotations

import re

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""All characters that control a terminal, except the line end and the tab."""


def escape_terminal(text: str) -> str:
    """Return the text with each control character replaced by its escape, such as `\\x1b`. Line ends are unchanged."""
    return _CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def escape_line(text: str) -> str:
    """Return the text as `escape_terminal` does, with each line end replaced by a backslash and an n."""
    return escape_terminal(text).replace("\n", "\\n")
