"""What Sphinx needs of us: generated parts of pages, and our docstrings in its own language.

A comment `<!-- generated: NAME -->` in a page is replaced by what `reference.NAME.page()` returns, whenever the docs are built.
A link to a file of the checkout that is no page, such as a report's table, becomes its words and the file's path.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from reference.docstrings import restructured

GENERATED = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
RELATIVE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _restructure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def filled(text: str) -> str:
    """The text of a page with its generated parts."""
    return GENERATED.sub(lambda found: importlib.import_module(f"reference.{found[1]}").page(), text)


def inside(text: str, page: Path, pages: Path) -> str:
    """The text of a page, in which no link leads out of the folder of pages."""

    def resolved(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(pages):
            return link[0]
        return f"{link[1]} (`{target.relative_to(pages.parent)}`)"

    return RELATIVE.sub(resolved, text)


def _fill(app: Sphinx, name: str, source: list[str]) -> None:
    pages = Path(app.srcdir)
    source[0] = inside(filled(source[0]), pages / f"{name}.md", pages)


def _restructure(_: Sphinx, __: str, ___: str, ____: object, _____: Any, lines: list[str]) -> None:
    lines[:] = restructured(lines)
