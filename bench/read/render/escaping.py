"""Functions that escape text from outside for Markdown and CSV. jinja2 escapes HTML, and `bench.common.escaping` escapes for a
terminal.

Text from outside, such as names of models and plans, endpoints' errors and models' replies, is shown in all these formats.
"""

from __future__ import annotations

import re

from bench.common.escaping import escape_terminal

_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
"""The start of a cell that a spreadsheet takes for a formula. https://owasp.org/www-community/attacks/CSV_Injection"""


def escape_markdown(text: str) -> str:
    """Return the text as one line of Markdown without markup, which can be the cell of a table."""
    line = " ".join(escape_terminal(text).split())
    return re.sub(r"([\\|`*<]|!(?=\[)|\](?=[(\[])|^\[(?=[^\]]*\]:))", r"\\\1", line)


def escape_csv(text: str) -> str:
    """Return the text as a field that no spreadsheet takes for a formula: a formula gets an apostrophe in front. The CSV
    writer adds quotes."""
    line = escape_terminal(text)
    return f"'{line}" if _FORMULA.match(line) else line
