"""What keeps a text from outside a text, wherever it is shown: one function for each place. HTML is escaped by jinja2.

Names of models and plans, endpoints' errors and models' replies stand in all of these. A character that would steer what shows
it (a terminal's escape sequences, marks that turn the direction of reading) is shown as its number, `\\x1b`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""All that steers, but for the end of a line and the tabulator."""
_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
"""How a cell begins that a spreadsheet takes for a formula. https://owasp.org/www-community/attacks/CSV_Injection"""
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
    """As it is shown in a terminal: its lines stay lines."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def escape_markdown(text: str) -> str:
    """In one line of Markdown, a cell of a table or not."""
    line = " ".join(escape_terminal(text).split())
    return re.sub(r"([\\|`*<]|!(?=\[)|\](?=[(\[])|^\[(?=[^\]]*\]:))", r"\\\1", line)


def escape_latex(text: str) -> str:
    """In one line of LaTeX."""
    return "".join(_LATEX.get(character, character) for character in " ".join(escape_terminal(text).split()))


def escape_csv(text: str) -> str:
    """A field that no spreadsheet takes for a formula: an apostrophe goes before what would be one. The writer quotes it."""
    line = escape_terminal(text)
    return f"'{line}" if _FORMULA.match(line) else line
