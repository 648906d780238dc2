"""Escapes for text from outside, one function for each place where it is shown. jinja2 escapes HTML.

Names of models and plans, endpoints' errors and models' replies are shown in all these places. A character that controls the
display (a terminal's escape sequence, a mark that turns the direction of reading) is shown as its number, `\\x1b`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""Control characters, except the end of a line and the tab."""
_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
"""The start of a cell that a spreadsheet takes for a formula. https://owasp.org/www-community/attacks/CSV_Injection"""
_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_\allowbreak{}",
    "{": r"\{",
    "}": r"\}",
    "|": r"\textbar{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "–": "--",
}


def escape_terminal(text: str) -> str:
    """Return the text as a terminal can show it. Line ends stay."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def escape_markdown(text: str) -> str:
    """Return the text as one line of Markdown, which may stand in a table's cell."""
    line = " ".join(escape_terminal(text).split())
    return re.sub(r"([\\|`*<]|!(?=\[)|\](?=[(\[])|^\[(?=[^\]]*\]:))", r"\\\1", line)


def escape_latex(text: str) -> str:
    """Return the text as one line of LaTeX."""
    return "".join(_LATEX.get(character, character) for character in " ".join(escape_terminal(text).split()))


def escape_csv(text: str) -> str:
    """Return the text as a field that no spreadsheet takes for a formula: it gets an apostrophe. The CSV writer quotes it."""
    line = escape_terminal(text)
    return f"'{line}" if _FORMULA.match(line) else line
