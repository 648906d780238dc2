"""Pages that need no other file: they contain their styles, scripts and figures.

A page's policy lets the browser run only the page's own scripts and styles, known by their digests, and load nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bench.common.escaping import escape_terminal
from bench.read.render.cells import Cell, Linked, text_of
from bench.read.render.table import Table

TEMPLATES = Path(__file__).parent
TABLE_SCRIPTS = ("page_data.js", "page_tables.js")
"""The scripts of every page with tables, in this order."""
FOUR_DIGITS = re.compile(r"(?<![\d.])\d{4,}")
"""The whole part of a number from 1,000 on."""
VERDICT_CLASSES = {"holds": "stands", "contradicted": "falls", "counterexample": "falls", "decided by sizes": "sizes"}
"""How a verdict begins -> the CSS class of its colour and sign."""
INTERVAL_COMMA = re.compile(r"(?<=[\d%]), (?=-?\d)")
INTERVAL = r"\[-?\d[\d.,%\s-]*\]"


def render(template: str, style: str, script: str = "", folder: Path = TEMPLATES, **values: Any) -> str:
    """Return a page: a template of this folder with this style and script, and the values that it shows. Every text is
    escaped."""
    page = (
        _templates(folder)
        .get_template(template)
        .render(
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            data_uri=lambda picture: "data:image/png;base64," + base64.b64encode(picture.png).decode("ascii"),
            sort_value=_sort_value,
            grouped=group_thousands,
            side_of=_verdict_class,
            numeric=_numeric_columns,
            prose=_prose,
            **values,
        )
    )
    return page + "\n"


@cache
def _templates(folder: Path) -> Environment:
    """Return the templates in this folder and beside this file. Each is compiled once."""
    return Environment(
        loader=FileSystemLoader((folder, TEMPLATES)),
        autoescape=True,
        finalize=_escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(name: str, folder: Path = TEMPLATES) -> str:
    """Return the text of a style or script beside this file, or in another folder."""
    return (folder / name).read_text(encoding="utf-8")


def _escape(value: object) -> object:
    """Escape a text's control characters, and join the bounds of an interval by a space that does not break. Jinja then
    escapes HTML."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return INTERVAL_COMMA.sub(",\N{NO-BREAK SPACE}", escape_terminal(value))


def _prose(text: str, names: Sequence[str]) -> Markup:
    """Return a sentence as HTML in which names are code and intervals are fainter than their numbers. Without names, the
    pattern for a name is `(?!)`, which matches nothing."""
    any_name = "|".join(re.escape(escape(_escape(name))) for name in sorted(names, key=len, reverse=True)) or r"(?!)"
    return Markup(
        re.sub(
            rf"(?<![\w.&#-])(?<!the )({any_name})(?![\w-]|\.\w)|({INTERVAL})",
            lambda match: f"<code>{match[1]}</code>" if match[1] else f'<span class="interval">{match[2]}</span>',
            escape(_escape(text)),
        )
    )


def _policy(style: str, script: str) -> str:
    """Return the page's content security policy, by which a browser runs only this style and this script.
    https://www.w3.org/TR/CSP3/"""
    directives = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": _digest(style),
        "script-src": _digest(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{directive} {sources}" for directive, sources in directives.items())


def _digest(source: str) -> str:
    """Return the digest by which a content security policy names a style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode('ascii')}'"


def _sort_value(cell: Cell) -> str:
    """Return the number by which a cell is sorted; "" if the cell has no number."""
    value = cell if isinstance(cell, str | int) else cell.numbers().get("")
    return repr(value) if isinstance(value, int | float) else ""


def _numeric_columns(table: Table) -> tuple[bool, ...]:
    """Return for each column whether at least half of its cells have a number. The page aligns these columns at the right."""
    return tuple(2 * sum(bool(_sort_value(cell)) for cell in cells) >= len(cells) for cells in zip(*table.rows, strict=True))


def group_thousands(cell: Cell) -> str:
    """Return a cell with commas between thousands. A text, such as a run's name, stays as it is."""
    text = text_of(cell)
    return text if isinstance(cell, str | Linked) else FOUR_DIGITS.sub(lambda digits: f"{int(digits[0]):,}", text)


def _verdict_class(cell: Cell) -> str:
    """Return the CSS classes of a verdict's cell, which give it a colour and a sign."""
    text = text_of(cell)
    return next((f"verdict {name}" for start, name in VERDICT_CLASSES.items() if text.startswith(start)), "verdict open")
