"""Escapes for text from outside, one function for each place where it is shown. jinja2 escapes HTML, and
`bench.common.escaping` what a terminal shows.

Names of models and plans, endpoints' errors and models' replies are shown in all these places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.common.escaping import escape_terminal

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
