"""What Sphinx needs of us: the generated parts of pages, and our docstrings in its own language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference.docstrings import restructured
from reference.pages import built_pages, filled, inside, listed
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _restructure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _fill(app: Sphinx, name: str, source: list[str]) -> None:
    pages = Path(app.srcdir)
    built = built_pages(pages / folder for folder in app.config.html_extra_path)
    source[0] = inside(filled(source[0]), pages / f"{name}.md", pages, built)
    if name == app.config.root_doc:
        source[0] = listed(source[0], built)


def _restructure(_: Sphinx, __: str, ___: str, ____: object, _____: Any, lines: list[str]) -> None:
    lines[:] = restructured(lines)
