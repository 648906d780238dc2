"""Escapes for text from outside, one function for each place where it is shown. jinja2 escapes HTML, and
`bench.common.escaping` what a terminal shows.

Names of models and plans, endpoints' errors and models' replies are shown in all these places.
"""

from __future__ import annotations

import re

from bench.common.escaping import escape_terminal

_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
"""The start of a cell that a spreadsheet takes for a formula. https://owasp.org/www-community/attacks/CSV_Injection"""


def escape_markdown(text: str) -> str:
    """Return the text as one line of Markdown that a table's cell can hold."""
    line = " ".join(escape_terminal(text).split())
    return re.sub(r"([\\|`*<]|!(?=\[)|\](?=[(\[])|^\[(?=[^\]]*\]:))", r"\\\1", line)


def escape_csv(text: str) -> str:
    """Return the text as a field that no spreadsheet takes for a formula: it gets an apostrophe. The CSV writer quotes it."""
    line = escape_terminal(text)
    return f"'{line}" if _FORMULA.match(line) else line
